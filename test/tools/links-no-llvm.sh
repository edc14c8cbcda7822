#!/bin/sh
# A runtime tool is one small binary: no LLVM, neither linked nor inside.
set -eu
if ldd "$1" | grep -iE 'llvm|mlir'; then
  echo "$1 links LLVM" >&2
  exit 1
fi
if nm -C "$1" | grep -E ' (llvm|mlir)::'; then
  echo "$1 contains LLVM" >&2
  exit 1
fi
