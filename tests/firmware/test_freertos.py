# SPDX-License-Identifier: Apache-2.0
"""The ports on the real kernels of FreeRTOS and ThreadX, in QEMU: the same programs and checks as for boards without an
operating system, and two programs that test properties of FreeRTOS (tests/images/freertos). The kernels are not a part
of tide. If FREERTOS_KERNEL_PATH or THREADX_PATH was set, the builds contain these images; the end of the run reports
whether they were tested (conftest.py)."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from board import BUILDS, FORMS, KERNELS, LIMIT_S, ROOT, SIMULATOR, built, configured, image, qemu, run_with_agent
from test_exchange import assert_nothing_lost, exchange

pytestmark = pytest.mark.full


ON_KERNELS = [(core, form) for core in BUILDS for form in KERNELS if built(core, form)]
IMAGES = [(core, form) for core, form in ON_KERNELS if form in FORMS]
ON_M7 = [form for core, form in IMAGES if core == "cortex-m7"]
TICK_NS = 1_000_000
WAKE_UP_NS = 50_000  # time in which the task wakes up when it is due
LATEST_NS = {"freertos": WAKE_UP_NS, "freertos-tick": TICK_NS + WAKE_UP_NS}


@pytest.mark.parametrize("core", BUILDS)
def test_with_a_kernel_there_are_images_and_without_there_are_none(core: str) -> None:
    for form, path in KERNELS.items():
        kernel = configured(core, path)
        assert built(core, form) == bool(kernel), f"{core}, {form}: {kernel or 'no kernel'}"


@pytest.mark.parametrize(("core", "form"), IMAGES)
def test_waits_end_at_the_next_tick_and_with_an_alarm_at_once(core: str, form: str) -> None:
    words = qemu(core, f"{form}/lateness", "-icount", "shift=5,sleep=off")
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    late_ns = [int(number) for number in re.findall(r"latest ns (-?\d+)", done.stderr)]
    print(f"{core} {form}: {late_ns} ns")
    assert len(late_ns) == 2
    assert max(late_ns) <= LATEST_NS[form], done.stderr


@pytest.mark.parametrize(("core", "form"), [(core, form) for core, form in ON_KERNELS if form != "freertos-tick"])
def test_an_urgent_task_waits_for_one_section_and_one_above_the_ceiling_for_none(core: str, form: str) -> None:
    words = qemu(core, f"{form}/locked_lanes", "-icount", "shift=5,sleep=off")
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"broken promise {done.returncode} (tests/images/locked_lanes/main.c)\n{done.stderr}"
    assert "steer at most ns" in done.stderr


@pytest.mark.parametrize(("core", "form"), IMAGES)
def test_opening_and_closing_a_hundred_times_leaves_the_heap_as_it_was(core: str, form: str, tmp_path: Path) -> None:
    words = ("-icount", "shift=5")
    # clock: the interval at which the test checks whether the image has ended
    code, output = run_with_agent(core, f"{form}/reopen", tmp_path, lambda: time.sleep(0.05), *words, limit_s=240)
    assert code == 0, output
    assert "rounds 100" in output, output
    removal = re.search(r"removal: refused (\d+) polls (\d+)", output)
    assert removal, output
    assert int(removal[1]) > 0, "the window was not full"
    assert int(removal[2]) < 100, f"a wait spins: {output}"
    print(output)


@pytest.mark.parametrize(("core", "form"), ON_KERNELS)
def test_nothing_is_lost_when_the_agent_is_killed(core: str, form: str, tmp_path: Path) -> None:
    code, found, output = exchange(("--image", str(image(core, f"{form}/exchange"))), tmp_path, 2)
    assert code == 0, output
    assert_nothing_lost(found, output)


def preemptive(image: Path, *words: str) -> dict[str, Any]:
    plan = ("periods=4", "agent_acknowledges=always", "hold_until_acknowledged=false", *words)
    command = [SIMULATOR, str(ROOT / "examples/published/pods/pods-reliable.plan")]
    command += ["--board", str(image), "--systems", "tide-preemptive", *plan]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["runs"][0]
    return found


@pytest.mark.parametrize("form", [form for form in ON_M7 if form == "freertos"])
def test_budgets_of_lanes_are_kept(form: str) -> None:
    """Each lane has work for 20 ms in each period. With a budget of 5 ms in each period, each lane gets exactly that,
    so the urgent lane is late. A budget of 100 ms has no effect."""
    image = ROOT / "build/cortex-m7/bin" / form / "three_chains.elf"
    none = preemptive(image)
    tight, ample = (preemptive(image, f"budget_us={budget}", "budget_period_us=500000") for budget in (5000, 100_000))
    assert none["budgets"] == []
    assert [one["level"] for one in tight["budgets"]] == [1, 2, 3]
    for one in tight["budgets"]:
        print(one)
        assert one["exhaustions"] >= 4
        assert one["used_ns"] <= 4 * 5_000_000 + 4 * LATEST_NS[form]
        assert one["used_ns"] + one["low_ns"] >= 4 * 20_000_000
    assert tight["chains"][0]["max_ns"] > none["chains"][0]["max_ns"] + 15_000_000
    assert [one["exhaustions"] for one in ample["budgets"]] == [0, 0, 0]
    assert abs(ample["chains"][0]["max_ns"] - none["chains"][0]["max_ns"]) < 1_000_000
