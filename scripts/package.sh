#!/usr/bin/env bash
# scripts/package.sh [--build DIR] [OUTPUT.tar.gz]: a relocatable archive of
# megart with every library it needs but glibc's, to unpack on a node that has
# nothing else. Layout: megart-VERSION/bin/megart, megart-VERSION/lib/*.so.
# With --build, megart as built there; else build/release is brought up to date
# first.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "usage: scripts/package.sh [--build DIR] [OUTPUT.tar.gz]" >&2
  exit 2
}

build=
output=
while [ $# -gt 0 ]; do
  case $1 in
  --build)
    [ $# -ge 2 ] || usage
    build=$2
    shift
    ;;
  -*) usage ;;
  *)
    [ -z "$output" ] || usage
    output=$1
    ;;
  esac
  shift
done
if [ -z "$build" ]; then
  scripts/build.sh release megart
  build=build/release
fi
version=$(sed -n 's/^project(mega VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
output=${output:-build/megart-$version.tar.gz}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/megart-$version
# Not copied from the build folder: the installed program is the one that looks
# for its libraries beside itself.
cmake --install "$build" --component megart --strip --prefix "$stage" >/dev/null
mkdir "$stage/lib"
# glibc belongs to the machine: it goes with its loader and its kernel.
ldd "$stage/bin/megart" >"$work/libraries"
if grep -q 'not found' "$work/libraries"; then
  cat "$work/libraries" >&2
  exit 1
fi
awk '$2 == "=>" {print $3}' "$work/libraries" |
  grep -vE '/(libc|libm|libpthread|libdl|librt|libmvec|ld-linux[^/]*)\.so' |
  while read -r library; do
    install -m 644 "$library" "$stage/lib/"
  done
mkdir -p "$(dirname "$output")"
# Written beside and renamed: an archive is whole or not there.
tar -C "$work" --owner=0 --group=0 --sort=name -czf "$output.tmp-$$" \
  "megart-$version"
mv "$output.tmp-$$" "$output"
echo "$output"
