#!/usr/bin/env bash
# scripts/tidy.sh [BASE]: clang-tidy on the C++ files changed since BASE
# (default: the previous commit), with the dev build's flags. `--all` checks
# every file.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1:-HEAD~1}
if [ "$base" = --all ]; then
  list=(git ls-files)
elif git rev-parse -q --verify "$base^{commit}" >/dev/null; then
  list=(git diff --name-only --diff-filter=d "$base" --)
else
  # The first commit, or a shallow clone: nothing to compare with.
  echo "tidy: no commit $base to compare with, checking nothing" >&2
  exit 0
fi
mapfile -t files < <("${list[@]}" '*.cpp' | grep -v '^bench/' || true)
[ ${#files[@]} -eq 0 ] && exit 0
[ -f build/dev/compile_commands.json ] || scripts/build.sh dev
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 4 clang-tidy-22 -p build/dev --quiet \
    --extra-arg=-Wno-ignored-gch \
    --warnings-as-errors='*' 2> >(grep -v 'warnings generated' >&2)
