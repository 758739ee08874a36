# SPDX-License-Identifier: Apache-2.0
"""Messages of `tide run` about an image that stopped sending."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from board import ROOT

from tide.programs.child import Children, RunError
from tide.run.board_image import Symbols, describe, image, summary
from tide.run.plan import run_chains, serial_link
from tide.run.qemu import live_plan, open_pipes, start_board
from tide.system.load import load

pytestmark = pytest.mark.full


def test_an_image_that_nobody_answers_is_found_asleep(tmp_path: Path) -> None:
    system = load(ROOT / "examples/three_chains/system.toml")
    plan = live_plan(run_chains(system), serial_link(system), 3, True)
    with open_pipes(tmp_path, plan) as pipes, Children() as children:
        board, _ = start_board(children, tmp_path)
        with pytest.raises(RunError) as error:
            pipes.message(time.monotonic() + 0.5, board)
    state = str(error.value).splitlines()[1]
    assert state.startswith("the image, looked at 40 times: ")
    assert "x the program in event_wait" in state.split(",")[1], state


def test_an_emulator_without_a_monitor_is_said_to_have_none(tmp_path: Path) -> None:
    with Children() as children:
        silent = children.start("board", ["sleep", "60"], tmp_path / "board.log")
        assert describe(silent, image()) == "the emulator has no monitor"


def test_places_are_counted_by_function_and_interrupt() -> None:
    symbols = Symbols(image())
    start = next(address for address in range(0, 1 << 20, 2) if symbols.name(address) == "reset_handler")
    looks = [(start, 0), (start + 2, 0), (start, 16 + 31), (0xFFFFFFF8, 16 + 9), (start, 3)]
    assert summary(looks, symbols) == (
        "the image, looked at 5 times: 2 x the program in reset_handler, 1 x interrupt 31 in reset_handler, "
        "1 x interrupt 9 in its return, 1 x exception 3 in reset_handler"
    )
