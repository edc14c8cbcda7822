"""Runs a command with --rendezvous at a port that is in use, or was just free.

    python3 with_port.py busy|free COMMAND...
"""

import socket
import subprocess
import sys

state, *command = sys.argv[1:]
with socket.socket() as user:
    user.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{user.getsockname()[1]}"
    if state == "busy":
        user.listen()
    else:
        user.close()
    sys.exit(subprocess.call(command + ["--rendezvous", address]))
