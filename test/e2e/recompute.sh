#!/usr/bin/env bash
# recompute.sh MODEL.mlir PRECISION FOLDER DATA BIN: the same run with each
# --recompute; prints the bytes of the frames and compares what the runs computed.
set -euo pipefail
model=$1 precision=$2 out=$3 data=$4 PATH=$5:$PATH
for recompute in none selective full; do
  run=$out/$recompute
  mkdir -p "$run"
  megac "$model" --precision "$precision" --recompute "$recompute" --seq-length 128 \
    --micro-batch-size 4 --global-batch-size 8 --report -o "$run/plan.mega" |
    sed -n "s/^ *\(saved\.\(layer\|sliding\|full\)\) *\([0-9,]*\) .*/$recompute \1 \3/p" |
    tr -d ,
  megart train "$run/plan.mega" --data "$data" --steps 4 --lr 1e-3 --seed 3 \
    --log-file "$run/log.jsonl" --dump "gradients@1=$run" >"$run/out" 2>&1
  # What does not depend on the machine's speed.
  grep -o '"\(step\|loss\|grad_norm\)":[^,}]*' "$run/log.jsonl" >"$run/values"
  [ -s "$run/values" ]
  cmp "$out/none/values" "$run/values"
  cmp "$out/none/gradients.safetensors" "$run/gradients.safetensors"
done
echo "the same losses, gradient norms and first gradients"
