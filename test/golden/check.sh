#!/usr/bin/env bash
# check.sh MODEL PRECISION FOLDER [BIN]: runs run.sh and compares what it did with
# MODEL.json.
set -euo pipefail
golden=$(dirname "$(realpath "$0")")
bash "$golden/run.sh" "$@"
python3 "$golden/compare.py" "$golden/$1.json" --precision "$2" \
  --log "$3/log.jsonl" --weights "$3" --gradients "$3"
