"""Starts one process per rank as torchrun does, and waits for all.

    python3 start_ranks.py RANKS COMMAND...

Standard output is that of all ranks; the exit code is the first that is not 0.
"""

import os
import socket
import subprocess
import sys

ranks, command = int(sys.argv[1]), sys.argv[2:]
# The ranks meet one port above the launcher's own.
while True:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        try:
            two.bind(("127.0.0.1", port + 1))
            break
        except OSError:
            pass
started = []
for rank in range(ranks):
    environment = dict(
        os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
        LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port))
    started.append(subprocess.Popen(command, env=environment))
codes = [process.wait() for process in started]
sys.exit(next((code for code in codes if code != 0), 0))
