#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Coverage-guided fuzzing of every fuzzer, SECONDS each. Inputs that find a defect are kept in build/fuzz/findings.
# Usage: scripts/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DTIDE_FUZZ=ON >/dev/null
fuzzers=$(cmake --build build/fuzz --target help | sed -n 's/^\([a-z_]*_fuzz\): phony$/\1/p')
# shellcheck disable=SC2086
cmake --build build/fuzz --target $fuzzers wire_corpus
mkdir -p build/fuzz/findings
build/fuzz/bin/wire_corpus build/fuzz/corpus/wire_fuzz
for fuzzer in $fuzzers; do
  echo "fuzzing with $fuzzer for $seconds s on each of $(nproc) cores"
  mkdir -p "build/fuzz/corpus/$fuzzer"
  build/fuzz/bin/"$fuzzer" "build/fuzz/corpus/$fuzzer" -max_total_time="$seconds" -jobs="$(nproc)" -workers="$(nproc)" \
    -artifact_prefix=build/fuzz/findings/ -print_final_stats=1
done
