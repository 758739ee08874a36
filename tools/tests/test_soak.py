# SPDX-License-Identifier: Apache-2.0
"""tide soak: its limits, its counts, and the steps in which it has a board unplugged. tests/firmware has the test with
a board."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tide_tools.programs.child import RunError
from tide_tools.soak.command import page
from tide_tools.soak.host import CHAINS, WINDOW, Found, Host, Task, Way
from tide_tools.soak.trial import PERIOD_MS, Trial, limits, measured


def test_each_chain_has_bounds_and_the_more_urgent_one_shorter_ones() -> None:
    for baud in (115_200, 921_600):
        low, middle, high = limits(baud)
        assert all(one.trip_ms and one.gap_ms and one.gap_ms > PERIOD_MS for one in (low, middle, high))
        assert high.trip_ms < middle.trip_ms < low.trip_ms  # type: ignore[operator]
        assert high.gap_ms < middle.gap_ms < low.gap_ms  # type: ignore[operator]


def test_what_a_kill_delayed_does_not_count_and_the_rest_is_judged() -> None:
    spans = [(1.0, 1.1), (9.0, 21.0), (14.0, 14.4), (16.0, 16.3)]
    calm = measured(spans, [(10.0, 10.5)], 350.0)
    assert (calm.count, round(calm.worst_ms), calm.verdict) == (2, 300, "within")
    assert measured(spans, [(10.0, 10.5)], 299.0).verdict == "BEYOND"
    assert measured(spans, [(10.0, 10.5)], None).verdict == "no bound"
    assert measured(spans, [(0.0, 20.0)], 350.0).verdict == "not measured"


@pytest.mark.parametrize(("late_ms", "told"), [(4.0, False), (55.5, True)])
def test_a_time_beyond_its_bound_is_told_with_the_lateness_of_the_computer(late_ms: float, told: bool) -> None:
    trial, _ = attended(0, [])
    host: Any = SimpleNamespace(trips=[[(1.0, 9.0)]] * 3, came_s=[[1.0, 1.2]] * 3)
    trial.host = host
    counts = dict.fromkeys(("refused", "polls", "opens", "twice", "reconnects", "missing", "wrong"), 0)
    results = dict.fromkeys(("pings", "ping_us", "sync_us", "removal_polls", "removal_us", "rounds", "pings_failed"), 0)
    found = Found([Way(name) for name in CHAINS], [0, 0, 0], {**counts, "next": [0, 0, 0]})
    found.result = {**results, "refused": 0, "memory": [0, 0]}
    for each_ms in (-3.0, late_ms, 2.0):
        found.add_lateness(each_ms)
    text, faults = page("board", "line", found, trial, 115_200)
    assert len(faults) == 3 + told
    assert ("this computer was late by up to 55.5 ms, for which 10 ms are allowed" in faults) == told
    assert f"times by more than 10 ms | {late_ms}; {int(told)} |" in text


def attended(unplugs: int, said: list[str], each: int = 1000) -> tuple[Trial, Found]:
    trial: Any = Trial.__new__(Trial)
    trial.task = Task((), each, 0, 0, PERIOD_MS, 1, 1.0, Path(), None, True, unplugs)
    trial.host = SimpleNamespace(state={"sent": [1, 1, 1]}, send=lambda quiet: None, older=0)
    trial.say, trial.unplugged = said.append, 0
    trial._asked, trial._asked_s, trial._out_s = 0, None, None
    trial._begun_s = trial._next_s = 100.0
    return trial, Found([], [])


def test_the_user_is_told_at_the_start_when_the_cable_is_unplugged_and_what_the_board_needs() -> None:
    trial, found = attended(1, [])
    assert "messages: 3.3;" in trial.announcement() and "1, the first after about 1.5 min" in trial.announcement()
    assert not trial.is_waiting(found, 189.9, 189.8) and trial._asked == 0
    assert not trial.is_waiting(found, 190.1, 190.0) and trial._asked == 1, "as announced"
    assert "--unplug 0" in trial.announcement() and "unplug" not in attended(0, [])[0].announcement()


def test_somebody_is_led_through_unplugging_and_its_time_is_noted() -> None:
    said: list[str] = []
    trial, found = attended(1, said)
    assert not trial.is_waiting(found, 150.0, 149.9) and said == []
    assert not trial.is_waiting(found, 195.0, 194.9)
    assert said == ["Step 1 of 2: unplug the cable of the board now."]
    assert trial.is_waiting(found, 197.0, 196.0) and len(said) == 1, "a second without messages is no proof"
    assert trial.is_waiting(found, 199.0, 196.0)
    assert said[1:] == ["Step 2 of 2: plug it in again, at the same port."]
    assert trial.is_waiting(found, 240.0, 196.0)
    assert not trial.is_waiting(found, 241.0, 240.9)
    assert trial.unplugged == 1 and found.disturbed == [(196.0, 241.0)]
    assert not trial.is_waiting(found, 300.0, 299.9) and len(said) == 3, "once"


def test_unplugging_that_nobody_does_is_not_tested_and_one_without_end_fails() -> None:
    said: list[str] = []
    trial, found = attended(1, said)
    trial.is_waiting(found, 195.0, 194.9)
    assert not trial.is_waiting(found, 496.0, 495.9)
    assert "not tested" in said[-1] and trial.unplugged == 0
    trial, found = attended(1, said)
    trial.is_waiting(found, 195.0, 194.9)
    trial.is_waiting(found, 199.0, 196.0)
    with pytest.raises(RunError, match="did not answer within five minutes"):
        trial.is_waiting(found, 500.0, 196.0)


def test_a_board_that_began_anew_is_told_from_reports_that_a_restarted_agent_repeats() -> None:
    trial, found = attended(0, [])
    host: Any = Host.__new__(Host)
    host.state, host.result, host.older = {}, {}, 0
    host.confirmed, host.up = [0] * len(CHAINS), [Way(name) for name in CHAINS]
    trial.host = host

    def report(number: int) -> None:
        said = json.dumps({"next": [number] * len(CHAINS), "sent": [number] * len(CHAINS)})
        host._on_report(SimpleNamespace(data=said))

    for number in (3, 4, 5, 3, 4, 5, 6, 5):
        report(number)
        assert not trial.is_waiting(found, 110.0, 109.9)
    assert host.state["sent"] == [6] * len(CHAINS) and host.up[0].sent == 6
    for _ in range(WINDOW - 1):
        report(0)
        assert not trial.is_waiting(found, 111.0, 110.9)
    report(1)
    with pytest.raises(RunError, match="began anew"):
        trial.is_waiting(found, 112.0, 111.9)
