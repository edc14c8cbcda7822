"""cut.py MEGAC MODEL INPUT OUTPUT: compiles prefixes of a model.

Each must exit 0 or 1, never crash.
"""
import subprocess
import sys

megac, model, cut, plan = sys.argv[1:]
text = open(model, encoding="utf-8").read()
for length in range(0, len(text), len(text) // 40):
    with open(cut, "w", encoding="utf-8") as file:
        file.write(text[:length])
    run = subprocess.run([megac, cut, "-o", plan], capture_output=True,
                         text=True)
    assert run.returncode in (0, 1), (length, run.returncode, run.stderr)
    assert run.returncode == 0 or "megac: error: " in run.stderr, length
