#!/usr/bin/env bash
# run_in_root.sh ROOT ARCHIVE PLAN DATA: unpacks the archive in a bare root and
# uses megart there; the program is copied beside ARCHIVE for a look at it.
set -euo pipefail
root=$1 archive=$2 plan=$3 data=$4
work=$(mktemp -d "$root/tmp/mega-XXXXXX")
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xzf "$archive"
cp "$plan" "$work/plan.mega"
cp "$data.bin" "$work/data.bin"
cp "$data.idx" "$work/data.idx"
bin=$(cd "$work" && echo megart-*/bin)
cp "$work/$bin/megart" "$(dirname "$archive")/megart"

cat >"$work/use.sh" <<EOS
set -eu
cd "${work#"$root"}"
if ls /usr/bin/cc /usr/lib/*/*blas* 2>/dev/null; then
  echo "this root is not bare"
  exit 1
fi
echo "no compiler, no OpenBLAS"
$bin/megart --version
$bin/megart inspect plan.mega
$bin/megart train plan.mega --data data --steps 2 --lr 1e-3
EOS
# The loader finds $ORIGIN through /proc. Mounted in a name space of its own, it
# is gone with the last process.
unshare --mount /bin/sh -c 'mount -t proc proc "$1/proc" && shift &&
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$@"' \
  sh "$root" "$root" /bin/sh "${work#"$root"}/use.sh"
