# SPDX-License-Identifier: Apache-2.0
"""The hunt on whole descriptions with the bounds of tide check: descriptions are drawn as intended, no response exceeds
a bound, each mutant of the lowering is detected, and a failure is reported.

The environment variable TIDE_SEED sets the first seed, and TIDE_SEEDS the number of seeds for each family."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tide_lab.hunt.workers
from bounded import bound_ns
from tide_lab.hunt.campaign import Found
from tide_lab.hunt.draw import draw, rendered
from tide_lab.hunt.families import FAMILIES, family
from tide_lab.hunt.lowering_twins import Twin, catch, twins
from tide_lab.hunt.whole import Tally, Trial, hunt_block
from tide_lab.hunt.workers import Workers
from tide_tools.analysis.bounds import bounds_of
from tide_tools.main import app
from tide_tools.play.boards import BoardsPlayer
from tide_tools.play.server import Server, ServerError
from tide_tools.system.load import SystemFileError, load, parse

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("TIDE_SEED", "1"))
SEEDS = int(os.environ.get("TIDE_SEEDS", "60"))


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lab", "hunt", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


# ---- drawn descriptions ----


def test_descriptions_have_all_that_one_may_say() -> None:
    seen: Counter[str] = Counter()
    refused = 0
    for one in FAMILIES:
        for seed in range(1, 41):
            try:
                system = parse(rendered(draw(one, seed)))
            except SystemFileError:
                refused += 1
                continue
            hosts = [executor for executor in system.executors if executor.where == "host"]
            callbacks = [callback for chain in system.chains for callback in chain.callbacks]
            seen["several hosts"] += len(hosts) > 1
            seen["one lane beside several"] += {True, False} == {executor.lanes > 1 for executor in hosts}
            seen["budgets"] += any(executor.budget_ms for executor in hosts)
            seen["own priorities"] += any(callback.priority for callback in callbacks)
            seen["shorter runs"] += any(callback.least_ms for callback in callbacks)
            seen["boards"] += len(hosts) < len(system.executors)
            seen["look-alike names"] += any("_" in chain.name for chain in system.chains)
            for kind in ("exclusive", "reentrant"):
                groups = {group.name for group in system.groups if group.kind == kind}
                seen[kind] += any(callback.group in groups for callback in callbacks)
            for chain in system.chains:
                executors = {callback.executor for callback in system.path(chain)}
                seen["between executors"] += len(executors) > 1 and system.link_of(chain) is None
                seen["branches"] += chain.branches_from is not None
                seen["late"] += chain.deadline_ms > chain.period_ms
                seen["early"] += chain.deadline_ms < chain.period_ms
                seen["hold"] += chain.hold
                seen[chain.reliability] += 1
    assert refused < 40 * len(FAMILIES) / 20
    assert min(seen.values()) > 20, seen


def test_the_same_seed_is_the_same_hunt() -> None:
    for one in ("check-everything", "check-board-tide"):
        twice = [hunt_block(one, 1, 15, Trial(2, 3)).to_json() for _ in range(2)]
        assert twice[0] == twice[1]
        assert twice[0] != hunt_block(one, 16, 15, Trial(2, 3)).to_json()


# ---- failures ----


@pytest.mark.parametrize("name", [one.name for one in FAMILIES])
def test_nothing_exceeds_a_bound(name: str) -> None:
    count = SEEDS if not family(name).board else SEEDS // 2
    tally = hunt_block(name, SEED, count, Trial(2, 4, True))
    for failure in tally.failures:
        pytest.fail(f"{failure['what']}; replay with TIDE_SEED={failure['seed']}, or tide lab hunt {name}\n{failure}")
    least = 1 if family(name).wide else 4  # of wide families, few descriptions have bounds
    assert tally.observations > least * count, "the descriptions prove nothing"
    assert min(tally.histogram) < 1.5, "no run comes near its bound"


@pytest.mark.parametrize("twin", twins(), ids=lambda twin: twin.name.replace(" ", "-"))
def test_a_broken_lowering_is_caught(twin: Twin) -> None:
    assert catch(twin, 1200, Trial(3, 8, True)).after > 0


def test_a_find_says_how_it_was_played() -> None:
    """The line that is stored with a failure reproduces the failure without a hunt."""
    for name in ("groups forgotten", "agent_ms forgotten"):
        (twin,) = [one for one in twins() if one.name == name]
        seed = catch(twin, 50, Trial(3, 8, True)).after
        with twin.broken():
            found = hunt_block(twin.family, seed, 1, Trial(3, 8, True))
        failure = found.failures[0]
        server = Server(failure["program"])
        played = server.play(failure["run"])
        server.close()
        assert any(f"{worst_ns / 1e6:.6f} ms" in failure["what"] for worst_ns in played.worst_ns)
        assert parse(failure["system"])


@pytest.mark.parametrize(("family_name", "seed"), [("check-everything", 2_021_883), ("check-branches", 2_018_456)])
def test_a_branch_of_a_branch_is_played_however_long_its_path_is(family_name: str, seed: int) -> None:
    told = hunt_block(family_name, seed, 1, Trial(2, 0, True)).to_json()
    assert told["accepted"] == 1 and told["failed"] == 0 and told["observations"] > 0


@pytest.mark.parametrize(
    ("family_name", "seed"),
    [("check-boards-fast", 30_275), ("check-trees-fast", 1_142), ("check-board-wide", 7_100_053)],
)
def test_runs_that_failed_without_a_bound_exceeded(family_name: str, seed: int) -> None:
    """Three earlier failures: a run ended before all messages of a chain without a bound had arrived; readers reserved
    slots without need; of two levels that differ by 32, the transmitter reserved a node only for one."""
    told = hunt_block(family_name, seed, 1, Trial(3, 8, True)).to_json()
    assert told["failures"] == [] and told["observations"] > 0


def test_boards_that_delay_each_other_while_they_are_set_up_begin_together() -> None:
    """An earlier failure: one board began late, and the others did not wait for it."""
    told = hunt_block("check-boards", 30_017_576, 1, Trial(2, 4, True)).to_json()
    assert told["failures"] == [] and told["observations"] > 0


@pytest.mark.parametrize("file", sorted((ROOT / "lab/tests/data/hunt").glob("*.toml")), ids=lambda file: file.stem)
def test_what_was_found_once_exceeds_nothing(file: Path) -> None:
    """Each file is a description with which a run once exceeded a bound or violated a rule, because the simulated host
    took the newest message of a subscription first."""
    text = file.read_text(encoding="utf-8")
    executor, words = (line.partition(": ")[2] for line in text.splitlines()[:2])
    server = Server("tide-sim")
    played = server.play(words)
    server.close()
    assert not played.violations
    system = parse(text)
    bounds = bounds_of(system, executor)
    for chain, worst_ns in zip(system.chains, played.worst_ns, strict=True):
        bound = bounds.chain(chain.name)
        assert worst_ns > 0
        assert bound.bound_ns is None or worst_ns <= bound.bound_ns, f"{chain.name}: {worst_ns} ns"


def told(**values: object) -> dict[str, object]:
    return Tally().to_json() | {"systems": 1} | values


def test_a_find_is_written_with_the_command_that_replays_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = rendered(draw(family("check-lanes"), 3))
    failure = {"seed": 3, "executor": "priority", "losses": 0, "what": "chain 'c0': 9 ms, above its bound of 7 ms"}
    failure |= {"program": "tide-sim", "run": "policy=tide", "system": system}
    answer = told(observations=2, exceeded=1, failed=1, failures=[failure], unplayed={"add lanes": 1})
    monkeypatch.setattr(Workers, "hunt", lambda *_: [answer])
    keep = tmp_path / "kept"
    status, output = run("check-lanes", "--systems", "1", "--keep", keep, "--climbs", "3")
    assert status == 1
    assert "1 of 2 observations exceeded a bound" in output
    assert "replay: tide lab hunt check-lanes --first 3 --systems 1 --schedules 6 --climbs 3" in output
    assert "1 would need: add lanes" in output
    (file,) = keep.iterdir()
    assert file.name == "check-lanes-3-priority.toml"
    text = file.read_text()
    assert parse(text) == parse(system)
    assert "replay: tide lab hunt check-lanes --first 3" in text and "tide-sim --serve`: policy=tide" in text


def test_a_description_of_the_users_is_hunted(tmp_path: Path) -> None:
    file = ROOT / "examples/three_chains/system.toml"
    status, output = run(file, "--systems", "2", "--schedules", "2", "--climbs", "2", "--keep", tmp_path)
    assert status == 0, output
    assert "0 of " in output and "tide lab hunt" not in output
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[system]\n")
    status, output = run(wrong)
    assert status == 2 and f"{wrong}:1: the file lacks" in output


# ---- campaigns ----


def stand_in(pipe: Connection) -> None:
    """A worker that answers for all seeds except two: on the fourth it is silent, and on the sixth it ends."""
    while True:
        _, first, count, *_ = pipe.recv()
        for seed in range(first, first + count):
            pipe.send(seed)
            if seed == 4:
                time.sleep(100)  # clock: longer than the test waits
            if seed == 6:
                sys.exit(3)
        pipe.send({"systems": count})


def test_a_description_that_does_not_end_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tide_lab.hunt.workers, "SILENCE_S", 4.0)
    monkeypatch.setattr(tide_lab.hunt.workers, "work", stand_in)
    with Workers() as workers:
        answers = workers.hunt("check-lanes", 1, 8, 2, 2)
    assert [answer["systems"] for answer in answers] == [3, 1, 1, 1, 2]
    finds = [failure for answer in answers for failure in answer.get("failures", ())]
    assert [(find["seed"], find["what"]) for find in finds] == [
        (4, "no answer within 4 s"),
        (6, "the hunting process ended with status 3"),
    ]


# The command `tide` with small blocks. A Ctrl-C arrives when the third block has been added.
_CUT = """
import os, runpy, signal
from tide_lab.hunt import campaign, command

