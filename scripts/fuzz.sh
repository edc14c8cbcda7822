#!/usr/bin/env bash
# scripts/fuzz.sh [TARGET|all] [SECONDS]: builds the preset `fuzz` and runs one
# target, or all of them one after another, for SECONDS each (600). Targets:
# plan index safetensors tokenizer mlir. Starts from test/fuzz/corpus and from
# what earlier runs found (build/fuzz/found); an input that crashes, hangs, leaks
# or takes too much memory is left in build/fuzz/faults, and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-all}
seconds=${2:-600}
targets=(plan index safetensors tokenizer mlir)
if [ "$target" != all ]; then
  [[ " ${targets[*]} " == *" $target "* ]] || {
    echo "usage: scripts/fuzz.sh [all|${targets[*]// /|}] [SECONDS]" >&2
    exit 2
  }
  targets=("$target")
fi

# The compiler's target is in the everyday build: test/fuzz/CMakeLists.txt.
scripts/build.sh fuzz fuzz
scripts/build.sh dev megac fuzz-mlir

# Plans change with the schema, so their corpus is made.
made=build/fuzz/made/plan
mkdir -p "$made"
build/fuzz/bin/write-toy-plan "$made/toy.mega"
for model in gpt2-tiny-dropout llama-tiny; do
  build/dev/bin/megac "examples/$model.mlir" --precision bf16 -o "$made/$model.mega"
done

most() { # bytes of the largest input
  case $1 in
  plan) echo 65536 ;;
  mlir) echo 8192 ;;
  *) echo 4096 ;;
  esac
}

failed=0
for name in "${targets[@]}"; do
  found=build/fuzz/found/$name
  faults=build/fuzz/faults/$name
  mkdir -p "$found" "$faults"
  corpora=("$found")
  for folder in "test/fuzz/corpus/$name" "build/fuzz/made/$name"; do
    [ -d "$folder" ] && corpora+=("$folder")
  done
  options=()
  [ -f "test/fuzz/$name.dict" ] && options+=("-dict=test/fuzz/$name.dict")
  # The compiler's diagnostics would bury everything else; its mutator makes whole
  # models from the start.
  [ "$name" = mlir ] && options+=(-close_fd_mask=2 -len_control=0)
  binary=build/fuzz/bin/fuzz-$name
  [ "$name" = mlir ] && binary=build/dev/bin/fuzz-mlir
  log=build/fuzz/$name.log
  echo "fuzz-$name: $seconds s"
  # 512 MiB for one allocation or 2 GiB in all are unbounded for inputs of this
  # size.
  if ! UBSAN_OPTIONS=print_stacktrace=1 \
    "$binary" "${corpora[@]}" "${options[@]}" \
    -max_total_time="$seconds" -max_len="$(most "$name")" -timeout=20 \
    -rss_limit_mb=2048 -malloc_limit_mb=512 -artifact_prefix="$faults/" \
    -print_final_stats=1 >"$log" 2>&1; then
    failed=1
    tail -n 40 "$log" >&2
    echo "fuzz-$name: failed; the input is in $faults" >&2
  fi
  grep -ah 'number_of_executed_units\|peak_rss' "$log" | sed "s/^/fuzz-$name: /" || true
done
exit $failed
