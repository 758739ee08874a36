# SPDX-License-Identifier: Apache-2.0
"""How tide watch evaluates times and statuses, without a ROS 2 system."""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import deserialize_message, serialize_message
from rich.cells import cell_len
from rich.console import Console

from descriptions import chain, described, host
from tide_test_support import each_seed
from tide_tools.report.verdict import State, Verdict
from tide_tools.system.load import load, parse
from tide_tools.system.model import System
from tide_tools.watch import command, screen
from tide_tools.watch.agents import Agents
from tide_tools.watch.chains import Answers, Latencies, TopicTimes, Window, points_of, way_back
from tide_tools.watch.screen import (
    VERSION,
    AgentRow,
    ChainRow,
    ClientRow,
    LegRow,
    LinkRow,
    ProgramRow,
    ServiceRow,
    View,
)
from tide_tools.watch.session import Session, Settings, Warnings, _Watched, described_link, level_of, message_of
from tide_tools.watch.topics import WatchedTopic

ROOT = Path(__file__).parents[2]
MS = 1_000_000


# ---- the parts of a chain that can be observed ----


def test_each_publication_of_a_chain_is_a_point_with_its_place() -> None:
    system = load(ROOT / "examples/systems/arm_and_base.toml")
    found = {one.chain.name: one for one in points_of(system, 65_536)}
    assert [one.chain.name for one in points_of(system, 65_536)] == [one.name for one in system.by_urgency()]
    stop = found["stop"]
    assert [one.words for one in stop.points] == ["/bumper at the agent", "/cmd_vel"]
    assert stop.has_way and not found["odometry"].has_way
    assert [one.chain.name for one in points_of(system, 65_536, ("grip",))] == ["grip"]


def test_large_messages_are_left_out_and_said() -> None:
    system = load(ROOT / "examples/systems/arm_and_base.toml")
    found = {one.chain.name: one for one in points_of(system, 4999)}
    assert found["map"].points == ()
    assert found["map"].unseen == ("/scan has messages of 5000 B; see --largest-bytes",)


def test_a_branch_has_the_points_before_it() -> None:
    first, second, branch = (("host", 1, {"publishes": {"topic": t, "payload_bytes": 8}}) for t in ("a", "/b", "c"))
    text = described(
        host("host"), chain("trunk", 2, first, second), chain("branch", 1, branch, branches_from="trunk.b0")
    )
    found = {one.chain.name: [point.topic for point in one.points] for one in points_of(parse(text), 100)}
    assert found == {"trunk": ["/a", "/b"], "branch": ["/a", "/c"]}


# ---- times ----


def test_a_way_goes_back_by_the_latest_before() -> None:
    assert way_back([[10, 20, 30], [12, 22, 32]], [set(), set()], 25) == [20, 22, 25]
    assert way_back([[10, 20], [5]], [set(), set()], 25) is None
    assert way_back([[10, 20]], [{20}], 25) is None, "after 20 this watch missed some"


def settle(latencies: Latencies) -> None:
    came = [topic.settle() for topic in latencies.topics]
    latencies.match(came[-1])


def test_an_end_waits_until_its_beginning_is_known() -> None:
    first, last = TopicTimes(), TopicTimes()
    latencies = Latencies([first, last], 100 * MS)
    last.take(30 * MS, 1)
    settle(latencies)
    first.take(10 * MS, 1)  # published before the message of the last topic, received after it
    settle(latencies)
    assert latencies.count == 0, "another one may still come that is nearer"
    first.take(20 * MS, 2)
    first.take(110 * MS, 3)
    settle(latencies)
    assert (latencies.count, latencies.last_ns) == (1, 10 * MS)


def test_an_end_without_a_beginning_of_its_own_is_no_latency() -> None:
    """The first topic of the chain stops, but its last topic continues."""
    first, last = TopicTimes(), TopicTimes()
    latencies = Latencies([first, last], 10 * MS)
    first.take(0, 1)
    for number in range(10):
        last.take((5 + 100 * number) * MS, 1 + number)
        settle(latencies)
    assert latencies.count == 0
    first.take(1000 * MS, 2)
    settle(latencies)
    assert (latencies.count, latencies.unmatched, latencies.greatest_ns, latencies.misses) == (1, 9, 5 * MS, 0)


