# SPDX-License-Identifier: Apache-2.0
"""Chains that branch and join, in systems with boards: valid descriptions, bounds, levels, and runs of the shipped
runtime in virtual time."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import descriptions as d
from bounded import MS, all_ns, bound_ns, bound_of, bounded, refusal, worst_of
from commands import tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError, ways_of
from tide_tools.play.boards import BoardsPlayer
from tide_tools.play.server import Server
from tide_tools.run.plan import counted_of, may_wait, nodes_of, plan_of, write_board_plan
from tide_tools.simulate.described import simulate_description
from tide_tools.system.levels import levels
from tide_tools.system.load import load, parse
from tide_tools.system.servers import on_one_core

EXAMPLE = Path(__file__).parents[2] / "examples/systems/sorting_gate.toml"


def described(
    measure_ms: float = 8, look_ms: float = 12, joins: str = '["colour.look"]', period_ms: int = 100, more: str = ""
) -> str:
    text = EXAMPLE.read_text(encoding="utf-8")
    for was, now in (
        ("execution_ms = 8\n", f"execution_ms = {measure_ms}\n"),
        ("execution_ms = 12\n", f"execution_ms = {look_ms}\n"),
        ('joins = ["colour.look"]', f"joins = {joins}"),
        ("period_ms = 100", f"period_ms = {period_ms}"),
    ):
        assert was in text
        text = text.replace(was, now)
    return text + more


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch"])
@pytest.mark.parametrize(("measure_ms", "look_ms"), [(8, 12), (14, 3), (9, 9)])
def test_a_board_waits_for_the_slowest_answer(executor: str, measure_ms: float, look_ms: float) -> None:
    system = parse(described(measure_ms, look_ms))
    bounds = all_ns(system, executor)
    worst = worst_of(system, executor)
    assert worst["sort"] >= int((0.5 + max(measure_ms, look_ms) + 1) * MS)
    for name, worst_ns in worst.items():
        assert worst_ns <= bounds[name] + 1000, name


def test_a_join_is_no_earlier_than_either_branch() -> None:
    both = bound_of(described(), "sort")
    other_ns = 3 * MS  # the other branch takes longer by this
    assert both.bound_ns >= bound_ns(described(joins="[]"), "sort") + other_ns
    assert {part.chain for part in both.parts} <= {None, "sort", "size", "colour", "belt"}


def test_what_waits_for_both_inputs_counts_for_neither() -> None:
    """The nodes are on two threads, on which other chains run as well."""

    def sends(name: str, priority: int, execution_ms: float, **more: Any) -> str:
        publishes = {"topic": name, "payload_bytes": 8}
        return d.chain(name, priority, ("h", execution_ms, {"publishes": publishes}), **more)

    tick = sends("tick", 9, 1)
    inputs = [sends(name, priority, 2, branches_from="tick.b0") for name, priority in (("one", 5), ("other", 6))]
    both = d.chain("both", 7, ("h", 20), ("h", 20), branches_from="one.b0", joins=["other.b0"])
    nodes = d.chain("a", 3, ("h", 5)), d.chain("b", 2, ("h", 5))
    found = all_ns(parse(d.described(d.host("h", lanes=2), tick, *inputs, both, *nodes)))
    assert found["one"] == found["other"] < 20 * MS


def test_what_lies_on_one_path_keeps_one_lane_busy() -> None:
    """Callbacks on one path never run at the same time. At most two callbacks of the timer do, so one of three lanes is
    free."""

    def sends(name: str, priority: int, **more: Any) -> str:
        return d.chain(name, priority, ("h", 4, {"publishes": {"topic": name, "payload_bytes": 8}}), **more)

    inputs = [sends(name, priority, branches_from="tick.b0") for name, priority in (("one", 5), ("other", 6))]
    both = sends("both", 7, branches_from="one.b0", joins=["other.b0"])
    ends = [d.chain(name, priority, ("h", 4), branches_from="both.b0") for name, priority in (("x", 3), ("y", 4))]
    nodes = sends("tick", 9), *inputs, both, *ends, d.chain("alone", 2, ("h", 1))
    assert all_ns(parse(d.described(d.host("h", lanes=3), *nodes)))["alone"] == MS
    third = d.chain("third", 1, ("h", 4), branches_from="both.b0")
    assert all_ns(parse(d.described(d.host("h", lanes=3), *nodes, third)))["alone"] > 2 * MS


def test_no_bound_where_an_instance_may_meet_the_next() -> None:
    text = described(30, 30, period_ms=40).replace("deadline_ms = 80", "deadline_ms = 40")
    bound = bounded(text).chain("sort")
    assert bound.bound_ns is None and bound.reason is not None


def test_chains_of_one_timer_have_one_level_on_a_board() -> None:
    system = load(EXAMPLE)
    assert levels(system, "gate") == {"size": 30, "colour": 30, "sort": 30, "belt": 15}
    ways = ways_of(system)
    assert ways.of_chain == {"size": ("size",), "colour": ("colour",), "sort": ("sort", "sort#by1"), "belt": ("belt",)}
    assert [chain.priority for chain in ways.system.chains] == [30, 30, 30, 30, 15]


def test_what_ways_share_counts_once() -> None:
    """Several nodes answer a message of 20 bytes. On the line it is sent only once, and each chain ends with its own
    last callback."""

    def listeners(count: int, work_ms: float) -> str:
        imu = ("m", 1, {"name": "sample", "publishes": {"topic": "imu", "payload_bytes": 20}})
        return d.described(
            d.board("m"),
            d.line("l", baud=115200, escaped_bytes=0, agent_ms=1, return_ms=0),
            *(d.host(f"h{n}") for n in range(count)),
            d.chain("imu", 100, imu, period_ms=200),
            *(
                d.chain(f"see{n}", n + 1, (f"h{n}", work_ms), period_ms=200, branches_from="imu.sample")
                for n in range(count)
            ),
        )

    assert bound_ns(listeners(1, 2), "see0") == bound_ns(listeners(5, 2), "see0")
    assert bound_ns(listeners(5, 50), "imu") == MS
    assert worst_of(parse(listeners(5, 50)))["imu"] <= MS + 1000


def test_who_is_between_their_priorities_waits_for_all_of_them() -> None:
    """The belt is less urgent than the move of the gate, but more urgent than the chains before that move."""
    text = described().replace("priority = 20", "priority = 12")
    below_ns = bound_ns(text.replace("priority = 30", "priority = 14"), "belt")
    assert bound_ns(text, "belt") >= below_ns + MS // 2  # `see` at least


def test_one_message_may_bring_several_answers() -> None:
    """On the line, a more urgent message waits for the second answer. If there were only one answer, it would have been
    sent by then."""

    def step(name: str, executor: str, topic: str = "", payload_bytes: int = 0) -> tuple[str, float, dict[str, Any]]:
        execution_ms = 0.1 if executor == "m" else 0
        sends = {"topic": topic, "payload_bytes": payload_bytes} if topic else None
        return executor, execution_ms, {"name": name, "least_ms": execution_ms, "publishes": sends}

    long, end = {"period_ms": 400}, step("z", "m")
    text = d.described(
        d.board("m"),
        *(d.host(name) for name in ("p", "a", "b")),
        d.line("l", baud=115200, exact_sizes=True, escaped_bytes=0),
        d.chain("urgent", 9, step("s", "m", "u/s", 100), step("h", "p", "u/h", 8), end, **long),
        d.chain("one", 1, step("s", "m", "o/s", 100), step("h", "a", "o/h", 70), end, **long),
        d.chain("other", 2, step("h", "b", "t/h", 70), end, **long, branches_from="one.s"),
    )
    system = parse(text)
    player = BoardsPlayer(system, "tide", 0, random.Random(1))
    most = {
        "costs": False,
        "executions_ns": tuple(tuple(one.execution_ns for one in chain.callbacks) for chain in system.chains),
        "payload_bytes": tuple(tuple(one.sent_bytes or 8 for one in chain.callbacks) for chain in system.chains),
    }
    with closing(Server("tide-sim")) as server:
        runs = [  # the urgent chain begins while the message of both is on the line
            replace(player.drawn(), phases_ns=(offset_ms * MS + 3000, 0, 0), **most) for offset_ms in range(16)
        ]
        worst_ns = max(player.of_chains(server.play(player.words(run))).worst_ns[0] for run in runs)
    assert 28 * MS < worst_ns <= bound_ns(system, "urgent", "tide") + 1000  # with one answer it would be 23.4 ms


@pytest.mark.parametrize(
    ("was", "now", "executor", "losses", "told"),
    [
        ('priority = 10\nperiod_ms = 100\ndeadline_ms = 80\nreliability = "reliable"', "", "tide", 0, "best_effort"),
        ("", "", "tide", 1, "losses"),
        ("", "", "batch_stock", 0, "publishing waits"),
        ("", "", "batch_blocking", 0, "publishing waits"),
    ],
)
def test_what_has_no_bound_is_told_with_its_entry(was: str, now: str, executor: str, losses: int, told: str) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    if was:
        text = text.replace(was, was.replace('"reliable"', '"best_effort"') + now)
    with pytest.raises(NoBoundError) as error:
        bounds_of(parse(text), executor, losses)
    (finding,) = error.value.findings if told != "best_effort" else error.value.findings[:1]
    assert told in finding.what
    assert finding.path[0] == ("executors" if told == "publishing waits" else "chains")
    if told != "best_effort":
        assert len(finding.what.rpartition(": ")[2].split(", ")) > 1, "one line names all chains"


def test_a_lock_on_a_branch_has_no_bound() -> None:
    lock = '\n[[locks]]\nname = "arm"\nsections = [{ callback = "sort.move", section_ms = 0.5 }]\n'
    with pytest.raises(NoBoundError, match="lock 'arm'") as error:
        bounds_of(parse(described(more=lock)))
    assert error.value.findings[0].path == ("locks", 0)


def test_a_message_that_two_nodes_take_crosses_the_line_once() -> None:
    """In 100 ms, a line of 115,200 baud can carry the 1,100 bytes of the message once, but not twice."""
    text = EXAMPLE.read_text(encoding="utf-8").replace("921_600", "115_200")
    text = text.replace(
        '"std_msgs/msg/UInt64", payload_bytes = 8 }', '"std_msgs/msg/String", payload_bytes = 1100 }', 1
    )
    parse(text)


def test_the_plan_of_a_board_has_what_a_callback_joins(tmp_path: Path) -> None:
    system = load(EXAMPLE)
    gate = system.executor("gate")
    write_board_plan(gate, plan_of(system, gate, 3), tmp_path / "gate.plan")
    lines = (tmp_path / "gate.plan").read_text(encoding="utf-8").splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("callback move "))
    assert lines[place].split()[5] == "gate/size"
    assert lines[place + 1].split()[:2] == ["join", "gate/colour"]


def several(publishes: list[dict[str, Any]], *more: str, work_ms: float = 1, **of_link: Any) -> str:
    """A description with a timer of a board that publishes these topics every 100 ms, and with callbacks of the host
    for them."""
    link = {"baud": 100_000, "escaped_bytes": 0, "agent_ms": 1, "return_ms": 0, "mtu_bytes": 1000, **of_link}
    tick = ("m", work_ms, {"name": "tick", "publishes": publishes})
    parts = (d.board("m", submit_ms=0.5), d.line("l", **link), d.host("h"), d.host("g"))
    return d.described(*parts, d.chain("own", 9, tick), *more)


def listens(name: str, priority: int, topic: str, executor: str = "h", **more: Any) -> str:
    return d.chain(name, priority, (executor, 1, {"topic": topic}), branches_from="own.tick", **more)


def topic(name: str, payload_bytes: int = 100, **more: Any) -> dict[str, Any]:
    return {"topic": name, "payload_bytes": payload_bytes, **more}


def bound_ms(text: str, chain: str, executor: str | None = None) -> float:
    return bound_ns(text, chain, executor) / MS


def test_a_callback_that_publishes_several_topics_runs_once() -> None:
    """A message of 100 bytes is a frame of 119 bytes, which takes 11.9 ms."""
    text = several([topic("a"), topic("b")], listens("a", 8, "a"), listens("b", 7, "b", "g"))
    alone = bound_ms(several([topic("a")], listens("a", 8, "a")), "a")
    both = bound_ms(text, "a")
    assert both == pytest.approx(alone + 0.5 + 11.9, abs=0.01)
    assert bound_ms(text, "b") == pytest.approx(both, abs=0.01)  # because either message may be the first one
    assert bound_ms(text, "own") == pytest.approx(1 + 2 * 0.5, abs=0.01)
    longer = several([topic("a"), topic("b")], listens("a", 8, "a"), listens("b", 7, "b", "g"), work_ms=60)
    # with two timers, the load of the board would be 120 %
    assert bound_ms(longer, "b") == pytest.approx(both + 59, abs=0.01)


def test_a_run_makes_each_of_its_messages_once() -> None:
    """The seldom topic is published in a run of the timer, not in one of its own: a run takes 1 ms, and 0.5 ms for each
    message."""
    text = several([topic("a"), topic("b", every=10)], listens("a", 8, "a"), listens("b", 7, "b", period_ms=1000))
    assert bound_ms(text, "own") == pytest.approx(1 + 2 * 0.5, abs=0.01)


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch"])
def test_a_topic_of_which_no_chain_is_is_sent_all_the_same(executor: str) -> None:
    heard = several([topic("a"), topic("b")], listens("a", 8, "a"), listens("b", 7, "b", "g"))
    unheard = several([topic("a"), topic("b")], listens("a", 8, "a"))
    assert bound_ms(unheard, "a", executor) == pytest.approx(bound_ms(heard, "a", executor), abs=0.01)
    rest = listens("a", 8, "a"), d.chain("other", 5, ("m", 0.1), ("g", 1))
    before, after = (
        bound_ms(several(sent, *rest), "other", executor) for sent in ([topic("a")], [topic("a"), topic("b")])
    )
    assert after == pytest.approx(before + 0.5 + 11.9, abs=0.01)


@pytest.mark.parametrize("seldom", [{"every": 10}, {"distance_ms": 1000}])
def test_what_not_each_run_publishes_asks_for_its_part_of_the_line(seldom: dict[str, Any]) -> None:
    """The seldom message is a frame of 619 bytes, which takes 61.9 ms of each second. The urgent one takes 3.9 ms of
    every 100 ms."""
    long = topic("b", 600, **seldom)
    other = d.chain("other", 5, ("m", 0.1), ("g", 1), period_ms=500)
    text = several([topic("a", 20), long], listens("a", 8, "a"), listens("b", 7, "b", period_ms=1000), other)
    own = 1 + 2 * 0.5 + 3.9 + 61.9 + 2
    assert own <= bound_ms(text, "b") <= 100
    assert own <= bound_ms(text, "a") <= 100
    assert bound_ms(text, "other") == pytest.approx(
        bound_ms(several([topic("a", 20), topic("b", 600, every=20)], other), "other"), abs=0.01
    )
    each = several([topic("a", 500), topic("b", 600)], listens("a", 8, "a"), listens("b", 7, "b", "g"))
    assert "has to carry 110 % of its 100000 baud to the host" in refusal(each)[0]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('topic = "b"\n', ""), 'does not say which it takes; add topic = "...": a, b'),
        (
            ('topic = "b"\n', 'topic = "c"\n'),
            "takes topic 'c', which 'tick' before it does not publish; use one of: a, b",
        ),
        (("every = 10", "every = 1"), "branches from 'own' and has another period; write period_ms = 100"),
        (("every = 10", "every = 20"), "whose messages are 2000 ms apart; write period_ms = 2000"),
        (("every = 10", "every = 10, distance_ms = 1000"), "each 10th time and on a condition; keep distance_ms"),
        (("every = 10", "distance_ms = 50"), "more often than 'tick' runs; write distance_ms = 100 or more"),
        (('"b", payload_bytes = 600', '"a", payload_bytes = 600'), "publishes topic 'a' twice in one run"),
        (("every = 10", 'every = 10, reliability = "reliable"'), "is best_effort, and topic 'b', which it takes, is"),
        (("payload_bytes = 600, ", ""), "'publishes' of callback 1 of chain 1 lacks 'payload_bytes'"),
    ],
)
def test_what_several_topics_must_say(change: tuple[str, str], what: str) -> None:
    text = several(
        [topic("a"), topic("b", 600, every=10)], listens("a", 8, "a"), listens("b", 7, "b", "g", period_ms=1000)
    )
    assert parse(text) and change[0] in text
    lines = refusal(text.replace(*change))
    assert any(what in line for line in lines), lines


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch"])
@pytest.mark.parametrize("seldom", [{}, {"every": 3}, {"distance_ms": 250}])
def test_several_topics_of_one_callback_are_played(executor: str, seldom: dict[str, Any]) -> None:
    """Two of the messages go to chains, of which one returns to the board. The third message has no receiver."""
    period_ms = 250 if "distance_ms" in seldom else 300 if seldom else 100
    text = several(
        [topic("a", 30), topic("b", 200, **seldom), topic("c", 50)],
        d.chain("a", 8, ("h", 1, {"topic": "a"}), ("m", 2), branches_from="own.tick"),
        listens("b", 7, "b", period_ms=period_ms),
        d.chain("other", 5, ("m", 0.1), ("g", 1)),
    )
    system = parse(text)
    worst = worst_of(system, executor)
    for name, bound in all_ns(system, executor).items():
        assert 0 <= worst[name] <= bound + 1000, name


def test_a_board_with_loads_computes_as_they_preempt_it() -> None:
    flash = {"name": "flash", "execution_ms": 5, "period_ms": 500}
    for loads, waits in (([], True), ([flash], False)):
        chain = d.chain("c", 1, ("m", 1), ("h", 1))
        system = parse(d.described(d.board("m", loads=loads), d.host("h"), d.line("l", agent_ms=1), chain))
        assert may_wait(system.executor("m")) is waits and may_wait(system.executor("h"))


def test_several_topics_of_a_host_alone_are_simulated_as_often_as_published() -> None:
    tick = ("h", 1, {"name": "tick", "publishes": [topic("a"), topic("b", every=5), topic("c", distance_ms=250)]})
    others = [
        d.chain(name, priority, ("g", 2, {"topic": name}), branches_from="own.tick", period_ms=period_ms)
        for name, priority, period_ms in (("b", 7, 500), ("c", 6, 250))
    ]
    system = parse(d.described(d.host("h"), d.host("g"), d.chain("own", 9, tick), listens("a", 8, "a", "g"), *others))
    found = simulate_description(system, None, 4, 1, True)
    ended = {one.chain: one.ended for one in found.seen}
    assert ended["own"] == ended["a"] and 3 * ended["b"] < ended["a"] <= 5 * ended["b"], ended
    assert 2 * ended["c"] < ended["a"] <= 3 * ended["c"], ended
    assert not found.is_broken and not found.bad


def test_a_board_with_several_cores_is_played_on_one(tmp_path: Path) -> None:
    steps = ("m", 1), ("h", 1), ("n", 1)
    file = tmp_path / "system.toml"
    cores = d.board("m", board="esp32"), d.board("n", board="esp32"), d.host("h"), d.line("l", agent_ms=1, return_ms=1)
    file.write_text(d.described(*cores, d.chain("a", 2, *steps), d.chain("b", 1, ("n", 2), ("h", 1))), encoding="utf-8")
    status, shown = tide("simulate", file, "--runs", "4", COLUMNS="100")
    assert status == 0 and "cores of one board are played as one core" in shown and "m, n" in shown
    plan = plan_of(on_one_core(load(file)), on_one_core(load(file)).executor("m"), 3)
    assert [[one.name for one in chain.callbacks] for chain in plan] == [["b0", "b2"], ["b0"]]


def test_messages_of_one_level_leave_in_the_order_of_submission() -> None:
    """The three frames of a run take 136 ms. The frames of the next run, which take 62 ms, are submitted after 100 ms;
    no frame of the first run waits for them."""
    published = [topic("a", 600), topic("b", 300, every=5), topic("c", 400, every=10)]
    tick = ("m", 1, {"name": "tick", "publishes": published})
    more = {"branches_from": "own.tick"}
    text = d.described(
        *(d.board("m", submit_ms=0.5), d.host("h"), d.host("g")),
        d.line("l", baud=100_000, escaped_bytes=0, agent_ms=1, return_ms=0, mtu_bytes=1000),
        d.chain("own", 9, tick, ("h", 1, {"topic": "a"}), deadline_ms=200),
        d.chain("b", 7, ("g", 1, {"topic": "b"}), period_ms=500, **more),
        d.chain("c", 6, ("g", 1, {"topic": "c"}), period_ms=1000, **more),
    )
    outcome = simulate_description(parse(text), None, 6, 1, True)
    assert not outcome.is_broken
    assert all(136 * MS < one.worst_ns <= (one.bound_ns or 0) < 155 * MS for one in outcome.seen)


def test_more_urgent_messages_go_first_whenever_they_come() -> None:
    """If messages left in the order of submission instead of by level, the bound of the long message would be 98 ms."""
    text = d.described(
        *(d.board("m"), d.host("h"), d.host("g")),
        d.line("l", baud=1_000_000, escaped_bytes=0, agent_ms=40, return_ms=0, mtu_bytes=512),
        d.chain("urgent", 9, ("m", 0.1), ("h", 0.1), payload=81, period_ms=4, deadline_ms=100),
        d.chain("long", 1, ("m", 0.1), ("g", 0.1), payload=5000, period_ms=200, reliability="reliable"),
    )
    outcome = simulate_description(parse(text), None, 4, 1, True)
    worst_ns = next(one.worst_ns for one in outcome.seen if one.chain == "long")
    assert not outcome.is_broken and worst_ns > 100 * MS


def test_a_run_plays_each_topic_as_often_as_it_is_published(tmp_path: Path) -> None:
    """A chain that branches from the message has an instance only for those runs of the timer that publish the
    message."""
    seldom = [topic("b", 30, every=3), topic("c", 30, distance_ms=250)]
    text = several(
        [topic("a", 30), *seldom],
        listens("a", 8, "a"),
        d.chain("b", 7, ("h", 1, {"topic": "b"}), branches_from="own.tick", period_ms=300),
        d.chain("c", 6, ("h", 1, {"topic": "c"}), branches_from="own.tick", period_ms=250, reliability="reliable"),
    )
    system = parse(text)
    write_board_plan(system.executor("m"), plan_of(system, system.executor("m"), 3), tmp_path / "m.plan")
    lines = [one.split() for one in (tmp_path / "m.plan").read_text(encoding="utf-8").splitlines()]
    sent = {one[1]: (one[5], one[6]) for one in lines if one[0] == "send"}
    assert sent == {"a": ("1", "best_effort"), "b": ("3", "best_effort"), "c": ("3", "reliable")}
    counted = {chain.name: list(counted_of(system, chain, 3)) for chain in system.chains}
    assert counted["a"] == counted["own"] == list(range(3, 18))
    assert counted["b"] == counted["c"] == [3, 6, 9, 12, 15]
    host = nodes_of(system, system.executor("h"), plan_of(system, system.executor("h"), 3), tmp_path)
    assert [one["callbacks"][0]["takes"]["every"] for one in host["chains"]] == [1, 3, 3]


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch"])
@pytest.mark.parametrize("reliability", ["reliable", "best_effort"])
def test_no_response_is_above_its_bound_where_a_callback_publishes_several(executor: str, reliability: str) -> None:
    text = several(
        [topic("a", 40), topic("b", 90), topic("c", 300, every=5), topic("d", 60, distance_ms=250), topic("e", 30)],
        listens("a", 8, "a", reliability=reliability),
        d.chain(
            "b",
            7,
            ("g", 1, {"topic": "b", "publishes": {"topic": "b2", "payload_bytes": 20}}),
            ("m", 0.5),
            branches_from="own.tick",
            reliability=reliability,
        ),
        listens("c", 5, "c", "g", period_ms=500, reliability=reliability),
        listens("d", 4, "d", period_ms=250),
        d.chain("other", 6, ("g", 2), ("m", 2), period_ms=70, reliability=reliability),
        mtu_bytes=256 if reliability == "reliable" else 512,
        baud=400_000,
    ).replace('execution_ms = 1\npublishes = [{ topic = "a"', 'execution_ms = 3\npublishes = [{ topic = "a"')
    system = parse(text)
    bounds = all_ns(system, executor)
    for name, worst_ns in worst_of(system, executor, runs=8).items():
        assert 0 < worst_ns <= bounds[name] + 1000, name


def calls(name: str, priority: int, *more: str, service: str = "tighten") -> str:
    """A chain that begins with the seldom topic `b` and calls a service of the board."""
    told = {"service": service, "type": "std_srvs/srv/SetBool", "payload_bytes": 20}
    steps = (
        ("h", 1, {"topic": "b", "requests": told, "publishes": None}),
        ("m", 2, {"kind": "service", "replies": told, "publishes": None}),
        ("h", 1, {"kind": "client"}),
    )
    fields = {"period_ms": 1000, "reliability": "reliable", "branches_from": "own.tick"}
    return d.chain(name, priority, *steps, **fields) + "".join(more)


SELDOM = topic("b", 20, every=10, reliability="reliable")


@pytest.mark.parametrize("executor", ["tide", "lanes"])
def test_a_branch_may_end_with_a_service(executor: str) -> None:
    system = parse(several([topic("a"), SELDOM], listens("a", 8, "a"), calls("call", 7)))
    bounds, worst = all_ns(system, executor), worst_of(system, executor)
    assert worst["call"] >= (1 + 1 + 2 + 1) * MS
    assert all(worst_ns <= bounds[name] + 1000 for name, worst_ns in worst.items()), (worst, bounds)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (calls("again", 6).replace('"b0"', '"c0"'), "that other chains call, too"),
        (
            d.chain("on", 6, ("h", 1), branches_from="call.b2", period_ms=1000, reliability="reliable"),
            "before a branch",
        ),
    ],
)
def test_a_service_amid_branches_has_no_bound(more: str, told: str) -> None:
    text = several([topic("a"), SELDOM], listens("a", 8, "a"), calls("call", 7), more)
    text = text.replace('kind = "client"\n', 'kind = "client"\npublishes = { topic = "done", payload_bytes = 8 }\n', 1)
    with pytest.raises(NoBoundError) as error:
        bounds_of(parse(text))
    assert f"for a service {told}" in error.value.findings[0].what


def test_a_node_makes_a_seldom_message_in_a_run_of_its_timer() -> None:
    """If it made the message in a run of its own, a controller of 500 Hz that publishes every tenth state would run
    twice in some periods."""
    tick = ("h", 1.2, {"publishes": [topic("a", 20), topic("b", 20, every=10)]})
    parts = (d.board("m"), d.line("l", kind="udp", baud=None, agent_ms=0.1, return_ms=0.1), d.host("h"), d.host("g"))
    own = d.chain("own", 9, tick, ("m", 0.05, {"topic": "a"}), period_ms=2)
    seldom = d.chain("seldom", 8, ("g", 0.1, {"topic": "b"}), period_ms=20, branches_from="own.b0")
    system = parse(d.described(*parts, own, seldom))
    bounds, worst = all_ns(system), worst_of(system)
    assert 1.2 * MS < worst["seldom"] <= bounds["seldom"] < 2 * MS
    assert 1.25 * MS < worst["own"] <= bounds["own"] < 2 * MS
