#!/usr/bin/env bash
# scripts/test.sh [--exhaustive]: installs, builds, checks format, generated docs
# and (with clang-tidy) what changed since the previous commit, and runs every
# test, then fuzzes for a moment; the last line counts the tests. --exhaustive widens the sweeps of the tests
# (they read MEGA_EXHAUSTIVE) and repeats all of them under the sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=(dev)
case "${1:-}" in
'') ;;
--exhaustive)
  presets=(dev asan tsan)
  export MEGA_EXHAUSTIVE=1
  ;;
*)
  echo "usage: scripts/test.sh [--exhaustive]" >&2
  exit 2
  ;;
esac

say() { printf '\n== %s\n' "$*"; }
failed=()

for preset in "${presets[@]}"; do
  say "Building ($preset)"
  scripts/build.sh "$preset"
done

say "Checking the format"
scripts/format.sh --check || failed+=(format)

say "Checking that generated docs are current"
scripts/gen-docs.sh --check || failed+=(docs)

say "Static analysis of changed files"
scripts/tidy.sh || failed+=(tidy)

reports=()
for preset in "${presets[@]}"; do
  build=$PWD/build/$preset
  reports+=("$build/ctest.xml" "$build/lit.xml")
  rm -f "$build/ctest.xml" "$build/lit.xml"

  say "Unit tests ($preset)"
  ctest --test-dir "$build" --output-on-failure --no-tests=error \
    --parallel "$(nproc)" --output-junit "$build/ctest.xml" ||
    failed+=("ctest ($preset)")

  say "Compiler and command-line tests ($preset)"
  /usr/lib/llvm-22/bin/lit -sv "$build/test" \
    --xunit-xml-output "$build/lit.xml" || failed+=("lit ($preset)")
done

say "Fuzzing, briefly"
scripts/fuzz.sh all 5 || failed+=(fuzz)

# A step that failed without a failed test (a crash of the runner, the format)
# counts as one failure.
python3 - "${#failed[@]}" "${reports[@]}" <<'PYTHON' || failed+=(tests)
import sys
import xml.etree.ElementTree as ElementTree

steps, paths = int(sys.argv[1]), sys.argv[2:]
passed = failed = skipped = 0
for path in paths:
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"test.sh: no results from {path}: {error}", file=sys.stderr)
        failed += 1
        continue
    for case in cases:
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            print(f"test.sh: failed test: {case.get('name')}", file=sys.stderr)
            failed += 1
        elif skip is None and case.get("status") != "disabled":
            passed += 1
        elif case.get("status") == "notrun" and not skip.get("message").startswith("SKIP_"):
            failed += 1  # CTest could not start it: not built, not found
        else:
            skipped += 1
if steps and not failed:
    failed = steps
print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)
PYTHON

if [ ${#failed[@]} -gt 0 ]; then
  echo "test.sh: failed: ${failed[*]}" >&2
  exit 1
fi