def test_a_clock_that_was_set_back_makes_no_latency() -> None:
    first, last = TopicTimes(), TopicTimes()
    latencies = Latencies([first, last], 10 * MS)
    hour_ns = 3600 * 1000 * MS
    for base_ns in (hour_ns, 0):
        for number in range(1500):
            first.take(base_ns + 10 * number * MS, None)
            last.take(base_ns + (10 * number + 3) * MS, None)
            if number % 5 == 0:
                settle(latencies)
    assert latencies.count >= 2900 and latencies.greatest_ns == 3 * MS
    assert max(first.recent) < hour_ns, "what is ahead of the clock would have the place of what comes"


@each_seed(range(200))
def test_what_is_seen_is_never_more_than_what_was(seed: int) -> None:
    """Latencies may exceed the period, instances may be lost, and the watch may miss messages. It takes them in batches
    of any size."""
    source = random.Random(seed)
    period_ns = 10 * MS
    first, last = TopicTimes(), TopicTimes()
    latencies = Latencies([first, last], period_ns)
    events: list[tuple[int, int, int, int]] = []  # time, topic, number, instance
    longest_ns = source.choice((8, 18)) * MS
    latest_ns = 0
    true_ns: dict[int, int] = {}
    number = 0
    for instance in range(200):
        begun_ns = instance * period_ns
        events.append((begun_ns, 0, instance + 1, instance))
        if source.random() < 0.1:
            continue
        latest_ns = max(latest_ns + 1, begun_ns + source.randint(1, longest_ns))
        number += 1
        true_ns[latest_ns] = latest_ns - begun_ns
        events.append((latest_ns, 1, number, instance))
    seen: list[tuple[int, int]] = []
    count = latencies._count

    def counted(way: list[int]) -> None:
        seen.append((way[-1], way[-1] - way[0]))
        count(way)

    latencies._count = counted  # type: ignore[method-assign]
    for at_ns, topic, sequence, _ in sorted(events):
        if source.random() < 0.05:
            continue
        (first, last)[topic].take(at_ns, sequence)
        if source.random() < 0.3:
            settle(latencies)
    settle(latencies)
    assert seen and all(latency_ns <= true_ns[end_ns] for end_ns, latency_ns in seen), f"seed {seed}"
    if longest_ns < period_ns:
        assert all(latency_ns == true_ns[end_ns] for end_ns, latency_ns in seen), f"seed {seed}"
        assert len(seen) > 100
    assert latencies.misses == sum(latency_ns > period_ns for _, latency_ns in seen)


def test_nothing_grows() -> None:
    first, last = TopicTimes(), TopicTimes()
    latencies = Latencies([first, last], MS)
    for number in range(10_000):
        if number % 3:
            first.take(number * MS, number)
        last.take(number * MS + 10, number)
        if number % 10 == 0:
            settle(latencies)
    assert len(first.recent) <= 1024 and len(first.holes) <= 1025
    assert len(latencies._waiting) <= 1024 and len(latencies.window._ordered) <= 1000


@each_seed(range(20))
def test_the_percentile_is_of_the_last_thousand(seed: int) -> None:
    source = random.Random(seed)
    window, values = Window(100), []
    for _ in range(source.randint(1, 300)):
        values.append(source.randint(0, 50))
        window.add(values[-1])
    kept = sorted(values[-100:])
    p99 = window.percentile(99)
    assert p99 in kept and sum(value > p99 for value in kept) <= len(kept) / 100
    assert all(sum(value > other for value in kept) > len(kept) / 100 for other in kept if other < p99)
    assert Window().percentile(99) is None


def test_numbers_of_a_publisher_tell_what_the_watch_missed() -> None:
    topic = TopicTimes()
    for number in (1, 2, 5, 6):
        topic.take(number * MS, number)
    assert topic.missed == 2 and topic.holes == {2 * MS}
    topic.take(7 * MS, 1)  # another publisher takes its place
    assert topic.missed == 2 and 6 * MS in topic.holes


# ---- missing answers ----


def steps(answers: Answers, starts: list[int], ends: list[int], seconds: float) -> None:
    """Processes the messages twice a second, as a watch does. The times are in ms."""
    for step in range(int(seconds * 2)):
        inside = range(step * 500, step * 500 + 500)
        answers.take([at * MS for at in starts if at in inside], [at * MS for at in ends if at in inside])


