#!/usr/bin/env bash
# bench/run-ranks.sh [BUILD_DIR] [LENGTH [BATCH]]: step times of gpt2-124m with
# tp 2, two ranks of one thread each, against one rank with two threads, at
# sequence 64 and batch 4 unless given (docs/performance.md). Takes about two
# minutes. Without a build folder it builds build/release.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-}
if [ -z "$build" ]; then
  scripts/build.sh release megac bench-ranks
  build=build/release
fi
length=${2:-64} batch=${3:-4}
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
for tp in 1 2; do
  "$build/bin/megac" examples/gpt2-124m.mlir --seq-length "$length" \
    --micro-batch-size "$batch" --global-batch-size "$batch" --tp "$tp" \
    -o "$plans/gpt2-124m-tp$tp.mega"
done
"$build/bin/bench-ranks" "$plans"/gpt2-124m-tp{1,2}.mega --threads 2 --seconds 90
