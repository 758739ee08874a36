# SPDX-License-Identifier: Apache-2.0
"""What a run reports about paths over chains of different periods."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import results_of, tide
from descriptions import chain, described, entry, host
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.result import Bounds
from tide_tools.report.results import Results, write
from tide_tools.report.verdict import State
from tide_tools.run.plan import instances_of
from tide_tools.run.results import Outcome, outcome_of, sentences
from tide_tools.run.robot import Recorded
from tide_tools.run.seen import paths_of
from tide_tools.system.load import parse
from tide_tools.system.model import System

MS = 1_000_000

TEXT = described(
    host("h", lanes=2),
    chain("fast", 9, ("h", 0.5, {"name": "one"}), ("h", 0.5, {"name": "two"}), period_ms=100),
    chain("slow", 8, ("h", 0.5, {"name": "one"}), ("h", 0.5, {"name": "two"}), period_ms=400),
    entry("paths", name="way", chains=["fast", "slow"]),
)
PERIODS = 3


def recorded(system: System, fast_ms: int, slow_ms: int) -> Recorded:
    """A run in which each instance begins at its release and takes the given time, because its second callback begins
    late; no premise explains that."""
    made = Recorded(1000 * MS)
    for name, took_ms in (("fast", fast_ms), ("slow", slow_ms)):
        one = system.chain(name)
        releases = [made.start_ns + n * one.period_ns for n in range(instances_of(system, one, PERIODS))]
        ends = [at_ns + took_ms * MS for at_ns in releases]
        made.runs[name, "one"] = {n: (at_ns, at_ns + MS // 2, MS // 2) for n, at_ns in enumerate(releases)}
        made.runs[name, "two"] = {n: (at_ns - MS // 2, at_ns, MS // 2) for n, at_ns in enumerate(ends)}
    return made


def outcome(system: System, made: Recorded) -> Outcome:
    return outcome_of(system, made, PERIODS)


def test_reaction_and_age_are_those_of_the_instances() -> None:
    """A change just after a sample of the fast chain waits 100 ms for the next sample, and the value of this one waits
    400 ms less 2 ms for the slow chain. The value that the slow chain takes is from the release 100 ms before its own,
    because the instance that is released at the same time has not ended yet."""
    system = parse(TEXT)
    reaction, age = paths_of(system, recorded(system, 2, 5), PERIODS)
    assert (reaction.path, reaction.what, age.what) == ("way", "reaction", "age")
    assert reaction.max_ns == (100 + 400 + 5) * MS and reaction.samples > 3
    assert age.max_ns == (100 + 5) * MS and age.samples >= PERIODS


def test_they_stand_beside_their_bounds_and_one_above_is_told() -> None:
    system = parse(TEXT)
    bounds: Bounds = bounds_of(system)
    (bound,) = bounds.paths
    held = outcome(system, recorded(system, 1, 1))
    assert [one.bound_ns for one in held.run.paths] == [bound.reaction_ns, bound.age_ns]
    assert not held.run.refuted
    assert held.run.paths[0].max_ns == (100 + 400 + 1) * MS
    late = outcome(system, recorded(system, 90, 200))
    assert {"reaction of way", "age of way"} <= set(late.run.refuted)
    assert any("age of way was longer than its bound" in line for line in sentences(late))


def test_a_lost_instance_makes_a_reaction_longer_and_no_other_one_is_invented() -> None:
    system = parse(TEXT)
    made = recorded(system, 2, 5)
    before, _ = paths_of(system, made, PERIODS)
    del made.runs["slow", "one"][2]
    after, _ = paths_of(system, made, PERIODS)
    assert before.max_ns is not None and after.max_ns == before.max_ns + 400 * MS
    made.runs["slow", "one"] = {}
    assert [(one.max_ns, one.samples) for one in paths_of(system, made, PERIODS)] == [(None, 0), (None, 0)]


def limited(reaction_ms: float, more: str = "") -> System:
    text = TEXT.replace('name = "h"\n', f'name = "h"\n{more}')
    return parse(text.replace('name = "way"\n', f'name = "way"\nreaction_ms = {reaction_ms}\n'))


@pytest.mark.parametrize(
    ("reaction_ms", "state", "says", "status"),
    [
        (500.5, State.NOT_MET, "4 of 19 late", 1),
        (501.5, State.NO_GUARANTEE, "exceeds the deadline", 0),
        (2000, State.NOT_JUDGED, "not observable here", 0),
    ],
)
def test_the_limit_of_a_path_is_judged_as_a_deadline(
    reaction_ms: float, state: State, says: str, status: int, tmp_path: Path
) -> None:
    """All chains are in time, but that does not answer whether the path is."""
    system = limited(reaction_ms)
    results = results_of(outcome(system, recorded(system, 1, 1)).run)
    one, found = results.runs[0].judged[-1]
    assert (one.name, found.state) == ("reaction of way", state) and says in found.reasons[0]
    assert results.exit_status() == status
    write(results, tmp_path / "results.json")
    assert Results.from_json((tmp_path / "results.json").read_text(encoding="utf-8")) == results
    ended, shown = tide("report", tmp_path, COLUMNS="200")
    assert ended == status and "reaction of way" in shown
    if status:
        assert shown.startswith("not met: reaction of way (")


def test_a_path_with_a_program_of_the_user_is_not_observed() -> None:
    system = limited(600, 'command = "./mine"\n')
    results = results_of(outcome(system, recorded(system, 1, 1)).run)
    _, found = results.runs[0].judged[-1]
    assert found.state is State.NOT_SEEN and found.reasons == ("a program of yours plays a part of fast, slow",)
    assert results.exit_status() != 0
