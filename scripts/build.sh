#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one preset, or some targets of it. The progress line is ninja's own status line.
# Usage: scripts/build.sh PRESET [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
log=$(mktemp)
if ! cmake --preset "$preset" >"$log" 2>&1; then cat "$log" >&2; exit 1; fi
rm -f "$log"
cmake --build --preset "$preset" -j "${JOBS:-$(nproc)}" ${1:+--target "$@"}
