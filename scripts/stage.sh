#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one stage of `make`. Its output goes to build/stages/NAME.log and to the terminal. There, each line begins with
# the stage's name, because several stages run at the same time. Its times are stored for the table.
# Usage: scripts/stage.sh NAME DESCRIPTION COMMAND...
#        scripts/stage.sh begin      forget the earlier stages
#        scripts/stage.sh table      print them in the order in which they began, and the number of tests that passed
#        scripts/stage.sh files      print the seconds of each test program (elapsed) and file in Python (processor), by stage
# A command that ends with status 77 had nothing to test on this machine. That is not a failure, and the table reports
# it. RESUME=yes: a stage that has already passed on exactly this tree is not run again, and the table shows its earlier
# figures.
set -euo pipefail
cd "$(dirname "$0")/.."
kept=build/stages
now() { printf '%s' "${EPOCHREALTIME/,/.}"; }

# Identifies the sources: the commit, and all files that are changed or new.
tree() {
  { git rev-parse HEAD && git diff HEAD && git ls-files -o --exclude-standard -z | xargs -0r sha256sum; } 2>/dev/null | sha256sum | cut -d' ' -f1
}

# Adds up the passed tests in lines like "[ PASSED ] 12 tests." (GoogleTest) and "12 passed, 3 deselected in 4.20s"
# (pytest).
count_passed() {
  cat "$kept"/*.log "$kept"/*.gtest 2>/dev/null | awk '
    /\[  PASSED  \] [0-9]+ test/ {for (i = 1; i < NF; i++) if ($i == "PASSED") passed += $(i + 2)}
    / passed.* in [0-9.]+s/ {for (i = 2; i <= NF; i++) if ($i ~ /^passed,?$/) passed += $(i - 1)}
    END {print passed + 0}'
}

case "$1" in
  begin)
    mkdir -p "$kept"
    [ -n "${RESUME:-}" ] || rm -f "$kept"/*.log "$kept"/*.gtest "$kept"/*.passed
    printf 'begin %s\n' "$(now)" >"$kept/times"
    exit
    ;;
  table)
    sort -s -n -k2 "$kept/times" | awk -v now="$(now)" 'BEGIN {row = "%-18s %8s %8s %18s  %s\n"; printf row, "stage", "began at", "seconds", "processor seconds", ""}
      NR == 1 {begin = $2}
      $1 != "begin" {printf row, $1, sprintf("%.0f", $2 - begin), sprintf("%.0f", $3), sprintf("%.0f", $4), $5; processor += $4}
      END {printf row, "in all", "", sprintf("%.0f", now - begin), sprintf("%.0f", processor), ""}'
    failed=$(grep -c ' failed$' "$kept/times" || true)
    if [ "$failed" -gt 0 ]; then
      echo "$failed of the stages failed; their output is in $kept"
      exit 1
    fi
    absent=$(awk '/ absent$/ {printf " %s", $1}' "$kept/times")
    echo "$(count_passed) passed, 0 failed${absent:+; this machine has nothing to test for:$absent}"
    exit
    ;;
  files)
    for log in "$kept"/*.log; do
      awk -v stage="$(basename "$log" .log)" '
        / Test +#[0-9]+: .* Passed / {print stage, $(NF - 1), $4}
        / processor seconds, in files/ {listed = 1; next}
        /^=/ {listed = 0}
        listed && NF == 2 {print stage, $1, $2}' "$log"
    done | awk '{printf "%-20s %8.1f  %s\n", $1, $2, $3}' | sort -k1,1 -k2,2nr
    exit
    ;;
esac

name=$1 description=$2
shift 2
mkdir -p "$kept"
stamp="$kept/$name.passed"
if [ -n "${RESUME:-}" ] && [ -f "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$(tree)" ]; then
  printf '\033[1m[%s]\033[0m passed before on this tree\n' "$name"
  printf '%s %s %s before\n' "$name" "$(now)" "$(sed -n 2p "$stamp")" >>"$kept/times"
  exit 0
fi
rm -f "$stamp" "$kept/$name.gtest"
printf '\033[1m[%s]\033[0m %s\n' "$name" "$description"
began=$(now)
measured=$(mktemp)
status=0
TIMEFORMAT='%R %U %S'
{ time "$@" 2>&1; } 2>"$measured" | tee "$kept/$name.log" | sed -u "s/^/[$name] /" || status=${PIPESTATUS[0]}
word=passed
case "$status" in 0) ;; 77) word=absent status=0 ;; *) word=failed ;; esac
took=$(tail -n 1 "$measured" | awk '{printf "%.1f %.1f", $1, $2 + $3}')
printf '%s %s %s %s\n' "$name" "$began" "$took" "$word" >>"$kept/times"
rm -f "$measured"
[ "$word" != passed ] || { tree && echo "$took"; } >"$stamp"
printf '\033[1m[%s]\033[0m %s\n' "$name" "$word"
exit "$status"
