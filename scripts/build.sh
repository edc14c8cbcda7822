#!/usr/bin/env bash
# scripts/build.sh [preset] [target...]: configures and builds into
# build/<preset>, binaries in build/<preset>/bin. Presets: dev (default),
# release, asan, tsan, fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-dev}
shift || true
scripts/install-deps.sh
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >"/dev/null"
cmake --build "build/$preset" ${@:+--target "$@"}
