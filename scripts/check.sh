#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formatting, static analysis and types; stops at the first tool that finds something.
# Usage: scripts/check.sh [all]. Without `all` clang-tidy looks at the C code only: the headers of Fast DDS take minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t sources < <(git ls-files -- '*.c' '*.h' '*.cpp' '*.hpp')
clang-format --dry-run --Werror "${sources[@]}"
units_wanted=('src/*.c' 'link/*.c' 'port/posix/*.c')
[ "${1:-}" = all ] && units_wanted+=('line/*.cpp' 'agent/*.cpp')
mapfile -t units < <(git ls-files -- "${units_wanted[@]}")
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p build/release --quiet --warnings-as-errors='*' \
  2> >(grep -vE 'warnings? generated|^Suppressed|^Use -header-filter' >&2)
.venv/bin/ruff check python tests bench
.venv/bin/ruff format --check python tests bench
.venv/bin/mypy
