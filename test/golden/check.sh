#!/usr/bin/env bash
# check.sh MODEL PRECISION FOLDER [BIN [OPTION...]]: runs run.sh and compares what it
# did with MODEL.json; options are compare.py's.
set -euo pipefail
golden=$(dirname "$(realpath "$0")")
bash "$golden/run.sh" "${@:1:4}"
python3 "$golden/compare.py" "$golden/$1.json" --precision "$2" \
  --log "$3/log.jsonl" --weights "$3" --gradients "$3" "${@:5}"
