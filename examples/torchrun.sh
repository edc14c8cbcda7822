#!/usr/bin/env bash
# examples/torchrun.sh DATA: trains gpt2-tiny on the dataset DATA (DATA.bin and
# DATA.idx, by mega-data) with four ranks that torchrun starts on this machine.
# Copy it and change the numbers; megac, megart and torchrun are in PATH.
set -euo pipefail
data=$1
model=$(dirname "$0")/gpt2-tiny.mlir
plan=$(mktemp -d)/gpt2-tiny.mega

# tp * dp is the number of ranks, and has to be what torchrun starts. All hosts
# need the same plan file: compile once, on storage that all of them see.
ranks=4
megac "$model" --tp 2 --dp 2 --micro-batch-size 2 --global-batch-size 16 -o "$plan"

# --no_python       megart is a program of its own, not a Python script.
# --nproc_per_node  ranks of this host: one per GPU, or on CPUs one per socket
#                   or core. --threads below are those of all ranks of a host.
# --master_port     torchrun's agent listens here itself. The ranks meet at the
#                   next port, plus one per restart (29501, 29502, ...) and then
#                   connect to each other on ports the system chooses: open them
#                   between the hosts. --rendezvous HOST:PORT of megart replaces
#                   host and port (docs/communication.md).
# --max_restarts    0: megart has no checkpoints yet, so a restart begins at the
#                   first step.
# --redirects, --tee  ranks print to standard error; these show it with the rank
#                   before each line, and put standard output into files. Rank 0
#                   alone prints progress; all ranks print an error. (Single
#                   bits: 0 and 3 break torch 1.13 under Python 3.11.)
# Options are spelt with _, which all versions of torchrun understand.
#
# Several hosts, on each of them, with its number N and the name of the first:
#   --nnodes 2 --node_rank N --master_addr node0
# or with a rendezvous of torchrun's own, which numbers the hosts itself and
# takes another free port for MASTER_PORT each time:
#   --nnodes 2 --rdzv_backend c10d --rdzv_endpoint node0:29400 --rdzv_id JOB
#
# When one rank is gone all end, with one line that names it. megart then exits
# with 69 on every rank (docs/exit-codes.md); torchrun turns any failure into 1.
# 75, for a run to be queued again after a checkpoint, does not exist yet.
torchrun --no_python --nproc_per_node "$ranks" --master_port "${PORT:-29500}" \
  --max_restarts 0 --redirects 1 --tee 2 \
  megart train "$plan" --data "$data" --steps "${STEPS:-100}" --lr 3e-3 --warmup-steps 20 \
  --threads "$(nproc)" --timeout 300 --log-file "${LOG:-metrics.jsonl}"
