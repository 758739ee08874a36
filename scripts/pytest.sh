#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of one kind that are written in Python. No test is run twice: a test that fails once is a defect of the
# product or of the test. `timeout` in pyproject.toml ends a test that hangs.
# Usage: scripts/pytest.sh KIND [FILES_AT_A_TIME]
#   unit      the command and the ROS 2 executors, with the sanitizers' build (build/asan)
#   real      one test for each kind of communication (line, DDS, rclpy), with the same build
#   firmware  the images of the gate in QEMU
#   full      what `make test` leaves out, except images, with build/release
#   firmware-full   the other images, with the optimised programs
set -euo pipefail
cd "$(dirname "$0")/.."
case "$1" in
  unit) build=asan mark="not full" folders=(tools/tests ros/tests tests/house) ;;
  real) build=asan mark="not full" folders=(tests/real) ;;
  firmware) build=asan mark="not full" folders=(tests/firmware) ;;
  full) build=release mark="full" folders=(tools/tests ros/tests tests/house tests/real tests/ros2 tests/packages) ;;
  firmware-full) build=release mark="full" folders=(tests/firmware) ;;
  *) echo "pytest.sh: unknown kind '$1'; one of unit, real, firmware, full, firmware-full" >&2; exit 2 ;;
esac
export TIDE_BUILD_DIR="$PWD/build/$build"
reports="$PWD/build/$build/reports" # for programs that a test ends, or whose status the test does not check
rm -rf "$reports"
mkdir -p "$reports"
export ASAN_OPTIONS="log_path=$reports/report" UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:log_path=$reports/report"
status=0
.venv/bin/python -m pytest -q --durations 12 --processor-seconds "${folders[@]}" -o cache_dir="build/pytest/$1" -n "${2:-0}" --dist loadfile \
  -m "$mark" || status=$?
for report in "$reports"/*; do
  [ -e "$report" ] || continue
  cat "$report"
  status=1
done
exit "$status"
