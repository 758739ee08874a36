# SPDX-License-Identifier: Apache-2.0
"""Projects of users, each in a folder of its own, that see of tide what was installed or is named to them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <stdio.h>
#include <tide/rclc.h>

static int calls = 0;
static void expired(rcl_timer_t *timer, int64_t last_call_ns) {
  (void)timer;
  (void)last_call_ns;
  ++calls;
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  if (rclc_support_init(&support, 0, NULL, &allocator) == RCL_RET_OK) return 1; /* there is no agent */
  if (rmw_uros_ping_agent(10, 1) == RMW_RET_OK) return 2;
  (void)timer;
  (void)executor;
  (void)expired;
  printf("linked %d\\n", calls);
  return 0;
}
"""


def run(words: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Its output; fails with all of it when the command does."""
    environment = {**os.environ, **(more or {})}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout
