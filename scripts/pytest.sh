#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests written in Python under one folder; up to three that fail beside others run once more, as scripts/ctest.sh
# does and for the same reason.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest() { .venv/bin/python -m pytest -q "$1" -o cache_dir="build/pytest/$1" "${@:2}"; }
pytest "$1" && exit 0
failed="build/pytest/$1/v/cache/lastfailed"
[ -s "$failed" ] || exit 1
count=$(grep -c '": true' "$failed")
[ "$count" -le 3 ] || exit 1
echo "$count failed, now once more:"
pytest "$1" --last-failed --last-failed-no-failures none
echo "passed the second time"
