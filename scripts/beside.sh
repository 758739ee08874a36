#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run two lists of stages beside each other: tests, of which most wait, and what only computes and takes the processors
# when no test wants them. So no test has to stand a machine that is busy with its own project, and no processor is idle.
# The tests are seen as they run. What computes writes to build/beside/STAGE.log: that is shown while the tests wait for
# it, and when it has failed; each end is told.
# Usage: scripts/beside.sh TEST... -- COMPUTING...     each a target of the Makefile; TEST:STAGE waits for the STAGE
set -euo pipefail
cd "$(dirname "$0")/.."
tests=() computing=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do tests+=("$1"); shift; done
shift
computing=("$@")
logs=build/beside
rm -rf "$logs"
mkdir -p "$logs"

stage() { "${MAKE:-make}" --no-print-directory BUILT=yes "$1"; }
say() { printf '\033[1m[%s]\033[0m %s\n' "$1" "$2"; }

# All of it has one group of processes, to be ended together. A session of its own would make its niceness void, where the
# kernel shares the processors among sessions.
compute() {
  renice -n 19 -p "$BASHPID" >/dev/null
  local name began
  for name in "${computing[@]}"; do
    began=$SECONDS
    if stage "$name" >>"$logs/$name.log" 2>&1 </dev/null; then
      touch "$logs/$name.passed"
      say "$name" "passed beside the tests, in $((SECONDS - began)) s"
    else
      cat "$logs/$name.log"
      say "$name" "failed; the stage that runs now is the last"
      echo "$name" >"$logs/failed"
      return 1
    fi
  done
}

set -m
compute &
computer=$!
set +m
shown=""
end() {
  [ -z "$computer" ] || kill -TERM -- "-$computer" 2>/dev/null || true
  [ -z "$shown" ] || kill "$shown" 2>/dev/null || true
}
trap end EXIT
trap 'exit 130' INT TERM

stop() { say "$(cat "$logs/failed")" "failed: see above, or $logs/$(cat "$logs/failed").log" >&2; exit 1; }

# wait_for STAGE: shows what it says meanwhile.
wait_for() {
  [ -e "$logs/$1.passed" ] && return 0
  [ -e "$logs/failed" ] && return 1
  say "$1" "is waited for"
  touch "$logs/$1.log"
  tail -n 3 -f "$logs/$1.log" & shown=$!
  while [ ! -e "$logs/$1.passed" ] && [ ! -e "$logs/failed" ]; do sleep 0.2; done
  kill "$shown" 2>/dev/null || true
  wait "$shown" 2>/dev/null || true
  shown=""
  [ -e "$logs/$1.passed" ]
}

for name in "${tests[@]}"; do
  [ "${name%%:*}" = "$name" ] || wait_for "${name#*:}" || stop
  if [ -e "$logs/failed" ]; then stop; fi
  stage "${name%%:*}"
done
for name in "${computing[@]}"; do wait_for "$name" || stop; done
status=0
wait "$computer" || status=$?
computer=""
exit "$status"
