"""Runs a command with --rendezvous at a port that is in use.

    python3 busy_port.py COMMAND...
"""

import socket
import subprocess
import sys

with socket.socket() as user:
    user.bind(("127.0.0.1", 0))
    user.listen()
    address = f"127.0.0.1:{user.getsockname()[1]}"
    sys.exit(subprocess.call(sys.argv[1:] + ["--rendezvous", address]))