campaign.BLOCK_DESCRIPTIONS = 10
add, kept = command._add, []

def add_and_interrupt(*words):
    add(*words)
    kept.append(words)
    if len(kept) == 3:
        os.kill(os.getpid(), signal.SIGINT)

command._add = add_and_interrupt
runpy.run_module("tide_tools.main", run_name="__main__")
"""


def test_an_interrupted_campaign_of_descriptions_tells_what_it_saw(tmp_path: Path) -> None:
    systems = 80
    words = ["check-one-lane", "--systems", str(systems), "--schedules", "1", "--climbs", "1"]
    words += ["--keep", str(tmp_path / "kept")]
    command = [sys.executable, "-c", _CUT, "lab", "hunt", *words, "--out", str(tmp_path / "cut.json")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros:{ROOT}/lab"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stdout + done.stderr
    (row,) = json.loads((tmp_path / "cut.json").read_text())["rows"]
    assert 0 < row["systems"] < systems


def test_a_board_has_the_lanes_of_the_executor_that_is_bounded() -> None:
    """On several lanes, which preempt one another, the bound for one lane would be exceeded."""
    system = load(ROOT / "examples/three_chains/system.toml")
    for executor, lanes in (("tide", 1), ("lanes", 2), ("batch", 1)):
        player = BoardsPlayer(system, executor, 0, random.Random(1))
        assert f";lanes={lanes};" in player.words(player.drawn()), executor


def test_what_could_not_be_played_is_counted() -> None:
    found = Found()
    found.add(told(unplayed={"add lanes": 2}))
    assert found.to_json()["unplayed"] == {"add lanes": 2}


# ---- the simulators ----


def worst_ms(server: Server, plan: str) -> list[float]:
    return [worst_ns / 1e6 for worst_ns in server.play(plan).worst_ns]


def test_shipped_executors_of_the_host_are_simulated() -> None:
    server = Server("tide-sim")

    def worst(executor: str, *callbacks: str, more: str = "") -> list[float]:
        names = [one.split()[0] for one in callbacks]
        lines = [f"callback=name={one} on=m period_us=20000" for one in callbacks]
        lines += [f"path=name={one} callbacks={one}" for one in names]
        plan = f"horizon_us=200000;{more}executor=name=m policy=tide {executor};{';'.join(lines)}"
        return worst_ms(server, plan)

    budget, long = "budget_us=5000 budget_period_us=10000", "a execution_us=6000"
    # 5 ms, a pause, and the last 1 ms in the next period
    assert worst(budget, long) == [pytest.approx(11.0, abs=1e-5)]
    anywhere = [worst(f"{budget} anywhere=true", long, more=f"seed={seed};")[0] for seed in range(20)]
    assert min(anywhere) >= 6 and max(anywhere) <= 21 and max(anywhere) > 11
    one, two = "a execution_us=1000 priority=2", "b execution_us=2000 priority=1"
    assert worst("lanes=1", f"{one} phase_us=500", two) == [2.5, 2.0]
    assert worst("lanes=1", one, f"{two} phase_us=500") == [1.0, 2.5]
    drawn = "a execution_us=3000 least_us=1000"
    assert worst("lanes=1", drawn, more="extremes=true;") == [3.0]
    assert worst("lanes=1", drawn)[0] < 3
    for refused, executor, callback in (
        ("budget of executor 'm' is longer than its period", "budget_us=5 budget_period_us=4", long),
        ("has a least_us above execution_us", "lanes=1", "a execution_us=1 least_us=2"),
        ("begins with events", "lanes=1", "a burst=2"),
    ):
        with pytest.raises(ServerError, match=refused):
            worst(executor, callback)
    server.close()


def test_the_board_simulator_plays_executors_of_nodes_and_their_way_back() -> None:
    server = Server("tide-sim")

    def both(setting: str) -> list[float]:
        graph = "".join(
            f";callback=name={name} on=system level={level} period_us=200000;callback=name={name}h on=host1 "
            f"execution_us=20000;callback=name={name}e on=system level={level};message=name={name}m from={name} "
            f"to={name}h bytes=96 reliable=false;message=name={name}r from={name}h to={name}e bytes=10 reliable=false;"
            f"path=name={name} callbacks={name},{name}h,{name}e"
            for name, level in (("a", 2), ("b", 1))
        )
        return worst_ms(server, f"periods=4;{setting}{graph}")

    host = "executor=name=host1 lanes={}".format
    one, two, late = both(host(1)), both(host(2)), both(f"{host(2)};return_least_us=3000;return_most_us=3000")
    assert max(one) - max(two) > 5  # on one lane, one callback waits for the other
    assert [round(after - before, 3) for after, before in zip(late, two, strict=True)] == [3, 3]
    with pytest.raises(ServerError, match="is on 'host1', which is no board or executor"):
        both("seed=1")
    server.close()


# ---- earlier failures ----

SHARED_NODE = """
[system]
name = "shared"
[[executors]]
name = "m"
where = "mcu"
[[executors]]
name = "h"
where = "host"
[[links]]
name = "l"
kind = "serial"
baud = 921600
"""


def test_a_callback_without_execution_time_waits_for_a_lane_too() -> None:
    """check-board-tide 103878 had a response of 14.386 ms and a bound of 12.632 ms. Another chain's callback occupied
    the lane."""
    text = SHARED_NODE
    for name, priority, execution_ms in (("quick", 2, "EXECUTION"), ("slow", 1, 50)):
        text += f"""
