"""exits.py CODE COMMAND...: runs the command and wants exactly that exit code.

Standard input and output are the command's. A command killed by a signal
never has the code that is wanted.
"""
import subprocess
import sys

wanted = int(sys.argv[1])
code = subprocess.run(sys.argv[2:]).returncode
if code != wanted:
    sys.exit(f"exit code {code}, expected {wanted}: {' '.join(sys.argv[2:])}")
