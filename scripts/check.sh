#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formatting, linters and types; stops at the first tool that finds something.
# Usage: scripts/check.sh [all]
# clang-tidy looks at the C code only and leaves out its path-sensitive analyzer, which takes 15 times as long as all its
# other checks together. `all`: only clang-tidy with that analyzer, on C and C++, and clocks.py on all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
units_wanted=('runtime/src/*.c' 'runtime/port/posix/*.c')
options=(--option=--quiet --option=--warnings-as-errors='*')
if [ "${1:-}" = all ]; then
  .venv/bin/python scripts/clocks.py --all # tests outside the gate must give a reason for their clocks
  units_wanted+=('tools/line/*.cpp' 'tools/pauses/*.cpp' 'agent/core/*.cpp' 'agent/dds/*.cpp' 'agent/io/*.cpp' 'agent/main.cpp')
  units_wanted+=('tools/analysis/*.cpp' 'sim/*.cpp' ':!*/tests/*') # in sim only the names of constants
else
  mapfile -t sources < <(git ls-files -- '*.c' '*.h' '*.hpp' '*.cpp' ':!lab')
  clang-format --dry-run --Werror "${sources[@]}"
  echo "clang-format: ${#sources[@]} files"
  git ls-files -- '*.md' '*.h' '*.c' '*.cpp' '*.py' '*.toml' ':!:*tests/*' ':!lab' | xargs .venv/bin/codespell
  .venv/bin/ruff check . --extend-exclude lab
  .venv/bin/ruff format --check . --exclude lab
  .venv/bin/mypy
  .venv/bin/python scripts/clocks.py
  options+=(--option=--checks=-clang-analyzer-*)
fi
mapfile -t units < <(git ls-files -- "${units_wanted[@]}")
.venv/bin/python scripts/tidy.py "${options[@]}" "${units[@]}" # only files that changed since they last passed
echo "clang-tidy: ${#units[@]} files"
