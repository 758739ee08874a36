#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests written in Python of one kind, so many files at a time (0: one after the other), because most of them
# wait; those marked `alone` follow, one after the other. Those marked `quiet` run when nothing else computes: `quiet` is
# the kind of them. Up to three that fail run once more, one after the other, as scripts/ctest.sh does and for the same
# reason. A process that a test ends or that stands still (`timeout` in pyproject.toml) is replaced, twice at most, and the
# new one runs that test again; if it passes then, it is named here.
# Usage: scripts/pytest.sh python|quiet|firmware [FILES_AT_A_TIME]
set -euo pipefail
cd "$(dirname "$0")/.."
case "$1" in
  python | quiet) folders=(tools/tests ros/tests lab/tests tests/house tests/packages tests/ros2) ;;
  firmware) folders=(tests/firmware) ;;
  *) echo "pytest.sh: unknown kind '$1'; one of python, quiet, firmware" >&2; exit 2 ;;
esac
cache="build/pytest/$1"
pytest() { .venv/bin/python -m pytest -q --durations 12 "${folders[@]}" -o cache_dir="$cache" "$@"; }
failed="$cache/v/cache/lastfailed"
ended="$cache/v/tide/ended"
rm -f "$failed" "$ended"
beside=0 alone=0
if [ "$1" = quiet ]; then
  pytest -m quiet || alone=$?
else
  pytest -n "${2:-0}" --dist loadfile --max-worker-restart 2 -m "not alone and not quiet" || beside=$?
  pytest -m alone || alone=$?
  [ "$alone" = 5 ] && alone=0 # there is none
fi
[ "$beside" = 0 ] && [ "$alone" = 0 ] && exit 0
if [ ! -s "$failed" ]; then
  [ "$beside" = 1 ] && [ "$alone" = 0 ] && [ -s "$ended" ] || exit 1
  echo "ended their process, and passed in a new one: $(tr -d '\n' <"$ended")"
  exit 0
fi
count=$(grep -c '": true' "$failed")
[ "$count" -le 3 ] || exit 1
echo "$count failed, now once more alone:"
pytest --last-failed --last-failed-no-failures none
echo "passed alone the second time"