[[chains]]
name = "{name}"
priority = {priority}
period_ms = 500
deadline_ms = 500
reliability = "best_effort"
callbacks = [
  {{ name = "sample", kind = "timer", executor = "m", execution_ms = 0.1,
    publishes = {{ topic = "{name}/a", payload_bytes = 20 }} }},
  {{ name = "decide", kind = "subscription", executor = "h", execution_ms = {execution_ms} }},
]
"""
    nothing_ns, little_ns = (bound_ns(text.replace("EXECUTION", one), "quick") for one in ("0", "0.001"))
    assert nothing_ns > 50_000_000
    assert nothing_ns == little_ns - 999  # a callback that takes no time counts as one nanosecond


def test_a_chain_without_a_bound_is_released_late_to_others_too() -> None:
    """check-several 301678: instances that one executor has delayed by 51.5 ms reach the next executor together,
    whether or not the chain has a bound."""

    def chain(name: str, period_ms: int, *steps: tuple[str, float]) -> str:
        text = f'[[chains]]\nname = "{name}"\npriority = {len(name)}\nperiod_ms = {period_ms}\n'
        text += f'deadline_ms = {period_ms}\nreliability = "reliable"\n'
        for place, (executor, execution_ms) in enumerate(steps):
            text += f'[[chains.callbacks]]\nname = "b{place}"\nkind = "{"subscription" if place else "timer"}"\n'
            text += f'executor = "{executor}"\nexecution_ms = {execution_ms}\n'
            text += f'publishes = {{ topic = "{name}/b{place}", payload_bytes = 8 }}\n'
        return text

    text = '[system]\nname = "heap"\n' + "".join(f'[[executors]]\nname = "{one}"\nwhere = "host"\n' for one in "fg")
    text += chain("x", 80, ("f", 51.5)) + chain("often", 10, ("f", 0.1), ("g", 0.3))
    text += chain("seldom", 200, ("g", 13.9), ("g", 94.3))
    bounds = bounds_of(parse(text), "any_order")
    found = {one.name: one.bound_ns for one in bounds.chains}
    assert found["often"] is None
    late_ns = 51_600_000  # 7 instances of `often` may arrive while the first callback of `seldom` runs
    assert found["seldom"] is not None
    assert found["seldom"] >= 13_900_000 + 94_300_000 + (late_ns + 13_900_000) // 10_000_000 * 300_000


def test_a_chain_that_takes_no_time_waits_for_its_executor() -> None:
    """check-boards 30045031 had a response of 0.098 ms, because of another chain's callback, and a bound of 0.000001
    ms."""
    text = '[system]\nname = "nothing"\n[[executors]]\nname = "h"\nwhere = "host"\n'
    for name in ("m", "n"):
        text += f'[[executors]]\nname = "{name}"\nwhere = "mcu"\nlink = "l_{name}"\n'
        text += f'[[links]]\nname = "l_{name}"\nkind = "serial"\nbaud = 115200\n'
    for priority, (name, executor, execution_ms) in enumerate(
        (("long", "h", 0.86), ("none", "h", 0), ("first", "m", 1), ("second", "n", 0)), 1
    ):
        text += f"""
[[chains]]
name = "{name}"
priority = {priority}
period_ms = 500
deadline_ms = 500
reliability = "best_effort"
callbacks = [{{ name = "only", kind = "timer", executor = "{executor}", execution_ms = {execution_ms} }}]
"""
    bounds = {one.name: one.bound_ns for one in bounds_of(parse(text)).chains}
    assert bounds["none"] == 860_001
    assert bounds["long"] == 860_001  # each callback of a chain without a board counts as at least a nanosecond
    assert bounds["second"] == 1
