#!/usr/bin/env bash
# scripts/format.sh [--check]: formats all C++ files that git tracks, or with
# --check only names what is not formatted and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
'') mode=(-i) ;;
--check) mode=(--dry-run -Werror) ;;
*)
  echo "usage: scripts/format.sh [--check]" >&2
  exit 2
  ;;
esac
scripts/install-deps.sh
# A file deleted but not yet committed is tracked, and not there.
git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' |
  while IFS= read -r -d '' file; do
    if [ -f "$file" ]; then printf '%s\0' "$file"; fi
  done |
  xargs -0 -r clang-format-22 "${mode[@]}" --
