# SPDX-License-Identifier: Apache-2.0
"""tide simulate with descriptions: the examples stay within their bounds, and deviations are detected.

TIDE_SEED is the first seed."""

from __future__ import annotations

import io
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from commands import tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.play.boards import PROGRAM, BoardsPlayer, Ran, Worst, beside_worst, meeting_worst
from tide_tools.play.server import Played, Server, ServerError
from tide_tools.simulate.described import progress_on, simulate_description
from tide_tools.system.load import load, parse

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/systems").glob("*.toml"))
SEED = int(os.environ.get("TIDE_SEED", "1"))


run = partial(tide, COLUMNS="160")


def test_there_are_examples_of_unlike_robots() -> None:
    systems = [load(file) for file in EXAMPLES]
    assert len(systems) >= 10
    assert {0, 1, 2, 3, 4} <= {len(system.boards()) for system in systems}
    assert {"serial", "udp"} == {link.kind for system in systems for link in system.links}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_meets_its_deadlines_and_keeps_to_its_bounds(file: Path, tmp_path: Path) -> None:
    status, output = run("check", file)
    assert status == 0, output
    out = tmp_path / "out"
    status, output = run("simulate", file, "--runs", "10", "--search", "--first", str(SEED), "--out", out)
    assert status == 0, output
    told = json.loads((out / "results.json").read_text(encoding="utf-8"))
    system = load(file)
    assert {one["chain"] for one in told["observed"]} == {chain.name for chain in system.chains}
    bounds = bounds_of(system)
    for one in told["observed"]:
        bound = bounds.chain(one["chain"])
        assert one["bound_ns"] == (bound.bound_ns if one["until"] is None else dict(bound.sections)[one["until"]])
        assert 0 < one["max_ns"] <= one["bound_ns"], one
        assert one["ratio"] > 0.1 and one["lost"] == 0 and one["samples"] > 30, one


ROBOTS = sorted((ROOT / "examples/systems/robots").glob("*.toml"))


@pytest.mark.parametrize("file", ROBOTS, ids=lambda file: file.stem)
def test_a_public_robot_is_described_as_it_is(file: Path, tmp_path: Path) -> None:
    system = load(file)
    bounds = bounds_of(system)
    assert all(one.bound_ns is not None for one in bounds.chains)
    assert run("show", file)[0] == 0
    out = tmp_path / "out"
    status, output = run("simulate", file, "--runs", "2", "--search", "--first", str(SEED), "--out", out)
    told = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert {one["chain"] for one in told["observed"]} == {chain.name for chain in system.chains}
    late = [one["chain"] for one in told["observed"] if one["late"]]
    assert status == int(bool(late)), output
    assert not any(bounds.chain(name).met for name in late)
    for one in told["observed"]:
        assert 0 < one["max_ns"] <= one["bound_ns"] + 1000, one


EIGHT = '"std_msgs/msg/Float64", payload_bytes = 8 }'


