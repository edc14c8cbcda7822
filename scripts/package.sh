#!/usr/bin/env bash
# scripts/package.sh [OUTPUT.tar.gz]: a relocatable archive of megart with every
# library it needs but glibc's, to unpack on a node that has nothing else.
# Layout: megart-VERSION/bin/megart, megart-VERSION/lib/*.so.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release megart
version=$(sed -n 's/^project(mega VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
output=$(realpath -m "${1:-build/megart-$version.tar.gz}")
stage=build/package/megart-$version
rm -rf build/package
mkdir -p "$stage/bin" "$stage/lib"
install -s build/release/bin/megart "$stage/bin/megart"
# glibc belongs to the machine: it goes with its loader and its kernel.
ldd build/release/bin/megart | awk '$2 == "=>" {print $3}' |
  grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
  while read -r library; do
    install -m 644 "$library" "$stage/lib/"
  done
tar -C build/package --owner=0 --group=0 --sort=name -czf "$output" "megart-$version"
echo "$output"
