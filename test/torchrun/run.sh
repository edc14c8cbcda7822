#!/usr/bin/env bash
# test/torchrun/run.sh [BIN]: four ranks under the real torchrun: the bits of
# threads, for both of its rendezvous; ports; a restart after a killed rank; the
# example. BIN holds the tools (build/dev/bin). Takes a minute. No other test
# needs torchrun: $TORCHRUN, or else Debian's, which this installs as root.
# (Also run with PyPI's torch 2.15; without its nvidia packages that does not load.)
set -euo pipefail
here=$(dirname "$(realpath "$0")")
source=$(realpath "$here/../..")
PATH=$(realpath "${1:-$source/build/dev/bin}"):$PATH
torchrun=${TORCHRUN:-/usr/bin/torchrun}
if ! [ -x "$torchrun" ]; then
  apt-get install -y -qq --no-install-recommends python3-torch iproute2 >/dev/null
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
export OUT=$out

python3 "$source/test/golden/corpus.py" >corpus.txt
mega-data tokenize corpus.txt -o corpus
megac "$source/examples/gpt2-tiny.mlir" --seq-length 20 --micro-batch-size 2 \
  --global-batch-size 8 --tp 2 --dp 2 -o plan.mega
train=(megart train plan.mega --data corpus --lr 1e-3)
"${train[@]}" --steps 20 --log-file threads.jsonl --dump weights@20=threads 2>/dev/null

# start NAME OPTIONS...: the run, whose ranks go through rank.sh.
start() {
  local name=$1
  shift
  echo "== $name"
  export NAME=$name
  "$torchrun" --no_python --nproc_per_node 4 --redirects 1 --tee 2 "$@" \
    "$here/rank.sh" "${train[@]}" --log-file "$name.jsonl" --dump "weights@20=$name" \
    >"$name.txt" 2>&1 || { cat "$name.txt"; exit 1; }
  python3 "$source/test/e2e/compare_logs.py" threads.jsonl "$name.jsonl" 0
  cmp threads/weights.safetensors "$name/weights.safetensors"
  cat "$name".ports.*
}

start static --max_restarts 0 --master_port 29600
start c10d --max_restarts 0 --rdzv_backend c10d --rdzv_endpoint localhost:29610
# Rank 1 is killed in the first attempt (rank.sh); the second is another run.
KILL=1 start restart --max_restarts 1 --monitor_interval 1 --master_port 29620
grep -o 'megart: error: rank 1 .*' restart.txt | sort | uniq -c
# torchrun ends those that have not ended by themselves when it looks.
sort restart.codes.0

echo "== example"
mkdir bin && ln -s "$torchrun" bin/torchrun
PATH=$out/bin:$PATH PORT=29630 STEPS=20 LOG=example.jsonl \
  "$source/examples/torchrun.sh" "$out/corpus" >example.txt 2>&1 ||
  { cat example.txt; exit 1; }
grep 'step.*20/20' example.txt
echo "passed"
