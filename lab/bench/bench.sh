#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every measurement and prints the command of each before its output. If a measurement fails or misses its goal,
# the others continue; the last lines name it, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

missed=()
run() {
  printf '\n\033[1m$ %s\033[0m\n' "$*"
  "$@" || missed+=("$*: exit status $?")
}

instructions() { # LABEL HANDLES FUNCTION COUNT PROGRAM...: counts the instructions of each of COUNT rounds or calls
  local out label=$1 handles=$2 function=$3 count=$4
  shift 4
  out=$(mktemp)
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$function" "$@" "$handles" >"$out" 2>&1
  awk -v label="$label" -v handles="$handles" -v count="$count" \
    '/Collected/ {printf "%-20s %5d handles: %8.0f instructions\n", label, handles, $NF / count}' "$out"
  rm -f "$out"
}

run build/release/bin/dispatch_bench
printf '\n\033[1m$ valgrind --tool=callgrind --toggle-collect=measured_rounds build/release/bin/dispatch_bench --count POLICY HANDLES\033[0m\n'
for handles in 10 100 1000; do
  for policy in tide batch readyset; do
    instructions "$policy" "$handles" measured_rounds 10000 build/release/bin/dispatch_bench --count "$policy"
  done
done

instructions "a record of a trace" 1 measured_records 1024 build/release/bin/trace_bench

run .venv/bin/python lab/bench/analysis_cost.py
run .venv/bin/python lab/bench/analysis_tightness.py
# Also measures the stock programs if TIDE_STOCK_AGENT and TIDE_STOCK_CLIENT name them.
run .venv/bin/python lab/bench/end_to_end.py
run .venv/bin/python lab/bench/fleet.py

if [ ${#missed[@]} -gt 0 ]; then
  printf '\nnot as they should be:\n' >&2
  printf '  %s\n' "${missed[@]}" >&2
  exit 1
fi
