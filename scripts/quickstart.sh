#!/usr/bin/env bash
# From a bare Debian 12 machine to a falling loss: installs, builds, tokenises
# real text, compiles an example for eight ranks and trains it on this machine's
# processors. Fails if the loss does not fall.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

say "Building megac, megart and mega-data (installs what is missing)"
scripts/build.sh release megac megart mega-data
export PATH="$PWD/build/release/bin:$PATH"
out=build/quickstart
mkdir -p "$out"

say "Tokenising text that comes with Debian: licences and the Perl manual"
mapfile -t texts < <(find /usr/share/common-licenses -type f | sort
  find /usr/share/perl -name '*.pod' -type f | sort)
if [ ${#texts[@]} -eq 0 ]; then
  echo "quickstart: no text in /usr/share/common-licenses or /usr/share/perl" >&2
  exit 1
fi
mega-data tokenize "${texts[@]}" --tokenizer byte -o "$out/text"

say "Compiling examples/gpt2-tiny.mlir for 8 ranks: 2 stages, 2 replicas, layers cut in 2"
flags=(--tp 2 --pp 2 --dp 2 --sp --zero 1 --seq-length 128 --micro-batch-size 2
  --global-batch-size 16)
megac examples/gpt2-tiny.mlir "${flags[@]}" -o "$out/gpt2-tiny.mega" --report \
  >"$out/report.txt"
sed '/^largest/,$d' "$out/report.txt" # what follows is in the file
tail -n 1 "$out/report.txt"
megac examples/gpt2-tiny.mlir "${flags[@]}" -o "$out/gpt2-tiny.mega" \
  --report="$out/report.html"

say "Training 300 steps: ranks are threads"
rm -f "$out/metrics.jsonl"
megart train "$out/gpt2-tiny.mega" --data "$out/text" --steps 300 \
  --lr 3e-3 --lr-schedule cosine --warmup-steps 20 --weight-decay 0.1 \
  --log-file "$out/metrics.jsonl"

python3 - "$out/metrics.jsonl" <<'PYTHON'
import json, sys

with open(sys.argv[1]) as file:
    records = [json.loads(line) for line in file if line.strip()]
losses = [record["loss"] for record in records if "loss" in record]
if len(losses) != 300:
    sys.exit(f"quickstart: {len(losses)} steps in {sys.argv[1]}, expected 300")
print(f"\n== Loss: {losses[0]:.4f} at the first step, {losses[-1]:.4f} at the last")
if not losses[-1] < losses[0]:  # a NaN does not fall either
    sys.exit("quickstart: the loss did not fall")
PYTHON
echo "   What every stage does when, and needs: $PWD/$out/report.html"