@pytest.mark.parametrize("name", ["conveyor_cell", "survey_boat"])
def test_a_message_shorter_than_its_number_is_played(name: str, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    text = (ROOT / f"examples/systems/{name}.toml").read_text(encoding="utf-8")
    file.write_text(text.replace(EIGHT, '"std_msgs/msg/Int32", payload_bytes = 4 }', 1), encoding="utf-8")
    status, output = run("simulate", file)
    assert status == 0 and "above its bound" not in output, output


ARM = ROOT / "examples/systems/arm_and_base.toml"


def test_a_deadline_that_a_run_misses_is_said_first_and_ends_with_1(tmp_path: Path) -> None:
    """The chain is late, but stays within its bound; the command must end with status 1."""
    text = (ROOT / "examples/systems/warehouse_cart.toml").read_text(encoding="utf-8")
    file, out = tmp_path / "tight.toml", tmp_path / "out"
    file.write_text(text.replace("deadline_ms = 80", "deadline_ms = 12"), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != text
    status, output = run("simulate", file, "--runs", "2", "--out", out)
    assert status == 1 and output.startswith("not met in 2 runs in virtual time: stop (late)\n"), output
    told = json.loads((out / "results.json").read_text(encoding="utf-8"))["observed"]
    assert {one["chain"]: (one["late"], one["above"]) for one in told} == {
        "stop": (True, False),
        "odometry": (False, False),
        "diagnosis": (False, False),
    }


def test_the_same_seed_is_the_same_run() -> None:
    system = load(ARM)
    twice = [simulate_description(system, None, 4, SEED, True).to_json() for _ in range(2)]
    assert twice[0] == twice[1]
    assert twice[0] != simulate_description(system, None, 4, SEED + 4, True).to_json()


def test_the_plan_of_the_worst_shows_it_again() -> None:
    system = load(ARM)
    outcome = simulate_description(system, None, 4, SEED, False)
    player = BoardsPlayer(system, outcome.executor, 0, random.Random(1))
    with closing(Server(PROGRAM)) as server:
        for place, chain in enumerate(system.chains):
            seen = next(one for one in outcome.seen if one.chain == chain.name and one.until is None)
            assert player.of_chains(server.play(seen.plan)).worst_ns[place] == seen.worst_ns


@pytest.mark.parametrize(
    ("slower", "chain", "until"),
    [
        ({"base": ("agent_most_us=1000", "agent_most_us=40000")}, "grip", "base"),
        ({"arm": ("on=board1 execution_us=300", "on=board1 execution_us=90000")}, "grip", None),
    ],
)
def test_what_takes_longer_than_it_says_is_above(
    slower: dict[str, tuple[str, str]], chain: str, until: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One board of the simulation takes longer than the description says."""
    ((board, (old, new)),) = slower.items()
    words = BoardsPlayer.words
    number = {"base": 0, "arm": 1}[board]

    def broken(self: BoardsPlayer, drawn: object) -> str:
        parts = words(self, drawn).split(";board=")  # type: ignore[arg-type]
        at = len(parts) - 1 if old.startswith("on=") else 1 + number  # in the plan, the graph follows the last board
        parts[at] = parts[at].replace(old, new)
        return ";board=".join(parts)

    monkeypatch.setattr(BoardsPlayer, "words", broken)
    status, output = run("simulate", ARM, "--runs", "10", "--out", tmp_path / "out")
    assert status == 1
    where = f", until it leaves {until}" if until else ""
    assert f"chain '{chain}'{where} is above its bound; replay by tide-sim --serve: " in output


# On one executor: a chain of two callbacks with a period of 100 ms, and a callback of each of two other chains.
MS = 1_000_000
OWN = [
    Ran(0, 0, 0, 10 * MS, 11 * MS, "node"),
    Ran(1, 0, 0, 12 * MS, 13 * MS, "node"),
    Ran(0, 0, 1, 112 * MS, 113 * MS, "node"),
    Ran(1, 0, 1, 118 * MS, 119 * MS, "node"),
]
OTHERS = [Ran(2, 1, 0, 31 * MS, 36 * MS, "node"), Ran(3, 2, 0, 40 * MS, 41 * MS, "node")]
OFFSETS, PERIODS = (10 * MS, 30 * MS, 40 * MS), (100 * MS, 80 * MS, 100 * MS)
SLOWEST = Worst(
    0,
    1,
    9 * MS,
    Played((9 * MS,), (2,), (0,), (1,), (), (), (((10 * MS, 10 * MS, 13 * MS), (110 * MS, 112 * MS, 119 * MS)),)),
)


def test_a_search_moves_others_to_the_steps_of_the_slowest_instance() -> None:
    source = random.Random(1)
    begins: Counter[int] = Counter()
    for _ in range(400):
        changed = meeting_worst(OFFSETS, PERIODS, OWN, SLOWEST, OTHERS, source)
        assert all(0 <= one < period_ns for one, period_ns in zip(changed, PERIODS, strict=True))
        moved = [place for place in range(3) if changed[place] != OFFSETS[place]]
        assert moved == [0] or 0 not in moved
        if 1 in moved:
            begins[(changed[1] + MS - 110 * MS) % PERIODS[1]] += 1
    # Runs must be frequent in which another callback begins just before the chain is released, or just before its
    # second callback is ready (its message takes 1 ms).
    assert begins[-1000 % PERIODS[1]] > 60 and begins[4 * MS - 1000] > 20, begins


def test_a_search_begins_a_chain_where_another_one_waited_longest() -> None:
    assert beside_worst(OFFSETS, PERIODS, OWN, SLOWEST, 1) == (10 * MS, 34 * MS + 1000, 40 * MS)


@pytest.mark.parametrize(
    ("robot", "chains"),
    [
        # In the worst case, all four lanes are busy when the chain is released, and again when its second callback is
        # ready.
        ("autoware_reference", ("lanelet", "visual")),
        # In the worst case, a message arrives just after a callback that publishes nine topics in every twentieth run.
        pytest.param("rosbot", ("led",), marks=pytest.mark.full),
    ],
)
def test_a_search_comes_near_the_bounds_of_chains_that_seldom_wait(robot: str, chains: tuple[str, ...]) -> None:
    seen = simulate_description(load(ROOT / f"examples/systems/robots/{robot}.toml"), None, 30, 1, True).seen
    assert all((one.ratio or 0) > 0.4 for one in seen if one.chain in chains), [one.ratio for one in seen]


def test_a_chain_begins_when_it_says() -> None:
    """Two chains share an executor of the host, but not at the same time. They do not meet, whatever is drawn."""
    text = ARM.read_text(encoding="utf-8")
    for name, offset in (("stop", 3), ("grip", 11)):
        text = text.replace(f'name = "{name}"\npriority', f'name = "{name}"\noffset_ms = {offset}\npriority')
    seen = simulate_description(parse(text), None, 3, SEED, True)
    plans = [one.plan for one in seen.seen]
    names = {chain.name: place for place, chain in enumerate(parse(text).chains)}
    for plan in plans:
        callbacks = [word for word in plan.split(";") if word.startswith("callback=")]
        for name, offset_us in (("stop", 3000), ("grip", 11000)):
            (own,) = (one for one in callbacks if f"name=c{names[name]}b0 " in one)
            assert f" phase_us={offset_us} " in own


def test_what_cannot_be_played_says_why(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    text = ARM.read_text(encoding="utf-8")
    file.write_text(text.replace('executor = "base"\nexecution_ms = 0.3', 'executor = "base"\nexecution = 0.3'))
    status, output = run("simulate", file)
    assert status == 2 and f"{file}:" in output and "did you mean 'execution_ms'?" in output
    file.write_text(text.replace('link = "uart_arm"', 'link = "uart_base"'))
    status, output = run("simulate", file)
    assert status == 2 and "two microcontrollers on the serial link" in output


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with closing(Server("tide-sim")) as each:
        yield each


# Lines of a plan. A callback of board x publishes; a node takes the message, and may publish a message for board y.
LOOK = "callback=name=look on=x level=1 period_us=100000 execution_us=3000"
SEEN = "message=name=seen from=look to=plan bytes=20 reliable=false;path=name=a callbacks=look,plan"
ACT = "callback=name=act on=y level=1 execution_us=2000"
COMMAND = "message=name=command from=plan to=act bytes=20 reliable=false"
BOTH = "board=x;board=y"


def test_boards_share_their_nodes(server: Server) -> None:
    plan = "callback=name=plan on=host1 execution_us=5000"
    other = "callback=name=d on=host1 period_us=100000 phase_us=2000 execution_us=9000;path=name=d callbacks=d"
    alone = server.play(f"periods=4;executor=name=host1;board=x;{LOOK};{plan};{SEEN}")
    busy = server.play(f"periods=4;executor=name=host1;board=x;{LOOK};{plan};{SEEN};{other}")
    lanes = server.play(f"periods=4;executor=name=host1 lanes=2;board=x;{LOOK};{plan};{SEEN};{other}")
    assert alone.worst_ns[0] == lanes.worst_ns[0] < busy.worst_ns[0]


def test_a_message_goes_on_to_another_board(server: Server) -> None:
    plan, path = "callback=name=plan", "path=name=b callbacks=look,plan,act"
    first = server.play(f"periods=4;board=x;{LOOK};{plan};{SEEN}").worst_ns[0]
    late = "board=x;board=y;return_least_us=7000;return_most_us=7000"
    both = server.play(f"periods=4;{late};{LOOK};{plan};{ACT};{SEEN};{COMMAND};{path}")
    assert both.worst_ns[0] == first and both.ended == (4, 4)
    assert 9_000_000 < both.worst_ns[1] - first < 20_000_000
    followed = server.play(f"periods=4;{BOTH};{LOOK};{plan} execution_us=6000;{ACT};{SEEN};{COMMAND};{path}")
    assert followed.worst_ns[0] == first + 6_000_000


def test_every_nth_instance_and_several_receivers(server: Server) -> None:
    """Two callbacks of a board receive a message that another board sends with every third instance. One of them sends
    a message back."""
    graph = (
        "callback=name=look on=x level=1 period_us=50000 execution_us=1000;callback=name=log on=y level=1;"
        "callback=name=act on=y level=2 execution_us=500;callback=name=done on=x level=1;"
        "message=name=seen from=look to=log,act bytes=1 every=3;message=name=over from=act to=done bytes=0;"
        "path=name=all callbacks=look;path=name=some callbacks=look,act,done;path=name=logged callbacks=look,log"
    )
    played = server.play(f"periods=900;{BOTH};{graph}")
    assert played.ended == (900, 300, 300) and played.lost == (0, 0, 0) and not played.violations


def test_a_callback_that_two_timers_start(server: Server) -> None:
    graph = (
        "callback=name=p on=x level=2 period_us=50000;callback=name=q on=x level=1 period_us=70000;"
        "callback=name=both on=y level=1 execution_us=300;callback=name=end;message=name=m from=p to=both bytes=6;"
        "message=name=n from=q to=both bytes=6;message=name=o from=both to=end bytes={bytes};"
        "path=name=p callbacks=p,both,end;path=name=q callbacks=q,both,end"
    )
    played = server.play(f"periods=40;{BOTH};{graph.format(bytes=6)}")
    assert played.ended == (40, 40) and not played.violations
    with pytest.raises(
        ServerError, match="'o' belongs to several timers or ways, and has no room to say to which; give it 6"
    ):
        server.play(f"periods=40;{BOTH};{graph.format(bytes=5)}")


@pytest.mark.parametrize("masks", ["false", "true"])
def test_what_a_board_executes_beside_its_callbacks(server: Server, masks: str) -> None:
    plan = f"periods=20;board=x;{LOOK};callback=name=plan;{SEEN}"
    alone = server.play(plan).worst_ns[0]
    # The load begins while the callback runs, and once more before the message is on the line.
    load = f"load=name=flash on=x execution_us=4000 period_us=100000 phase_us=1000 masks={masks}"
    assert server.play(f"{plan};{load}").worst_ns[0] == alone + 4_000_000
    often = f"load=name=motor on=x execution_us=100 period_us=1000 masks={masks}"
    assert alone + 200_000 <= server.play(f"{plan};{often}").worst_ns[0] <= alone + 1_000_000


def test_loads_that_do_not_fit_are_refused(server: Server) -> None:
    plan = f"board=x;{LOOK};callback=name=plan;{SEEN}"
    for words, what in (
        ("on=host execution_us=1 period_us=2", "load 'l' is on 'host', which is no board"),
        ("on=x execution_us=2 period_us=2", "load 'l' takes as long as its period"),
    ):
        with pytest.raises(ServerError, match=what):
            server.play(f"{plan};load=name=l {words}")


def test_events_and_late_timers_of_the_host(server: Server) -> None:
    """Bursts meet on the only lane. The response of a late timer counts from its expiry."""
    tail = "callback=name=act on=x level=1;message=name=m from=go to=act bytes=8;path=name=p callbacks=go,act"
    go = "callback=name=go on=host1 execution_us=1000 period_us=50000"
    plain, burst, late = (
        server.play(f"periods=400;executor=name=host1;board=x;{go}{more};{tail}")
        for more in ("", " burst=3", " jitter_us=30000")
    )
    assert plain.ended == late.ended == (400,) and 30 <= burst.ended[0] <= 400
    assert plain.worst_ns[0] + 2_000_000 <= burst.worst_ns[0]
    assert 29_000_000 <= late.worst_ns[0] - plain.worst_ns[0] <= 31_000_000


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (f"{BOTH};{LOOK};{LOOK}", "two callbacks have the name 'look'"),
        (f"{BOTH};{LOOK};{SEEN}", "'seen' names the callback 'plan', which is not there"),
        (f"{BOTH};{LOOK};{ACT}", "'act' has a period or messages that start it, one of them"),
        ("chain=name=a;board=y", "no chains before the first of them"),
        (
            f"{BOTH};executor=name=host1;{LOOK.replace('on=x', 'on=host2')}",
            "'look' is on 'host2', which is no board or executor",
        ),
        (f"{BOTH};{LOOK.replace('on=x', 'on=z')}", "'look' is on 'z', which is no board or executor"),
        (f"{BOTH};{LOOK};callback=name=plan;{SEEN.replace('bytes', 'hops_us=1,2 bytes')}", "as many entries"),
        (f"{BOTH};{LOOK};callback=name=plan;{SEEN.replace('look,plan', 'plan,look')}", "'a' begins with no timer"),
        (f"{BOTH};{LOOK};{ACT};{COMMAND.replace('plan', 'act')}", "start each other in a circle"),
        (f"{BOTH};{LOOK}", "a plan needs a chain, or a path"),
        (f"{BOTH};{LOOK};path=name=a callbacks=look", "board 'y' has no callback"),
    ],
)
def test_boards_that_do_not_fit_are_refused(server: Server, plan: str, what: str) -> None:
    with pytest.raises(ServerError, match=what):
        server.play(plan)


def test_progress_is_a_line_each_few_seconds_of_processor_time_where_no_terminal_is() -> None:
    told = io.StringIO()
    used = iter([0.0, 1.0, 2.5, 2.5, 3.0, 9.0, 9.0])
    with progress_on(Console(file=told), lambda: next(used)) as report:
        for done in range(1, 5):
            report(done, 8)
    assert told.getvalue() == "2 of 8 runs\n4 of 8 runs\n"
    assert list(used) == []


def test_progress_of_a_search_counts_all_its_runs() -> None:
    calls: list[tuple[int, int]] = []
    outcome = simulate_description(load(EXAMPLES[0]), None, 2, SEED, True, lambda done, of: calls.append((done, of)))
    assert [done for done, _ in calls] == list(range(1, outcome.runs + 1))
    assert calls[-1] == (outcome.runs, outcome.runs)
