#!/usr/bin/env bash
# bench/run-training.sh [BUILD_DIR]: tokens per second of gpt2-124m, batch 4,
# at sequence 64 and 512 on two threads, as fractions of the machine's GEMM peak
# (docs/performance.md). Without a build folder it builds build/release.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-}
if [ -z "$build" ]; then
  scripts/build.sh release megac bench-training
  build=build/release
fi
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
for length in 64 512; do
  "$build/bin/megac" examples/gpt2-124m.mlir --seq-length "$length" \
    --micro-batch-size 4 --global-batch-size 4 \
    -o "$plans/gpt2-124m-$length.mega"
done
"$build/bin/bench-training" "$plans"/gpt2-124m-{64,512}.mega \
  --threads 2 --seconds 20
