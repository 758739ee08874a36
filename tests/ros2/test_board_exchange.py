# SPDX-License-Identifier: Apache-2.0
"""`tide soak --messages` with the program of runtime/port/exchange as a board on this machine. The agent is killed
meanwhile. Other tests check that losses, changed messages and a wrong order are detected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import tide_apart
from links import Build, serial, udp
from reserved import domain
from ros import program
from tide_tools.programs.child import Children
from tide_tools.soak.host import Found, Way, letters, read_up, text_down

DOMAIN = domain()
EACH, ROUNDS = 60, 3


@pytest.mark.parametrize("build", [udp, serial])
def test_a_board_is_tried_while_the_agent_is_killed(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "found"
    with Children() as children:
        link = build(children, tmp_path)
        board = children.start("board", [program("board_exchange"), *link.board], tmp_path / "board.log")
        words = ["--kill-agent", 1, "--rounds", ROUNDS, "--domain", DOMAIN, "--out", folder]
        done = tide_apart("soak", *link.agent, "--messages", 3 * EACH, *words)
        output = done.stdout + done.stderr + board.tail()
        assert done.returncode == 0, output
        assert board.process.wait(30) == 0, output
    found: dict[str, Any] = json.loads((folder / "soak.json").read_text(encoding="utf-8"))
    for way in found["up"]:
        assert (way["sent"], way["lost"], way["disordered"], way["wrong"]) == (EACH, 0, 0, 0), output
    assert found["down"] == {"sent": [EACH] * 3, "lost": 0}, output
    assert found["board"]["next"] == [EACH] * 3 and found["board"]["wrong"] == 0, output
    assert found["board"]["reconnects"] == 1 and len(found["agent_gone_s"]) == 1, output
    assert found["result"]["rounds"] == ROUNDS and found["result"]["pings"] > 0, output
    assert 0 < found["result"]["removal_polls"] < 1000, output
    print(output)


def board_state(**changed: Any) -> dict[str, Any]:
    return {"next": [EACH] * 3, "missing": 0, "wrong": 0} | changed


RESULT = {"rounds": ROUNDS, "memory": [1000, 1000], "pings_failed": 0}


@pytest.mark.parametrize(
    ("received", "state", "result", "fault"),
    [
        (range(EACH), board_state(), RESULT, ""),
        ([*range(7), *range(8, EACH)], board_state(), RESULT, "1 lost on the way up"),
        ([*range(7), 8, 7, *range(9, EACH)], board_state(), RESULT, "1 out of order on the way up"),
        (range(EACH), board_state(missing=2), RESULT, "2 lost on the way down"),
        (range(EACH), board_state(next=[EACH, EACH, EACH - 4]), RESULT, "4 lost on the way down"),
        (range(EACH), board_state(wrong=3), RESULT, "3 changed on the way down"),
        (range(EACH), board_state(), {**RESULT, "memory": [1000, 1016]}, "16 bytes of heap lost over these sessions"),
        (range(EACH), board_state(), {**RESULT, "rounds": 2}, "1 sessions not opened and closed"),
        (range(EACH), board_state(), {**RESULT, "pings_failed": 5}, "5 pings without an answer"),
    ],
)
def test_each_fault_is_named(received: Any, state: dict[str, Any], result: dict[str, Any], fault: str) -> None:
    up = [Way(name, sent=EACH, received=list(range(EACH))) for name in ("low", "middle", "high")]
    up[1].received = list(received)
    found = Found(up, [EACH] * 3, state, result)
    assert found.faults(ROUNDS) == ([fault] if fault else [])


def test_a_text_that_was_changed_on_the_way_is_no_number() -> None:
    text = f"{61:06d}{17:06d}{letters(61, 12)}"
    assert read_up(text) == (61, 17)
    for place in range(len(text)):
        other = "8" if text[place].isdigit() else text[place].upper()
        changed = text[:place] + other + text[place + 1 :]
        assert read_up(changed) == (-1, -1) or 6 <= place < 12 or changed == text, changed
    assert read_up(text[:-1]) == (-1, -1)
    assert text_down(61) == "000061p"


@pytest.mark.parametrize(
    ("received", "counted"),
    [
        ([0, 1, 2, 3], (0, 0, 0)),
        ([0, 1, 3], (1, 0, 0)),
        ([0, 1, 1, 2, 0, 3], (0, 2, 0)),  # a repeated message is doubled, not out of order
        ([0, 2, 1, 3], (0, 0, 1)),
        ([3, 0, 1, 2], (0, 0, 3)),
        ([], (4, 0, 0)),
    ],
)
def test_numbers_are_counted(received: list[int], counted: tuple[int, int, int]) -> None:
    way = Way("brake", 4, received=received)
    assert (way.lost, way.doubled, way.disordered) == counted
