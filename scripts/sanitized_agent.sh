#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The agent with the real DDS under a sanitizer, in the tests that use it together with ROS 2; everything else is of
# build/release. Fast DDS itself is as Debian ships it: it deletes its own readers with another size than it allocated,
# and ThreadSanitizer does not see what its code orders, so reports in which it takes part are left out there.
# Usage: scripts/sanitized_agent.sh asan|tsan [pytest's words]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
scripts/build.sh "$preset" tide-agent
folder="$PWD/build/$preset-agent"
rm -rf "$folder"
mkdir -p "$folder/agent" "$folder/reports"
ln -s "$PWD/build/$preset/agent/tide-agent" "$folder/agent/tide-agent"
for other in examples line tests; do ln -s "$PWD/build/release/$other" "$folder/$other"; done
report="log_path=$folder/reports/report"
export ASAN_OPTIONS="new_delete_type_mismatch=0:detect_leaks=1:$report"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:$report"
export TSAN_OPTIONS="halt_on_error=0:suppressions=$PWD/tests/data/fast_dds.tsan:$report"
tests=(tests/python/test_exchange.py tests/python/test_graph.py tests/python/test_restart.py tests/python/test_services.py)
status=0
TIDE_BUILD_DIR="$folder" .venv/bin/python -m pytest -q -o cache_dir="build/pytest/$preset-agent" "${tests[@]}" "$@" || status=$?
for file in "$folder"/reports/*; do
  [ -e "$file" ] || continue
  cat "$file"
  status=1
done
exit "$status"
