"""Runs `megart train` under strace and checks what it does with memory.

    python3 steady_state.py TRACE_FILE LOG_FILE megart train ...

Between the second step and the last no thread may map, unmap or move the break:
everything was allocated before. Afterwards the peak of resident memory must be
at most the planned bytes plus the stated reserve (megart prints both).
"""

import re
import subprocess
import sys

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

trace, log, command = sys.argv[1], sys.argv[2], sys.argv[3:]
run = subprocess.run(
    ["strace", "-f", "-e", "trace=mmap,munmap,mremap,brk,write", "-o", trace]
    + command + ["--log-file", log],
    capture_output=True, text=True)
if run.returncode != 0:
    sys.exit(f"megart failed: {run.stderr}")

steps = 0
inside = []
with open(trace) as file:
    for line in file:
        step = re.search(r'write\(\d+, "\{\\"step\\":(\d+)', line)
        if step:
            steps = int(step.group(1))
        elif steps >= 2 and re.search(r"\b(mmap|munmap|mremap|brk)\(", line):
            inside.append((steps, line.strip()))
# What follows the last step is the end of the process.
early = [line for at, line in inside if at < steps]
if steps < 4:
    sys.exit(f"saw {steps} steps in the trace")
if early:
    sys.exit("memory calls between the second step and the last:\n"
             + "\n".join(early))

numbers = re.search(
    r"planned ([\d.]+) (\w+), peak resident ([\d.]+) (\w+): .*reserve "
    r"([\d.]+) (\w+)", run.stderr)
if not numbers:
    sys.exit(f"no memory line in: {run.stderr}")
planned, peak, reserve = (
    float(numbers.group(i)) * UNITS[numbers.group(i + 1)] for i in (1, 3, 5))
if not planned <= peak <= planned + reserve:
    sys.exit(f"planned {planned}, peak {peak}, reserve {reserve}")
print(f"{steps} steps without a memory call; peak {peak:.0f}, planned "
      f"{planned:.0f}")
