#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run one stage of `make`: say what it is, and keep what it took in build/stages.txt.
# Usage: scripts/stage.sh NAME DESCRIPTION COMMAND...
#        scripts/stage.sh begin      forget the stages so far
#        scripts/stage.sh table      print them
set -euo pipefail
cd "$(dirname "$0")/.."
kept=build/stages.txt

case "$1" in
  begin)
    rm -f "$kept"
    exit
    ;;
  table)
    awk 'BEGIN {printf "%-16s %8s %18s\n", "stage", "seconds", "processor seconds"}
         {printf "%-16s %8.0f %18.0f\n", $1, $2, $3; seconds += $2; processor += $3}
         END {printf "%-16s %8.0f %18.0f\n", "in all", seconds, processor}' "$kept"
    exit
    ;;
esac

name=$1 description=$2
shift 2
printf '\033[1m[%s]\033[0m %s\n' "$name" "$description"
mkdir -p build
measured=$(mktemp)
status=0
exec 3>&2
TIMEFORMAT='%R %U %S'
{ time "$@" 2>&3; } 2>"$measured" || status=$?
awk -v name="$name" '{printf "%s %.1f %.1f\n", name, $1, $2 + $3}' "$measured" >>"$kept"
rm -f "$measured"
exit "$status"
