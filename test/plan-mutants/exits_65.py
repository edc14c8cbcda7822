"""exits_65.py MEGART DIR: `MEGART inspect` refuses every plan of DIR, with exit
code 65 and one line of reason."""
import pathlib
import subprocess
import sys

refused, faults = 0, []
for path in sorted(pathlib.Path(sys.argv[2]).glob("*.mega")):
    run = subprocess.run([sys.argv[1], "inspect", path], capture_output=True, text=True)
    lines = run.stderr.splitlines()
    if run.returncode != 65:
        faults.append(f"{path.name}: exit code {run.returncode}: {run.stderr}")
    elif len(lines) != 1 or str(path) not in lines[0]:
        faults.append(f"{path.name}: says {run.stderr!r}")
    else:
        refused += 1
print(*faults, sep="\n", file=sys.stderr)
print(f"{refused} plans refused, {len(faults)} not")
sys.exit(bool(faults) or not refused)
