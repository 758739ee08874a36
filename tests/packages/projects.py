# SPDX-License-Identifier: Apache-2.0
"""Makes and builds projects of users. Each has its own folder, and uses only those parts of tide that are installed or
that it names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# An option for builds of which only the parts and names are tested: optimising takes ten times as long as compiling.
UNOPTIMISED = "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O0"
PROGRAM = """\
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdio.h>
#include <tide/rclc.h>

/* Asks for no agent; with a word it would be a client, so all of that is linked. */
int main(int count, char **words) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  if (rclc_support_init(NULL, 0, NULL, &allocator) == RCL_RET_OK) return 1;
  if (tide_rclc_executor_set_policy(&executor, TIDE_POLICY_TIDE) == RCL_RET_OK) return 2;
  if (count > 1) {
    if (rclc_support_init(&support, count, (const char *const *)words, &allocator) != RCL_RET_OK) return 3;
    if (rclc_executor_init(&executor, &support.context, 1, &allocator) != RCL_RET_OK) return 4;
    return (int)rclc_executor_spin(&executor);
  }
  printf("linked\\n");
  return 0;
}
"""


def run(words: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Runs the command and returns its output. If it fails, the test fails and shows the whole output."""
    environment = {**os.environ, **(more or {})}
    done = subprocess.run([str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def copy_tree(folder: Path) -> Path:
    """Copies what a fresh clone has and the uncommitted changes, but no environment and no build."""
    for name in run(["git", "ls-files", "-co", "--exclude-standard"], ROOT).splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
