#!/usr/bin/env bash
# bench/run-compile.sh [BUILD_DIR [OPTION...]]: what compiling gpt-1t takes as
# stages, micro-batches, layers and ranks grow (docs/performance.md). Options are
# those of bench-compile, such as `--sweep depth`. Takes half a minute, and ten
# minutes where valgrind has to count instructions. Without a build folder it
# builds build/release. The exit code is 1 if a limit is broken.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-}
shift || true
if [ -z "$build" ]; then
  scripts/build.sh release megac bench-compile
  build=build/release
fi
"$build/bin/bench-compile" "$build/bin/megac" examples/gpt-1t.mlir "$@"
