# SPDX-License-Identifier: Apache-2.0
"""What `tide run` says about an image that says nothing any more."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from board import ROOT

from tide.programs.child import Children, RunError
from tide.run.board_image import Symbols, describe, image, summary
from tide.run.exchange import Exchange
from tide.run.qemu import open_pipes, start_board
from tide.run.robot import Settings
from tide.system.load import load

pytestmark = pytest.mark.full


def test_an_image_that_nobody_answers_is_found_asleep(tmp_path: Path) -> None:
    exchange = Exchange(load(ROOT / "examples/three_chains/system.toml"), 3, 0, Settings(1, 1, 0.0, 0), tmp_path)
    with open_pipes(tmp_path, exchange.plan(), "exchange") as pipes, Children() as children:
        board, _ = start_board(children, tmp_path, "exchange")
        with pytest.raises(RunError) as error:
            pipes.message(time.monotonic() + 0.5, board)
    state = str(error.value).splitlines()[1]
    assert state.startswith("the image, looked at 40 times: ")
    assert "x the program in event_wait" in state.split(",")[1], state


def test_an_emulator_without_a_monitor_is_said_to_have_none(tmp_path: Path) -> None:
    with Children() as children:
        silent = children.start("board", ["sleep", "60"], tmp_path / "board.log")
        assert describe(silent, image(name="exchange")) == "the emulator has no monitor"


def test_places_are_counted_by_function_and_interrupt() -> None:
    symbols = Symbols(image(name="exchange"))
    start = next(address for address in range(0, 1 << 20, 2) if symbols.name(address) == "reset_handler")
    looks = [(start, 0), (start + 2, 0), (start, 16 + 31), (0xFFFFFFF8, 16 + 9), (start, 3)]
    assert summary(looks, symbols) == (
        "the image, looked at 5 times: 2 x the program in reset_handler, 1 x interrupt 31 in reset_handler, "
        "1 x interrupt 9 in its return, 1 x exception 3 in reset_handler"
    )
