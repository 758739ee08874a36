#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The agent with the real DDS under AddressSanitizer, in the tests that use it together with ROS 2; everything else is of
# build/release. Fast DDS itself is as Debian ships it: it deletes its own readers with another size than it allocated.
# Not under ThreadSanitizer: what an uninstrumented Fast DDS puts in order by timed locks is not seen.
# Usage: scripts/sanitized_agent.sh [pytest's words]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh asan tide-agent
folder="$PWD/build/asan-agent"
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/reports"
ln -s "$PWD"/build/release/bin/* "$folder/bin"
ln -sf "$PWD/build/asan/bin/tide-agent" "$folder/bin/tide-agent"
ln -s "$PWD/build/release/lib" "$folder/lib"
report="log_path=$folder/reports/report"
export ASAN_OPTIONS="new_delete_type_mismatch=0:detect_leaks=1:$report"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:$report"
tests=(tests/ros2/test_exchange.py tests/ros2/test_graph.py tests/ros2/test_restart.py tests/ros2/test_services.py)
status=0
TIDE_BUILD_DIR="$folder" .venv/bin/python -m pytest -q -o cache_dir=build/pytest/asan-agent "${tests[@]}" "$@" || status=$?
for file in "$folder"/reports/*; do
  [ -e "$file" ] || continue
  cat "$file"
  status=1
done
exit "$status"
