#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests ros/tide_rclcpp with the rclcpp of the environment. The wheels in the project's environment contain
# no rclcpp. If no ROS 2 with rclcpp is sourced, this script reports that and ends with status 77. With
# TIDE_SANITIZE=address,undefined or TIDE_SANITIZE=thread, the package and its tests are built with these sanitizers, in
# a separate folder.
set -euo pipefail
cd "$(dirname "$0")/.."
found=""
IFS=: read -ra prefixes <<<"${AMENT_PREFIX_PATH:-}:${CMAKE_PREFIX_PATH:-}"
for prefix in "${prefixes[@]}"; do
  if [ -n "$prefix" ] && [ -f "$prefix/share/rclcpp/cmake/rclcppConfig.cmake" ]; then found=$prefix; break; fi
done
if [ -z "$found" ]; then
  echo "ros/tide_rclcpp was neither built nor tested: no rclcpp in AMENT_PREFIX_PATH or CMAKE_PREFIX_PATH"
  exit 77
fi
echo "rclcpp of $found"
build=build/rclcpp
targets="all measurement_programs"
options=()
if [ -n "${TIDE_SANITIZE:-}" ]; then
  build=build/rclcpp-${TIDE_SANITIZE%%,*}
  targets="all soak"
  options=("-DTIDE_SANITIZE=$TIDE_SANITIZE" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS_DEBUG=-O1 -g1" "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1")
  # rclcpp frees messages of its waitables with a size that differs from the allocated one.
  export ASAN_OPTIONS=new_delete_type_mismatch=0 UBSAN_OPTIONS=print_stacktrace=1
  export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/scripts/thread_sanitizer.supp"
  if [ "$TIDE_SANITIZE" = thread ] && ! grep -q __tsan_init "$found/lib/librclcpp.so"; then
    echo "TIDE_SANITIZE=thread: build rclcpp with -fsanitize=thread, too, and put it first: its shared pointers are not seen otherwise" >&2
    exit 2
  fi
fi
log=$(mktemp)
cmake -S ros/tide_rclcpp -B "$build" -G Ninja -DCMAKE_PREFIX_PATH="$(IFS=';'; echo "${prefixes[*]}")" "${options[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
rm -f "$log"
# shellcheck disable=SC2086 # two targets
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target $targets
ctest --test-dir "$build" --output-on-failure --no-tests=error