STARTS = list(range(0, 20_000, 40))


def watched(system: System) -> _Watched:
    """The only chain of the system. The watch has subscribed to all its topics long ago, and all publishers are on this
    machine."""
    (points,) = points_of(system, 65_536)
    topics = {
        one.topic: WatchedTopic(one, 40 * MS, state="seen", publishers=1)
        for one in (*points.points, *points.ends, *points.beside)
    }
    for one in topics.values():
        one.machines, one.subscription, one.heard_s = frozenset({b"pc"}), Mock(), 10.0
    return _Watched(points, topics, {})


def play(chain: _Watched, every: Sequence[int], seconds: range, step_s: float = 1.0) -> Verdict | None:
    """Publishes for these seconds. ``every`` says for each topic in which runs it is published: in every nth one (0:
    never). The topics of a run are 10 ms apart. Asks for a verdict after each step, as a watch does, and returns the
    last one."""
    found = None
    for step in range(int(seconds.start / step_s), int(seconds.stop / step_s)):
        first, last = (int(number * step_s * 1000) // 40 for number in (step, step + 1))
        for place, (topic, apart) in enumerate(zip(chain.every, every, strict=True)):
            for number in range(first, last):
                if apart and number % apart == 0:
                    topic.times.take((number * 40 + place * 10) * MS, topic.times.count + 1)
                    topic.heard_s = 10.0 + (step + 1) * step_s
        came = {one.point.topic: one.times.settle() for one in chain.every}
        chain.count(came, False, 10.0 + (step + 1) * step_s)
        found = chain.verdict(10.0 + (step + 1) * step_s)
    return found


def drive(*publications: dict[str, Any] | list[dict[str, Any]]) -> System:
    """A system with one chain, in which each callback takes the first topic of the callback before it."""
    steps: list[tuple[str, int, dict[str, Any]]] = []
    for one in publications:
        several = [{"payload_bytes": 8, **each} for each in (one if isinstance(one, list) else [one])]
        before = steps[-1][2]["publishes"] if steps else []
        steps.append(("h", 1, {"publishes": several, **({"topic": before[0]["topic"]} if len(before) > 1 else {})}))
    return parse(described(host("h"), chain("drive", 1, *steps, period_ms=40)))


@pytest.mark.parametrize(("every", "state"), [(1, State.NO_GUARANTEE), (10, State.NOT_MET)])
def test_a_node_that_answers_every_tenth_message_is_seen_within_two_seconds(every: int, state: State) -> None:
    """The watch takes messages in two steps a second, as in a session."""
    found = play(watched(drive({"topic": "imu"}, {"topic": "cmd"})), (1, every), range(2), 0.5)
    assert found is not None and found.state is state
    assert (every == 1) != ("unanswered" in found.reasons[0])
    assert (every == 1) == any("premises are not watched" in one for one in found.reasons)


@pytest.mark.parametrize(
    ("imu", "cmd", "every", "state"),
    [
        ({}, {"every": 5}, (1, 5), State.NO_GUARANTEE),
        ({}, {"every": 5}, (1, 10), State.NOT_MET),
        ({"every": 5}, {}, (5, 5), State.NO_GUARANTEE),
        ({"every": 5}, {}, (10, 10), State.NOT_MET),
        ({}, {"distance_ms": 80}, (1, 7), State.NO_GUARANTEE),
        ({"distance_ms": 80}, {}, (7, 7), State.NO_GUARANTEE),
        ({"distance_ms": 80}, {}, (7, 14), State.NOT_MET),
    ],
)
def test_a_topic_is_expected_as_often_as_described(
    imu: dict[str, int], cmd: dict[str, int], every: tuple[int, int], state: State
) -> None:
    """``every`` says for each topic how many runs of its callback there are for each message."""
    one = watched(drive({"topic": "imu", **imu}, {"topic": "cmd", **cmd}))
    found = play(one, every, range(10))
    assert found is not None and found.state is state, found
    silent = [one.point.apart_ns and 5 * one.point.apart_ns < 10_000 * MS for one in one.topics]
    assert one.state(30.0)[0] == ("silent" if any(silent) else "running")


ENDS: list[dict[str, Any]] = [{"topic": "cmd"}, {"topic": "log"}, {"topic": "slow", "every": 5}]


@pytest.mark.parametrize(
    ("every", "state", "says"),
    [
        ((1, 1, 1, 5), State.NO_GUARANTEE, "premises are not watched"),
        ((1, 10, 1, 5), State.NOT_MET, "unanswered"),
        ((1, 1, 10, 5), State.NOT_MET, "unanswered"),
        ((1, 1, 1, 10), State.NOT_MET, "unanswered"),
    ],
)
def test_each_topic_with_which_a_chain_ends_is_judged(every: tuple[int, ...], state: State, says: str) -> None:
    one = watched(drive({"topic": "imu"}, ENDS))
    assert [topic.point.topic for topic in one.every] == ["/imu", "/cmd", "/log", "/slow"]
    found = play(one, every, range(10))
    assert found is not None and found.state is state and any(says in reason for reason in found.reasons), found
    one.ends[0].state = "gone"
    assert one.state(20.0) == ("gone", "nothing publishes /log any more")


def test_an_end_that_no_start_asked_for_is_not_unanswered() -> None:
    found = play(watched(drive({"topic": "imu"}, ENDS)), (10, 10, 10, 10), range(10))
    assert found is not None and found.state is State.NOT_MET
    assert found.reasons[0].endswith("not started") and not any("unanswered" in one for one in found.reasons), found


def test_what_is_missing_beside_the_way_is_named() -> None:
    one = watched(drive([{"topic": "imu"}, {"topic": "raw"}], {"topic": "cmd"}))
    found = play(one, (1, 1, 0), range(10))
    assert found is not None and found.state is State.NO_GUARANTEE
    assert one.state(20.0) == ("silent", "there was nothing on /raw for 10 s")
    found = play(watched(drive([{"topic": "imu"}, {"topic": "raw"}], {"topic": "cmd"})), (1, 1, 2), range(10))
    assert found is not None and any("messages of /raw are missing" in reason for reason in found.reasons), found


def test_what_was_measured_long_ago_is_no_verdict() -> None:
    """Since a second publisher has appeared, nothing can be measured."""
    one = watched(drive({"topic": "imu"}, {"topic": "cmd"}))
    assert play(one, (1, 1), range(10)) is not None
    one.topics[1].publishers = 2
    found = play(one, (1, 1), range(10, 15))
    assert found is not None and any("/cmd has 2 publishers" in reason for reason in found.reasons), found
    assert play(one, (1, 1), range(15, 25)) is None
    assert "look alike" in one.no_latency(False)


@pytest.mark.parametrize("delay_ms", [0, 1, 39, 40])
def test_answers_in_time_are_none_that_are_missing(delay_ms: int) -> None:
    answers = Answers(40 * MS)
    steps(answers, STARTS, [at + delay_ms for at in STARTS], 20)
    assert answers.count == 0


def test_an_end_that_was_taken_before_its_start_is_an_answer() -> None:
    """The watch takes the topics of a step one after the other, so it may take an end before its start."""
    answers = Answers(40 * MS)
    answers.restart()
    for step in range(1, 20):
        now = range(step * 400, step * 400 + 400)
        answers.take([at * MS for at in now if at % 40 == 0], [(at + 41) * MS for at in now if at % 40 == 0])
    assert answers.count == 0


def test_a_latency_above_the_bound_is_the_one_that_was_seen() -> None:
    one = watched(drive({"topic": "imu"}, {"topic": "cmd"}))
    one.latencies.bound_ns = 2 * MS
    found = play(one, (1, 1), range(3))
    assert found is not None and found.reasons[0] == "an instance was above its bound"


def test_each_answer_that_is_missing_is_counted_once() -> None:
    answers = Answers(40 * MS)
    steps(answers, STARTS, [at + 10 for number, at in enumerate(STARTS) if number not in (100, 200, 201)], 20)
    assert answers.count == 3
    assert len(answers._starts) < 20 and len(answers._ends) < 20


def test_a_clock_that_was_set_back_makes_no_answer_missing() -> None:
    answers = Answers(40 * MS)
    steps(answers, [at + 3_600_000 for at in STARTS], [at + 3_600_010 for at in STARTS], 3603)
    steps(answers, STARTS, [at + 10 for at in STARTS], 20)
    assert answers.count == 0


# ---- agents ----


def of(name: str, hardware: str, level: int = 0, **values: Any) -> DiagnosticStatus:
    words = {key: key if key == "samples_to_dds" else key.replace("_", " ") for key in values}
    told = [KeyValue(key=words[key], value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(name=name, level=bytes([level]), message="words", hardware_id=hardware, values=told)


def array(second: float, *status: DiagnosticStatus) -> DiagnosticArray:
    """As rclpy received it."""
    sent = DiagnosticArray(status=status)
    sent.header.stamp.sec, sent.header.stamp.nanosec = (int(one) for one in divmod(second * 1e9, 1e9))
    return deserialize_message(serialize_message(sent), DiagnosticArray)


def agent(hardware: str, clients: int = 0, shown: int = 0, name: str = "tide_agent") -> DiagnosticStatus:
    return of(name, hardware, samples_to_dds=0, clients=clients, clients_in_this_array=shown, period_ms=1000)


def test_the_load_of_a_link_is_from_two_arrays() -> None:
    agents = Agents()
    for second, octets in ((10, 1000), (12.5, 3500)):
        link = of("tide_agent: link l", "serial /dev/x 115200", bits_per_second=100_000, bytes_in=octets, bytes_out=7)
        agents.take(array(second, agent("a"), link))
        (told,) = agents.all.values()
        found = told.links["serial /dev/x 115200"]
        assert found.bytes_in_per_s == (None if second == 10 else 1000)
    assert found.load(found.bytes_in_per_s) == pytest.approx(0.1)
    assert found.bytes_out_per_s == 0


def test_several_agents_and_one_that_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    agents = Agents()
    agents.take(array(1, agent("robot process 1", name="left")))
    agents.take(array(1, agent("robot process 2", name="right")))
    agents.take(array(1, agent("other process 9", name="right")))
    assert len(agents.all) == 3 and not any(one.is_gone for one in agents.all.values())
    now[0] += 2
    agents.take(array(3, agent("robot process 2", name="right")))
    now[0] += 3
    gone = {one.told.hardware for one in agents.all.values() if one.is_gone}
    assert gone == {"robot process 1", "other process 9"}
    agents.take(array(9, agent("robot process 7", name="left")))
    left = [one for one in agents.all.values() if one.told.name == "left"]
    assert [(one.told.hardware, one.restarts, one.is_gone) for one in left] == [("robot process 7", 1, False)]


def test_clients_that_are_told_of_in_turns_stay_until_they_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    agents = Agents()
    for turn in range(3):
        clients = [of(f"tide_agent: client {number:08X}", "udp x") for number in range(2 * turn, 2 * turn + 2)]
        agents.take(array(turn, agent("a", clients=6, shown=2), *clients))
        now[0] += 1
    (told,) = agents.all.values()
    assert sorted(told.clients) == [f"{number:08X}" for number in range(6)]
    now[0] += 60
    agents.take(array(70, agent("a", clients=6, shown=2), of("tide_agent: client 00000000", "udp x")))
    (told,) = agents.all.values()
    assert list(told.clients) == ["00000000"]
    agents.take(array(71, agent("a", clients=0, shown=0)))
    (told,) = agents.all.values()
    assert told.clients == {}


def test_other_programs_are_told_with_their_words_and_the_watch_is_not() -> None:
    agents = Agents()
    table = of("motor: object 1", "board", objects=3)  # for tide trace describe
    agents.take(array(1, of("motor: budget", "board", 1, lane="control"), of("tide_watch: chain x", "s", 2), table))
    assert [(one.name, one.level, one.values) for one in agents.programs.values()] == [
        ("motor: budget", "warning", {"lane": "control"})
    ]
    for number in range(1000):
        agents.take(array(1, of(f"part {number}", "")))
    assert len(agents.programs) <= 200
    assert agents.all == {}


def test_an_empty_array_and_words_in_place_of_numbers_do_no_harm() -> None:
    agents = Agents()
    agents.take(array(1))
    agents.take(array(1, of("tide_agent", "a", 7, samples_to_dds="many", clients="none")))
    (told,) = agents.all.values()
    assert told.told.level == "stale" and told.told.number("clients") == 0


# ---- links in the description ----


def test_a_link_of_the_agent_is_found_in_the_description() -> None:
    system = load(ROOT / "examples/systems/rover_udp.toml")
    (network,) = [one for one in system.links if one.kind == "udp"]
    name = f"udp 0.0.0.0:{network.port}"
    assert described_link(system, name, [name]) == network.name
    assert described_link(system, "udp 0.0.0.0:1", ["udp 0.0.0.0:1"]) == ""
    three = load(ROOT / "examples/three_chains/system.toml")
    line = "serial /dev/ttyUSB0 115200"
    assert described_link(three, line, [line]) == three.links[0].name
    assert described_link(three, line, [line, "serial /dev/ttyUSB1 115200"]) == "", "either may be meant"
    two = load(ROOT / "examples/systems/arm_and_base.toml")
    assert described_link(two, line, [line]) == ""


# ---- statements in the guide ----


def test_the_guide_has_every_key() -> None:
    page = (ROOT / "docs/guide/watching.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`(\w+)`", page[page.index("## The JSON") :]))
    rows = (View, ChainRow, LegRow, ServiceRow, LinkRow, AgentRow, ClientRow, ProgramRow)
    keys = {one.name for kind in rows for one in dataclasses.fields(kind)}
    assert keys == said - {"null"}
    assert VERSION == 2 and "`version` is 2;" in " ".join(page.split())


# ---- output ----


def row(name: str, state: str = "running", verdict: str = "met, bound not judged", **changed: Any) -> ChainRow:
    values: dict[str, Any] = {
        "name": name,
        "priority": 1,
        "period_ns": 10 * MS,
        "deadline_ns": 10 * MS,
        "bound_ns": 8 * MS,
        "no_bound": "",
        "state": state,
        "why": "",
        "verdict": verdict,
        "start": "/a",
        "end": "/b",
        "clock": "one machine",
        "last_ns": MS,
        "p99_ns": 2 * MS,
        "greatest_ns": 3 * MS,
        "instances": 5,
        "misses": 0,
        "above": 0,
        "unanswered": 0,
        "not_started": 0,
        "unmatched": 0,
        "missed_by_watch": 0,
        "messages_per_s": 100.0,
        "longest_gap_ns": 11 * MS,
        "legs": [],
        "unseen": [],
    }
    return ChainRow(**{**values, **changed})


def view(*rows: ChainRow, notes: tuple[str, ...] = ()) -> View:
    return View(1, "view", "robot", 0, 0, 0, "running", list(notes), list(rows), [], [], [], [])


def test_chains_that_need_an_eye_come_first_and_the_rest_is_counted() -> None:
    rows = [row(f"fine_{number}") for number in range(1000)]
    rows += [
        row("late", verdict="not met", reasons=["2 late"]),
        row("quiet", state="silent"),
        row("wrong", verdict="met, guarantee void", reasons=["an instance was above its bound"]),
    ]
    console = Console(width=160, height=40, record=True)
    console.print(screen.picture(view(*rows), console))
    text = console.export_text()
    assert len(text.splitlines()) <= 40
    assert text.index("late") < text.index("wrong") < text.index("quiet") < text.index("fine_0")
    assert "more chains" in text


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_number_is_cut_however_narrow_the_terminal_is(width: int) -> None:
    rows = [
        row("a_rather_long_name_of_a_chain_that_is_cut", greatest_ns=1234567890, bound_ns=98765432100, start="/a" * 40)
    ]
    console = Console(width=width, height=40, record=True)
    console.print(screen.picture(view(*rows), console))
    text = console.export_text()
    assert "1234.57" in text and "98765.43" in text
    assert all(len(line) <= width for line in text.splitlines())


def test_what_others_say_is_one_line_without_escape_sequences() -> None:
    said = "first\nsecond \x1b[2J\x9b2J \u202egnol \u5e83\u3044 " * 3
    agents = [AgentRow("an\nagent", "", "running", "warning", said, 0, 1, 0, 2, 3)]
    shown = dataclasses.replace(view(row("a", why=said, last_ns=None)), agents=agents)
    console = Console(width=100, height=40, record=True, color_system=None)
    console.print(screen.picture(shown, console))
    text = console.export_text()
    assert "first second" in text and "an agent" in text
    assert not any(not one.isprintable() for one in text.replace("\n", ""))
    assert all(cell_len(line) <= 100 for line in text.splitlines())
    assert len(text.splitlines()) == 11
    assert all(line.isprintable() for line in screen.plain_lines(shown, None))


def test_plain_lines_tell_a_chain_when_it_changes() -> None:
    before = view(row("a"), row("b"))
    first = screen.plain_lines(before, None)
    assert len(first) == 3
    assert screen.plain_lines(view(row("a"), row("b")), before) == [first[0]]
    changed = screen.plain_lines(
        view(row("a", verdict="not met", misses=2, reasons=["2 late"]), row("b"), notes=("a note",)), before
    )
    assert len(changed) == 3 and changed[1].startswith("  a: not met (2 late); /a to /b") and changed[2] == "  a note"
    why = "/b has 2 publishers, which look alike: no latency"
    untold = screen.plain_lines(
        view(row("a", verdict="", why=why, last_ns=None), row("b")), view(row("a", verdict=""), row("b"))
    )
    assert untold[1:] == [f"  a: running; {why}"]
    silent = [view(row("a", state="silent", why=f"there was nothing on /b for {seconds} s")) for seconds in (5, 6)]
    assert len(screen.plain_lines(silent[1], silent[0])) == 1


# ---- levels and the exit status ----


@pytest.mark.parametrize(
    ("seen", "level", "says"),
    [
        ({}, "ok", "met, bound not judged: "),
        ({"verdict": "met, guarantee void", "reasons": ["9 ms"]}, "warning", "met, guarantee void: 9 ms"),
        ({"state": "waiting", "why": "nothing publishes /log yet"}, "stale", "nothing publishes /log yet"),
        ({"state": "waiting", "verdict": "not met", "reasons": ["2 late"], "why": "w"}, "error", "not met: 2 late"),
        ({"state": "refused", "why": "no such type"}, "warning", "no such type"),
        ({"state": "gone", "why": "nothing publishes /b any more"}, "error", "nothing publishes /b any more"),
        ({"verdict": ""}, "stale", "nothing was measured"),
    ],
)
def test_a_status_for_others_is_that_of_the_view(seen: dict[str, Any], level: str, says: str) -> None:
    one = row("a", **seen)
    assert (level_of(one), message_of(one)) == (level, says)
    shown = screen.word_of(one)
    assert (level == "ok") == shown.startswith("met"), "the view says it, too"


def test_the_first_status_is_as_bad_as_the_worst_chain() -> None:
    node = Mock()
    Warnings(node).publish(view(row("fine"), row("dead", state="gone", why="nothing publishes /b any more")))
    array = node.create_publisher.return_value.publish.call_args.args[0]
    told = [(one.name, int.from_bytes(one.level, "little"), one.message) for one in array.status]
    assert told[0] == ("tide_watch", 2, "1 of 2 chains are not ok")
    assert told[1] == ("tide_watch: chain dead", 2, "nothing publishes /b any more") and told[2][1] == 0


@pytest.mark.parametrize(
    ("seen", "status"),
    [({}, 0), ({"misses": 1}, 1), ({"unanswered": 1, "above": 1}, 1), ({"failures": 1}, 1), ({"above": 1}, 3),
     ({"instances": 0}, 5), ({"state": "waiting"}, 5), ({"why": "/b has 2 publishers"}, 5)],
)  # fmt: skip
def test_the_exit_status_is_that_of_a_run(seen: dict[str, Any], status: int) -> None:
    assert command._status(view(row("a", **seen))) == status


def test_a_node_that_was_away_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node dies and is restarted before the watch ends. In the last view all is well, but the exit status must be
    that of a failure."""
    one = watched(drive({"topic": "imu"}, {"topic": "cmd"}))
    session = Session.__new__(Session)
    session.settings = Settings(0, 65_536)
    rows = []
    for second, state in enumerate(["seen", "gone", "gone", "seen", "seen"]):
        one.topics[1].state = state
        play(one, (1, 1 if state == "seen" else 0), range(second, second + 1))
        rows.append(session._chain_row(one, {}, 11.0 + second))
    assert [each.state for each in rows] == ["running", "gone", "gone", "running", "running"]
    assert [each.failures for each in rows] == [0, 1, 2, 2, 2] and rows[-1].verdict.startswith("met")
    assert command._status(view(rows[-1])) == 1
