#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests of one build. A failure prints its output and the seed that replays it.
# Many tests use real threads, sockets and terminals, on machines that may stand still for a second. So up to three that
# fail run once more, alone; what passes then is named, and what fails then, or what a sanitizer found, is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
build="build/$1"
# Clang 14 calls the end of a thread an overflow when it has an alternate signal stack.
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:use_sigaltstack=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
run() { ctest --test-dir "$build" --output-on-failure --progress --no-tests=error "$@"; }
run -j "$(nproc)" && exit 0
failed="$build/Testing/Temporary/LastTestsFailed.log"
[ -s "$failed" ] && [ "$(wc -l <"$failed")" -le 3 ] || exit 1
if grep -qE 'ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$build/Testing/Temporary/LastTest.log"; then
  exit 1
fi
names=$(cut -d: -f2 "$failed" | paste -sd' ')
echo "failed beside others, now once more alone: $names"
run -j 1 --rerun-failed
echo "passed alone, failed beside others: $names"
