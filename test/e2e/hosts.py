"""Trains on four hosts, two ranks each, and breaks one of them.

    python3 hosts.py LAUNCHER FAULT RANK LIMIT COMMAND...

Hosts are network namespaces on one bridge, so this needs root and iproute2.
LAUNCHER is who seems to start the ranks: `torchrun` and `openmpi` set its
variables, `flags` gives --rank, --world-size and --rendezvous.

FAULT is `none` (the run has to finish), or what happens to RANK under way:
`kill` (SIGKILL), `stop` (SIGSTOP), `cut` (the link of its host goes down).
Then all other ranks have to end within LIMIT seconds with exit code 69 and one
error each; a stopped one, once it goes on, and the ranks of a host that was cut
off too. Prints how long it took and what the ranks of connected hosts say,
which is the same for all of them, except where rank 0 was if it is rank 0 that
is gone: each knows that from its own last ping. Nothing is left behind.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HOSTS, RANKS_OF_HOST = 4, 2
RANKS = HOSTS * RANKS_OF_HOST
PREFIX = f"megahosts{os.getpid()}-"
HUB = PREFIX + "hub"
PORT = 29500
UNAVAILABLE = 69

libc = ctypes.CDLL(None)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def host_of(rank):
    return rank // RANKS_OF_HOST


def namespace(host):
    return f"{PREFIX}{host}"


def address(host):
    return f"10.203.8.{host + 1}"


def connect():
    ip("netns", "add", HUB)
    ip("-n", HUB, "link", "add", "br0", "type", "bridge")
    ip("-n", HUB, "link", "set", "br0", "up")
    for host in range(HOSTS):
        name = namespace(host)
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "add", "eth0", "type", "veth",
           "peer", "name", f"p{host}", "netns", HUB)
        ip("-n", HUB, "link", "set", f"p{host}", "master", "br0", "up")
        ip("-n", name, "addr", "add", f"{address(host)}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")


def disconnect():
    for name in [*(namespace(host) for host in range(HOSTS)), HUB]:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def start(launcher, rank, command, errors):
    local, size = str(rank % RANKS_OF_HOST), str(RANKS_OF_HOST)
    variables, flags = {}, []
    if launcher == "torchrun":
        variables = {
            "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": local,
            "LOCAL_WORLD_SIZE": size, "GROUP_RANK": str(host_of(rank)),
            "MASTER_ADDR": address(0), "MASTER_PORT": str(PORT),
            "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0"}
    elif launcher == "openmpi":
        variables = {
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(RANKS),
            "OMPI_COMM_WORLD_LOCAL_RANK": local,
            "OMPI_COMM_WORLD_LOCAL_SIZE": size}
        flags = ["--rendezvous", f"{address(0)}:{PORT}"]
    else:
        flags = ["--rank", str(rank), "--world-size", str(RANKS),
                 "--rendezvous", f"{address(0)}:{PORT}"]
    # `ip netns exec` becomes the command: same process.
    return subprocess.Popen(
        ["ip", "netns", "exec", namespace(host_of(rank)), *command, *flags],
        env=dict(os.environ, **variables), stderr=errors,
        preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))


def wait(processes, seconds):
    """Whether they have ended by then; the time of the last."""
    started = time.time()
    while any(process.poll() is None for process in processes):
        if time.time() - started > seconds:
            return None
        time.sleep(0.01)
    return time.time() - started


def text_of(file):
    file.seek(0)
    return file.read().decode()


def errors_of(file):
    return [line for line in text_of(file).splitlines() if "error" in line]


def spoil(fault, victim, limit, ranks, files):
    while "step" not in text_of(files[0]):
        if any(process.poll() is not None for process in ranks):
            sys.exit("a rank has ended before the first step")
        time.sleep(0.05)
    # Where a rank is, it says once a second.
    time.sleep(2.2)

    cut = [rank for rank in range(RANKS)
           if fault == "cut" and host_of(rank) == host_of(victim)]
    if fault == "cut":
        ip("-n", HUB, "link", "set", f"p{host_of(victim)}", "down")
    else:
        ranks[victim].send_signal(
            signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
    others = [ranks[rank] for rank in range(RANKS)
              if rank != victim or fault == "cut"]
    elapsed = wait(others, limit)
    if elapsed is None:
        alive = [r for r in range(RANKS) if ranks[r].poll() is None]
        sys.exit(f"ranks {alive} are left after {limit} s")
    print(f"all others have ended after {elapsed:.2f} s")

    if fault == "stop":
        ranks[victim].send_signal(signal.SIGCONT)
        elapsed = wait(ranks, limit)
        if elapsed is None:
            sys.exit("the stopped rank goes on without the others")
        print(f"the stopped rank has ended {elapsed:.2f} s after going on")
    said = set()
    for rank in range(RANKS):
        if fault == "kill" and rank == victim:
            continue
        lines = errors_of(files[rank])
        if ranks[rank].returncode != UNAVAILABLE or len(lines) != 1:
            sys.exit(f"rank {rank}: exit code {ranks[rank].returncode}, {lines}")
        if rank in cut:
            print(f"cut off, rank {rank} says: {lines[0]}")
        elif not (fault == "stop" and rank == victim):
            said.add(lines[0])
    print("\n".join(sorted(said)))
    if host_of(victim) == 0:
        said = {re.sub(r"step \d+, action \d+", "", line) for line in said}
    if len(said) != 1:
        sys.exit("the ranks do not agree")


def main():
    launcher, fault, victim, limit, *command = sys.argv[1:]
    files = [tempfile.TemporaryFile() for _ in range(RANKS)]
    ranks = []
    try:
        connect()
        for rank in range(RANKS):
            ranks.append(start(launcher, rank, command, files[rank]))
        if fault != "none":
            spoil(fault, int(victim), float(limit), ranks, files)
        elif wait(ranks, float(limit)) is None or any(
                process.returncode for process in ranks):
            sys.exit(f"exit codes {[p.returncode for p in ranks]}")
        if any(text_of(file) for file in files[1:]) and fault == "none":
            sys.exit("a rank other than 0 has printed something")
    except BaseException:
        for rank, file in enumerate(files):
            print(f"rank {rank}: {text_of(file)[-400:]}", file=sys.stderr)
        raise
    finally:
        for process in ranks:
            process.kill()
            process.wait()
        disconnect()


main()
