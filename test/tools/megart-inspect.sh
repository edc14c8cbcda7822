#!/bin/sh
# Exit codes and messages of megart inspect.
set -u
megart=$1
write=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# expect CODE TEXT ARGUMENTS...: the exit code, and a text in the output.
expect() {
  code=$1
  text=$2
  shift 2
  "$megart" "$@" >"$dir/out" 2>&1
  found=$?
  if [ "$found" -ne "$code" ]; then
    echo "megart $*: exit code $found, expected $code"
    failed=1
  fi
  if ! grep -qF -- "$text" "$dir/out"; then
    echo "megart $*: no '$text' in:"
    cat "$dir/out"
    failed=1
  fi
}

"$write" "$dir/toy.mega" || exit 1
head -c 1000 "$dir/toy.mega" >"$dir/cut.mega"
echo "not a plan, but text that is longer than the header of one would be" \
  >"$dir/text.mega"

expect 0 'memory: 5 KiB (5120 bytes)' inspect "$dir/toy.mega"
expect 0 '"parameter_count": 120' inspect --json "$dir/toy.mega"
expect 65 'the file is cut' inspect "$dir/cut.mega"
expect 65 'not a plan' inspect "$dir/text.mega"
expect 74 'No such file or directory' inspect "$dir/missing.mega"
expect 74 'Is a directory' inspect "$dir"
expect 2 'PLAN is required' inspect
expect 2 'unknown command show' show
expect 0 'Exit codes' --help
exit "$failed"
