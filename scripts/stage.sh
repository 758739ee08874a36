#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run one stage of `make`: say what it is, and keep when it began and what it took in build/stages.txt.
# Usage: scripts/stage.sh NAME DESCRIPTION COMMAND...
#        scripts/stage.sh begin      forget the stages so far
#        scripts/stage.sh table      print them, in the order in which they began; some run beside others
set -euo pipefail
cd "$(dirname "$0")/.."
kept=build/stages.txt
now() { printf '%s' "${EPOCHREALTIME/,/.}"; }

case "$1" in
  begin)
    mkdir -p build
    printf 'begin %s\n' "$(now)" >"$kept"
    exit
    ;;
  table)
    sort -s -n -k2 "$kept" | awk -v now="$(now)" 'BEGIN {row = "%-16s %8s %8s %18s\n"; printf row, "stage", "began at", "seconds", "processor seconds"}
      NR == 1 {begin = $2}
      $1 != "begin" {printf row, $1, sprintf("%.0f", $2 - begin), sprintf("%.0f", $3), sprintf("%.0f", $4); processor += $4}
      END {printf row, "in all", "", sprintf("%.0f", now - begin), sprintf("%.0f", processor)}'
    exit
    ;;
esac

name=$1 description=$2
shift 2
printf '\033[1m[%s]\033[0m %s\n' "$name" "$description"
mkdir -p build
began=$(now)
measured=$(mktemp)
status=0
exec 3>&2
TIMEFORMAT='%R %U %S'
{ time "$@" 2>&3; } 2>"$measured" || status=$?
awk -v name="$name" -v began="$began" '{printf "%s %s %.1f %.1f\n", name, began, $1, $2 + $3}' "$measured" >>"$kept"
rm -f "$measured"
exit "$status"
