"""Kills or stops one of the processes of a run, and checks how the others end.

    python3 kill_rank.py RANK KILL|STOP SECONDS COMMAND...

Adds --processes to the command, which has to train for long. Rank -1 is the
process that starts the others. What the run prints afterwards is printed;
fails if it takes longer than SECONDS, prints more than one error, or leaves a
process behind.
"""

import os
import signal
import subprocess
import sys
import time

victim, name, limit = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
command = sys.argv[4:] + ["--processes"]
run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
while "step" not in run.stderr.readline():
    if run.poll() is not None:
        sys.exit("it has ended before the first step")
# Where a rank is, it says once a second.
time.sleep(2.2)


def state(process):
    """Of /proc/PROCESS/stat: parent and state; nothing if it is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[0]


def children():
    everyone = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [p for p in everyone if (state(p) or (0,))[0] == run.pid]
    return sorted(found)


ranks = children()
if len(ranks) < 2 or victim >= len(ranks):
    sys.exit(f"{len(ranks)} processes")
started = time.time()
os.kill(run.pid if victim < 0 else ranks[victim], signal.Signals[f"SIG{name}"])
text = run.stderr.read()
code = run.wait()
elapsed = time.time() - started
print(text)
if elapsed > limit:
    sys.exit(f"it took {elapsed:.1f} s")
if code != (-signal.SIGKILL if victim < 0 else 69):
    sys.exit(f"exit code {code}")
if text.count("error") != (0 if victim < 0 else 1):
    sys.exit("not one error")
time.sleep(0.2)
left = [p for p in ranks if (state(p) or (0, "Z"))[1] not in "ZX"]
if left:
    sys.exit(f"processes {left} are left")
