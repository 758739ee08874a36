# SPDX-License-Identifier: Apache-2.0
"""Results of a run for paths over chains of different periods."""

from __future__ import annotations

from dataclasses import replace

from descriptions import chain, described, entry, host
from tide.analysis.bounds import bounds_of
from tide.analysis.result import Bounds
from tide.run.plan import instances_of
from tide.run.results import Outcome, outcome_of, paths_table, sentences
from tide.run.robot import Recorded
from tide.run.seen import SeenPath, paths_of, seen_of
from tide.system.load import parse
from tide.system.model import System

MS = 1_000_000


TEXT = described(
    host("h", lanes=2),
    chain("fast", 9, ("h", 1, {"name": "one"}), period_ms=100),
    chain("slow", 8, ("h", 1, {"name": "one"}), period_ms=400),
    entry("paths", name="way", chains=["fast", "slow"]),
)
PERIODS = 3


def recorded(system: System, fast_ms: int, slow_ms: int) -> Recorded:
    """Each instance begins at its release, and takes the given time."""
    made = Recorded(1000 * MS)
    for name, took_ms in (("fast", fast_ms), ("slow", slow_ms)):
        one = system.chain(name)
        releases = [made.start_ns + n * one.period_ns for n in range(instances_of(system, one, PERIODS))]
        made.runs[name, "one"] = {n: (at_ns, at_ns + took_ms * MS, MS) for n, at_ns in enumerate(releases)}
    return made


def outcome(system: System, made: Recorded) -> Outcome:
    return outcome_of(system, made, seen_of(system, made, PERIODS), PERIODS, paths_of(system, made, PERIODS))


def test_reaction_and_age_are_those_of_the_instances() -> None:
    """A change just after a sample of the fast chain waits 100 ms for the next sample, and the value 400 ms less 2 ms
    for the slow chain. The slow one takes a value released 100 ms before, as the instance released at the same time has
    not ended."""
    system = parse(TEXT)
    reaction, age = paths_of(system, recorded(system, 2, 5), PERIODS)
    assert (reaction.path, reaction.what, age.what) == ("way", "reaction", "age")
    assert reaction.most_ns == (100 + 400 + 5) * MS and reaction.samples > 3
    assert age.most_ns == (100 + 5) * MS and age.samples >= PERIODS


def test_they_stand_beside_their_bounds_and_one_above_is_told() -> None:
    system = parse(TEXT)
    bounds: Bounds = bounds_of(system)
    (bound,) = bounds.paths
    held = outcome(system, recorded(system, 1, 1))
    assert [one.bound_ns for one in held.paths] == [bound.reaction_ns, bound.age_ns]
    assert not held.longer and paths_table(held).row_count == 2
    assert held.run.evidence["paths"][0]["most_ns"] == (100 + 400 + 1) * MS
    late = outcome(system, recorded(system, 90, 200))
    assert {"the reaction of path way", "the age of path way"} <= set(late.longer)
    assert any("the age of path way was longer than its bound" in line for line in sentences(system, late))


def test_a_lost_instance_makes_a_reaction_longer_and_no_other_one_is_invented() -> None:
    system = parse(TEXT)
    made = recorded(system, 2, 5)
    before, _ = paths_of(system, made, PERIODS)
    del made.runs["slow", "one"][2]
    after, _ = paths_of(system, made, PERIODS)
    assert before.most_ns is not None and after.most_ns == before.most_ns + 400 * MS
    made.runs["slow", "one"] = {}
    assert [(one.most_ns, one.samples) for one in paths_of(system, made, PERIODS)] == [(None, 0), (None, 0)]


def test_a_path_with_a_program_of_the_user_is_not_observed() -> None:
    system = parse(TEXT.replace('name = "h"\n', 'name = "h"\ncommand = "./mine"\n'))
    seen = outcome(system, recorded(system, 1, 1))
    assert seen.paths == [] and "paths" not in seen.run.evidence
    assert "path 'way': nothing can be observed here" in "\n".join(sentences(system, seen))
    assert not replace(SeenPath("way", "age", None, 0), bound_ns=1).is_above
