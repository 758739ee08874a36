#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests written in Python of one kind, so many files at a time (0: one after the other), because most of them
# wait; those marked `alone` follow, one after the other. Those marked `quiet` run when nothing else computes: `quiet` is
# the kind of them. Up to three that fail run once more, one after the other, as scripts/ctest.sh does and for the same
# reason.
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
rm -f "$failed"
beside=0 alone=0
if [ "$1" = quiet ]; then
  pytest -m quiet || alone=$?
else
  pytest -n "${2:-0}" --dist loadfile -m "not alone and not quiet" || beside=$?
  pytest -m alone || alone=$?
  [ "$alone" = 5 ] && alone=0 # there is none
fi
[ "$beside" = 0 ] && [ "$alone" = 0 ] && exit 0
[ -s "$failed" ] || exit 1
count=$(grep -c '": true' "$failed")
[ "$count" -le 3 ] || exit 1
echo "$count failed, now once more alone:"
pytest --last-failed --last-failed-no-failures none
echo "passed alone the second time"
