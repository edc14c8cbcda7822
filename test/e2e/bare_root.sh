#!/usr/bin/env bash
# bare_root.sh DIR: makes DIR a bare Debian root, unless it is one already. It
# is made under another name and renamed when complete, so that an interrupted
# download is never taken for a root. Needs root, for debootstrap's chroot.
set -euo pipefail
root=$1
[ -d "$root" ] && exit 0
mkdir -p "$(dirname "$root")"
partial=$(mktemp -d "$root.partial-XXXXXX")
trap 'rm -rf "$partial"' EXIT
chmod 755 "$partial"
# No mirror given: debootstrap's own choice for the suite.
debootstrap --variant=minbase bookworm "$partial" >"$root.log" 2>&1 ||
  { tail -20 "$root.log" >&2; exit 1; }
rm -rf "$partial"/var/cache/apt/archives/*.deb "$partial"/var/lib/apt/lists/*
mv "$partial" "$root"
