#!/usr/bin/env bash
# run.sh MODEL PRECISION FOLDER [BIN]: the training run that golden values are
# about, into FOLDER. PRECISION is megac's, fp32 or bf16. BIN holds the tools,
# where they are not in PATH.
set -euo pipefail
model=$1 precision=$2 out=$3
[ $# -lt 4 ] || PATH=$4:$PATH
golden=$(dirname "$(realpath "$0")")
mkdir -p "$out"

python3 "$golden/corpus.py" >"$out/corpus.txt"
mega-data tokenize "$out/corpus.txt" --tokenizer byte -o "$out/corpus"
megac "$golden/../../examples/$model.mlir" --precision "$precision" --seq-length 64 \
  --micro-batch-size 2 --global-batch-size 8 -o "$out/plan.mega"
megart train "$out/plan.mega" --data "$out/corpus" --steps 20 --lr 1e-3 \
  --lr-schedule cosine --warmup-steps 5 --weight-decay 0.1 \
  --log-file "$out/log.jsonl" --dump "weights@0=$out" --dump "gradients@1=$out"
