#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests of one build. A failure prints its output and the seed that replays it.
set -euo pipefail
cd "$(dirname "$0")/.."
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
exec ctest --test-dir "build/$1" -j "$(nproc)" --output-on-failure --progress --no-tests=error
