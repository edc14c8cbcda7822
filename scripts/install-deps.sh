#!/usr/bin/env bash
# Installs what the project needs on a bare Debian 12 machine. Every entry
# command (quickstart, build, test, format) calls this one script; it does
# nothing when all packages are there. Set MEGA_SKIP_INSTALL=1 to never install.
set -euo pipefail

compiler=(g++ cmake ninja-build ccache git pkgconf
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools)
runtime=(libflatbuffers-dev flatbuffers-compiler libopenblas-serial-dev
  libhwy-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev zlib1g-dev
  libxxhash-dev libsentencepiece-dev libpcre2-dev libutf8proc-dev libgloo-dev)
tests=(libgtest-dev libgmock-dev clang-format-22 clang-tidy-22 clang-22
  libclang-rt-22-dev strace debootstrap binutils iproute2
  python3 perl-doc chromium chromium-driver)

wanted=("${compiler[@]}" "${runtime[@]}" "${tests[@]}")
missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "${MEGA_SKIP_INSTALL:-0}" = 1 ]; then
  echo "install-deps: missing packages: ${missing[*]}" >&2
  echo "install-deps: MEGA_SKIP_INSTALL=1 is set; install them with apt-get" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: need root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  sudo=(sudo)
fi
echo "install-deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
