# SPDX-License-Identifier: Apache-2.0
"""A run begins when each request of a board has a server, as far as this can be known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tide_tools.programs.child import RunError
from tide_tools.run import robot


def robot_with(monkeypatch: pytest.MonkeyPatch, is_given: bool, unserved: list[int]) -> Any:
    """A robot with one board. Its agent reports these counts of unserved requests one after the other, and repeats the
    last one."""

    def count(*_: Any) -> dict[str, int]:
        return {"requesters_unserved": unserved.pop(0) if len(unserved) > 1 else unserved[0]}

    monkeypatch.setattr(robot, "is_given", lambda _: is_given)
    monkeypatch.setattr(robot, "_SERVERS_CHECK_S", 0.001)
    monkeypatch.setattr(robot, "_SERVERS_OF_OTHERS_S", 0.01)
    agent = SimpleNamespace(process=SimpleNamespace(send_signal=lambda _: None), wait_json=count)
    settings = SimpleNamespace(start_limit_s=0.02 if unserved[-1] else 60.0)
    return SimpleNamespace(boards=["board"], settings=settings, agent=agent, out=Path("out"))


def test_a_run_waits_until_each_request_has_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    unserved = [2, 1, 0]
    robot.Robot._wait_servers(robot_with(monkeypatch, False, unserved))
    assert unserved == [0]


def test_a_server_that_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="found no server for 1 service clients"):
        robot.Robot._wait_servers(robot_with(monkeypatch, False, [1]))


def test_what_a_board_of_the_user_asks_beside_the_description_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    robot.Robot._wait_servers(robot_with(monkeypatch, True, [1]))
