# SPDX-License-Identifier: Apache-2.0
"""Paths over chains of different periods: refusals, bounds, and simulated instances, which must not exceed the
bounds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bounded import MS, bound_of, refusal
from commands import done, tide
from descriptions import chain, described, host
from tide_test_support import each_seed
from tide_tools.analysis.bounds import bounds_of
from tide_tools.play.paths import Instance, Played
from tide_tools.system.load import parse

ROOT = Path(__file__).parents[2]


def _chain(name: str, priority: int, period_ms: int, *callbacks: tuple[str, float]) -> str:
    sent = [{"publishes": {"topic": f"{name}/b{number}", "payload_bytes": 8}} for number in range(len(callbacks))]
    steps = [(*one, more) for one, more in zip(callbacks, sent, strict=True)]
    return chain(name, priority, *steps, period_ms=period_ms, reliability="reliable")


def _system(*parts: str) -> str:
    return described(host("eyes"), host("brain"), *(f"{part}\n" for part in parts))


CAMERA = _chain("camera", 2, 100, ("eyes", 5), ("brain", 10))
PLAN = _chain("plan", 1, 250, ("brain", 20))


def _path(chains: str, limits: str = "") -> str:
    return f'[[paths]]\nname = "see"\nchains = [{chains}]\n{limits}\n'


def test_reaction_and_age_are_sums_of_periods_and_bounds() -> None:
    system = parse(_system(CAMERA, PLAN, _path('"camera", "plan"', "reaction_ms = 500\nage_ms = 250")))
    bounds = bounds_of(system)
    responses = {chain.name: chain.bound_ns or 0 for chain in bounds.chains}
    (path,) = bounds.paths
    assert path.reaction_ns == 350 * MS + responses["camera"] + responses["plan"]
    assert path.age_ns == 100 * MS + responses["camera"] + responses["plan"]
    assert path.met and bounds.met
    assert any(one.id == "sampling" for one in bounds.assumptions)


def test_a_limit_below_the_bound_is_no_guarantee(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(_system(CAMERA, PLAN, _path('"camera", "plan"', "age_ms = 100")))
    status, result = tide("check", file)
    assert status == 1 and "no guarantee for: path see" in result
    told = json.loads(tide("check", file, "--json")[1])
    assert not told["met"] and not told["paths"][0]["met"] and all(chain["met"] for chain in told["chains"])


def test_a_chain_longer_than_its_period_keeps_its_path_unless_instances_may_pass_each_other() -> None:
    """The most common case is a sensor of 100 Hz whose data takes 25 ms to the filter."""
    slow = PLAN.replace("deadline_ms = 250", "deadline_ms = 500").replace("execution_ms = 20", "execution_ms = 220")
    text = _system(CAMERA, slow, _path('"camera", "plan"', "age_ms = 9000"))
    bounds = bounds_of(parse(text))
    takes = {chain.name: chain.bound_ns or 0 for chain in bounds.chains}
    (path,) = bounds.paths
    assert takes["camera"] > 100 * MS
    assert path.reaction_ns == 350 * MS + takes["camera"] + takes["plan"]
    assert path.age_ns == 100 * MS + takes["camera"] + takes["plan"]
    camera = bound_of(bounds, "camera")
    assert camera.from_event_ns == 100 * MS + takes["camera"]
    passing = (
        text.replace('executor = "eyes"', 'executor = "eyes"\ngroup = "x"')
        + '[[groups]]\nname = "x"\nkind = "reentrant"\n'
    )
    (path,) = bounds_of(parse(passing)).paths
    assert (
        path.age_ns is None and path.reason is not None and "in a reentrant group lets an instance pass" in path.reason
    )


@pytest.mark.parametrize(
    ("chains", "said"),
    [
        ('"camera", "plans"', "there is no chain 'plans'"),
        ('"plan", "camera"', "chain 'plan' ends on executor 'brain', and chain 'camera' begins on executor 'eyes'"),
    ],
)
def test_what_is_no_path_is_refused_with_its_line(chains: str, said: str) -> None:
    assert said in refusal(_system(CAMERA, PLAN, _path(chains)))[0]


def test_two_paths_of_one_name_are_refused() -> None:
    (line,) = refusal(_system(CAMERA, PLAN, _path('"camera", "plan"'), _path('"camera", "plan"')))
    assert "two paths named 'see'" in line


def test_optimise_counts_paths_among_what_must_be_met(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(_system(CAMERA, PLAN, _path('"camera", "plan"', "reaction_ms = 100")))
    status, result = tide("optimise", file, "--tries", "20")
    assert status == 1 and "path see: its reaction of" in result and "above 100" in result
    file.write_text(_system(CAMERA, PLAN, _path('"camera", "plan"', "reaction_ms = 600")))
    status, result = tide("optimise", file, "--tries", "20")
    assert status == 0 and "nothing needs changing" in result


def test_a_path_goes_with_its_chains() -> None:
    system = parse(_system(CAMERA, PLAN, _path('"camera", "plan"')))
    assert len(system.with_chains(system.chains).paths) == 1
    assert system.with_chains(system.chains[:1]).paths == ()


def _instances(source: random.Random, period_ns: int, bound_ns: int, most_ns: int) -> list[Instance]:
    """Random instances of a chain that stays within its bound. Each begins in its period, and they end in order."""
    found: list[Instance] = []
    end_ns = 0
    for release_ns in range(source.randrange(period_ns), most_ns, period_ns):
        last_ns = release_ns + bound_ns
        start_ns = source.choice((release_ns, source.randint(release_ns, min(last_ns, release_ns + period_ns - 1))))
        end_ns = max(end_ns, source.choice((start_ns, last_ns, source.randint(start_ns, last_ns))))
        found.append(Instance(release_ns, start_ns, end_ns))
    return found


@each_seed(range(400))
def test_no_instances_that_keep_to_their_bounds_exceed_the_sums(seed: int) -> None:
    source = random.Random(seed)
    periods_ns = [source.randint(3, 60) for _ in range(source.randint(2, 4))]
    bounds_ns = [source.randint(1, source.choice((1, 4)) * period_ns) for period_ns in periods_ns]
    most_ns = 40 * max(periods_ns)
    chains = [
        _instances(source, period_ns, bound_ns, most_ns)
        for period_ns, bound_ns in zip(periods_ns, bounds_ns, strict=True)
    ]
    played = Played(chains, periods_ns)
    reaction, age = played.reaction(), played.age()
    assert reaction.samples > 0 and age.samples > 0
    assert reaction.worst_ns <= sum(periods_ns) + sum(bounds_ns), f"seed {seed}"
    assert age.worst_ns <= sum(periods_ns[:-1]) + sum(bounds_ns), f"seed {seed}"


def test_both_sums_are_reached() -> None:
    """The timer of the second chain expires one nanosecond before the value of the first chain is available."""
    camera = [Instance(release, release, release + 30) for release in range(0, 10_000, 100)]
    plan = [Instance(release, release, release + 50) for release in range(29, 10_000, 100)]
    played = Played([camera, plan], [100, 100])
    assert played.reaction().worst_ns == 100 + 30 + 99 + 50  # a change just after a sample; one less than the bound
    assert played.age().worst_ns == 30 + 99 + 50


def test_what_was_not_played_to_its_end_says_nothing() -> None:
    camera = [Instance(0, 0, 30), Instance(100, 100, 130)]
    plan = [Instance(release, release, release + 50) for release in range(0, 10_000, 1000)]
    played = Played([camera, plan], [100, 1000])
    assert played.age().samples == 0  # the camera stopped long before the plan's second instance
    late = [Instance(5000, 5000, 5050)]
    assert Played([camera, late], [100, 1000]).reaction().samples == 0  # the values of the camera are too old for it


@pytest.mark.parametrize("name", ["quadcopter", "host_pipeline", "conveyor_cell"])
def test_paths_are_played_beside_their_bounds(name: str, tmp_path: Path) -> None:
    file = ROOT / f"examples/systems/{name}.toml"
    done("simulate", file, "--runs", "6", "--out", tmp_path / "out")
    told = json.loads((tmp_path / "out/results.json").read_text())
    assert {one["what"] for one in told["observed_paths"]} == {"reaction", "age"}
    for one in told["observed_paths"]:
        assert one["samples"] > 0 and not one["above"] and 0.1 < one["ratio"] <= 1.0


def test_a_path_of_one_chain_is_its_period_and_its_bound() -> None:
    """A press of the button may just miss an expiry. An e-stop with a bound of 26.75 ms from the tick then takes 71.75
    ms from the press."""
    system = parse(_system(CAMERA, '[[paths]]\nname = "see"\nchains = ["camera"]\nreaction_ms = 500'))
    bounds = bounds_of(system)
    (path,), camera = bounds.paths, bounds.chains[0]
    assert camera.bound_ns is not None
    assert path.reaction_ns == camera.from_event_ns == 100 * MS + camera.bound_ns and path.age_ns == camera.bound_ns
    assert not any(one.id == "sampling" for one in bounds.assumptions)


@pytest.mark.parametrize(("group", "said"), [("exclusive", "no limit"), ("reentrant", "no")])
def test_a_path_without_a_limit_has_nothing_to_meet_but_needs_a_bound(tmp_path: Path, group: str, said: str) -> None:
    plan = PLAN.replace("deadline_ms = 250", "deadline_ms = 500").replace("ms = 20\n", "ms = 220\n")
    camera = CAMERA.replace("deadline_ms = 100", "deadline_ms = 500")
    camera = camera.replace('executor = "eyes"', 'executor = "eyes"\ngroup = "x"')
    file = tmp_path / "system.toml"
    groups = f'[[groups]]\nname = "x"\nkind = "{group}"\n'
    file.write_text(_system(camera, plan, _path('"camera", "plan"'), groups))
    status, result = tide("check", file)
    assert (status, "no guarantee for: path see" in result) == ((0, False), (1, True))[said == "no"]
    (row,) = [line for line in result.splitlines() if line.startswith(" see ")]
    assert row.rstrip().split("  ")[-1].strip() == said
    told = json.loads(tide("check", file, "--json")[1])
    assert told["paths"][0]["met"] is (None if said == "no limit" else False) and told["met"] is (said != "no")


def test_a_message_on_a_condition_has_no_rate() -> None:
    """distance_ms is only the least distance, so it is unknown when a change is noticed."""
    switch = chain("switch", 3, ("eyes", 1, {"publishes": {"topic": "on", "payload_bytes": 1, "distance_ms": 200}}))
    lamp = chain("lamp", 4, ("brain", 1), period_ms=200, branches_from="switch.b0")
    bounds = bounds_of(parse(_system(switch, lamp, _path('"lamp"', "reaction_ms = 9000"))))
    assert bound_of(bounds, "lamp").from_event_ns is None
    assert bounds.paths[0].reason is not None and "'on', which is published on a condition" in bounds.paths[0].reason
    event = lamp.replace("deadline_ms = 200", 'deadline_ms = 900\ndeadline_from = "event"')
    assert "no event is sure to start it" in refusal(_system(switch, event))[0]


@pytest.mark.parametrize(("deadline_ms", "met"), [(130, False), (136, True), (1000, True)])
def test_a_deadline_from_an_event_leaves_the_period_out(deadline_ms: int, met: bool) -> None:
    text = _system(CAMERA, PLAN).replace("deadline_ms = 100", f'deadline_ms = {deadline_ms}\ndeadline_from = "event"')
    camera = bounds_of(parse(text)).chains[0]
    assert camera.from_event_ns is not None and camera.met is met is (camera.from_event_ns <= deadline_ms * MS)
    assert camera.deadline_ns == (deadline_ms - 100) * MS


def test_a_deadline_from_an_event_is_longer_than_the_period() -> None:
    (line,) = refusal(_system(CAMERA).replace("deadline_ms = 100", 'deadline_ms = 100\ndeadline_from = "event"'))
    assert "may see an event a period of 100 ms late, which leaves nothing" in line


def test_events_begin_a_path_and_leave_no_value_to_age() -> None:
    """Two events, each read by the next timer; the reaction counts from the event."""
    events = [Instance(10, 12, 20), Instance(100, 100, 105)]
    readers = [Instance(50, 50, 55), Instance(100, 100, 103), Instance(150, 151, 160)]
    played = Played([events, readers], [90, 50], of_events=True)
    assert list(played.reaction().times_ns) == [55 - 10, 160 - 100]
    assert played.age().samples == 0
    assert list(Played([events, readers], [90, 50]).reaction().times_ns) == [160 - 12]
