#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs one test of any kind, and nothing else. Tests of the runtime need only a compiler, CMake, Ninja and
# GoogleTest.
# Usage: scripts/one_test.sh NAME[:FILTER] [PRESET]
#   NAME: a test program (queue_heap_test) or a file of tests in Python (test_check), with or without its ending
#   FILTER: of GoogleTest (Heap.*) or pytest's -k
#   PRESET: release, asan or tsan; not for tests in Python
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1%%:*} filter=""
[ "$name" = "$1" ] || filter=${1#*:}
preset=${2:-release}
name=$(basename "${name%.*}")
path=$(git ls-files -co --exclude-standard -- "*/$name.cpp" "*/$name.py" | grep -E '(^|/)tests/' | head -1 || true)
# A program that consists of several files is listed only in a CMakeLists.txt.
[ -n "$path" ] || path=$(git grep -lw "$name" -- '*CMakeLists.txt' | grep /tests/ | head -1 || true)
if [ -z "$path" ]; then
  echo "no test is called '$name'; the nearest:" >&2
  git ls-files -- '*_test.cpp' '*/test_*.py' | sed 's#.*/##; s#\.[a-z]*$##' | grep -iF -- "${name%_test}" | head -5 >&2 || true
  exit 2
fi

case "$path" in
  *.py)
    scripts/setup.sh gate
    case "$path" in
      lab/*) make -C lab build ;;
      tests/firmware/*) for core in cortex-m7 cortex-m4f; do scripts/build.sh "$core"; done; scripts/build.sh release programs ;;
      ros/tests/*) scripts/build.sh release tide_ros_budget ;;
      tools/tests/*) scripts/build.sh release programs ;;
      *) scripts/build.sh release all ;;
    esac
    exec .venv/bin/python -m pytest -q "$path" ${filter:+-k "$filter"}
    ;;
  runtime/tests/*)
    build="build/runtime-$preset"
    case "$preset" in
      release) options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo) ;;
      asan) options=(-DCMAKE_BUILD_TYPE=Debug -DTIDE_SANITIZE=address,undefined) ;;
      tsan) options=(-DCMAKE_BUILD_TYPE=Debug -DTIDE_SANITIZE=thread) ;;
      *) echo "unknown preset '$preset'; one of release, asan, tsan" >&2; exit 2 ;;
    esac
    cmake -S runtime -B "$build" -G Ninja -DTIDE_TESTS=ON "${options[@]}" >/dev/null
    cmake --build "$build" --target "$name"
    program=$(find "$build" -name "$name" -type f -perm -u+x | head -1)
    ;;
  *)
    scripts/setup.sh gate
    scripts/build.sh "$preset" "$name"
    program="build/$preset/bin/$name"
    ;;
esac
exec "$program" ${filter:+--gtest_filter="$filter"}
