#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build and test ros/tide_rclcpp against the rclcpp of the environment. The wheels of the project's environment have none:
# where no ROS 2 with rclcpp is sourced, this says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
found=""
IFS=: read -ra prefixes <<<"${AMENT_PREFIX_PATH:-}:${CMAKE_PREFIX_PATH:-}"
for prefix in "${prefixes[@]}"; do
  if [ -n "$prefix" ] && [ -f "$prefix/share/rclcpp/cmake/rclcppConfig.cmake" ]; then found=$prefix; break; fi
done
if [ -z "$found" ]; then
  echo "ros/tide_rclcpp was neither built nor tested: no rclcpp in AMENT_PREFIX_PATH or CMAKE_PREFIX_PATH"
  exit 0
fi
echo "rclcpp of $found"
log=$(mktemp)
cmake -S ros/tide_rclcpp -B build/rclcpp -G Ninja -DCMAKE_PREFIX_PATH="$(IFS=';'; echo "${prefixes[*]}")" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
rm -f "$log"
cmake --build build/rclcpp -j "${JOBS:-$(nproc)}" --target all measurement_programs
ctest --test-dir build/rclcpp --output-on-failure --no-tests=error
