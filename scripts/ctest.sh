#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the C and C++ tests of one build. For a failed test, prints its output and the seed that replays it. No test is
# run twice. The tests of the laboratory have a Makefile of their own.
# Usage: scripts/ctest.sh PRESET [gate]     gate: only the programs of `make test`
set -euo pipefail
cd "$(dirname "$0")/.."
build="build/$1"
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/scripts/thread_sanitizer.supp"
status=0
ctest --test-dir "$build" --output-on-failure --no-tests=error -j "$(nproc)" ${2:+-L "$2"} -LE lab || status=$?
# scripts/stage.sh counts the tests that passed.
mkdir -p build/stages
grep -h '\[  PASSED  \]' "$build/Testing/Temporary/LastTest.log" >"build/stages/ctest-$1.gtest" || true
exit "$status"
