# SPDX-License-Identifier: Apache-2.0
"""The verdict on a chain, for every combination of what was observed, how complete that is, and whether the premises
held; and the verdicts on recorded runs that were wrongly called "met, guaranteed" once."""

from __future__ import annotations

import html
import io
import itertools
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console

import descriptions as d
from commands import results_of, tide
from tide_tools.analysis import premises
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.report.page import write_page
from tide_tools.report.results import Answer, PathResult, Results, premises_of, write
from tide_tools.report.table import KINDS, summaries, verdict_table, weaknesses
from tide_tools.report.verdict import (
    Completeness,
    Observation,
    Premises,
    State,
    Verdict,
    exit_status,
    not_published,
    unanswered,
    verdict,
)
from tide_tools.run.observer import WallClock, _Topic
from tide_tools.run.results import Outcome, outcome_of
from tide_tools.run.robot import Recorded
from tide_tools.system.load import load, parse
from tide_tools.system.model import Callback, Chain, System
from tide_tools.terminal.style import print_whole

MS = 1_000_000
ROOT = Path(__file__).parents[2]
DEADLINE_NS = 40 * MS

OBSERVATIONS = {
    "all in time": Observation(10, 0, 0, 0, 30 * MS),
    "one late": Observation(10, 1, 0, 0, 41 * MS),
    "one unanswered": Observation(9, 0, 1, 0, 30 * MS),
    "one not started": Observation(9, 0, 0, 1, 30 * MS),
    "nothing": Observation(0, 0, 0, 0, None),
    "above the bound": Observation(10, 0, 0, 0, 36 * MS),
}
COMPLETENESS = {
    "all": Completeness(),
    "a part": Completeness(part="a to b"),
    "some": Completeness(doubt="the observer missed 3 messages of a"),
    "none": Completeness(unseen="only a can be seen"),
}
PREMISES = {
    "held": Premises(),
    "unseen": Premises(unseen=("lost frames",)),
    "broken": Premises(("execution times (decide took 2 ms of 1 ms)",), ("lost frames",)),
}
BOUNDS = {"none": None, "too long": 50 * MS, "in time": 35 * MS}


def combinations() -> Iterator[tuple[tuple[str, str, str, str], Verdict]]:
    for words in itertools.product(OBSERVATIONS, COMPLETENESS, PREMISES, BOUNDS):
        seen, complete, held, bound = words
        found = verdict(OBSERVATIONS[seen], COMPLETENESS[complete], PREMISES[held], DEADLINE_NS, BOUNDS[bound])
        yield words, found


def expected(seen: str, complete: str, held: str, bound: str) -> State:
    """The rule in another form than in the code: a verdict is given only if no evidence contradicts its claim."""
    if seen.startswith("one "):
        return State.NOT_MET
    if complete == "none":
        return State.NOT_SEEN
    if seen == "nothing":
        return State.NOT_MET
    if bound != "in time":
        return State.NO_GUARANTEE
    if held == "broken" or seen == "above the bound":
        return State.VOID
    return State.GUARANTEED if (complete, held) == ("all", "held") else State.NOT_JUDGED


def test_every_combination_has_its_verdict() -> None:
    every = dict(combinations())
    assert len(every) == 6 * 4 * 3 * 3
    assert {words: found.state for words, found in every.items()} == {words: expected(*words) for words in every}
    assert {found.state for found in every.values()} == set(State)
    for words, found in every.items():
        assert found.reasons or found.state is State.GUARANTEED, words


def test_green_needs_everything() -> None:
    green = [words for words, found in combinations() if found.state.colour == "green"]
    assert green == [("all in time", "all", "held", "in time")]


def test_a_broken_premise_is_named_in_the_verdict() -> None:
    for (seen, complete, held, bound), found in combinations():
        if found.state is State.VOID and held == "broken":
            assert "decide took 2 ms" in str(found), (seen, complete, bound)


def test_an_observation_that_breaks_several_premises_is_one_reason() -> None:
    ids = ("not_given", "execution", "machine", "agent")
    counters = ("act took 2 ms", "act took 2 ms", "act took 2 ms", "3 ms")
    answers = [Answer(id=one, text="", verdict="broken", counter=it) for one, it in zip(ids, counters, strict=True)]
    assert premises_of(answers).broken == (
        "broken, your numbers and programs: times that the description leaves out, execution times (act took 2 ms)",
        "broken, your numbers and programs: agent_ms (3 ms)",
        "broken, the machine: processors present (act took 2 ms)",
    )


def test_the_table_of_verdicts_fits_a_terminal() -> None:
    """The table fits even with the longest verdict and with names of paths. A verdict is broken only between words."""
    system = robot_with(played=True)
    run = outcome(recorded(IMU, ANSWERS), system).run
    path = PathResult(
        path="part_gone", what="reaction", chains=["drive"], samples=9, late=0, p50_ns=10**8, max_ns=10**9,
        deadline_ns=2 * 10**9, bound_ns=None,
    )  # fmt: skip
    results = results_of(run.model_copy(update={"paths": [path]}))
    console = Console(width=80, record=True, file=io.StringIO())
    print_whole(console, verdict_table(results))
    lines = console.export_text().splitlines()
    assert lines[0] == "ms from the tick", "of the whole chain, although its node is the user's"
    assert max(map(len, lines)) <= 80 and any("reaction of part_gone" in one for one in lines), lines


def test_exit_statuses_differ() -> None:
    def status(*states: State, require: bool = False, above: bool = False) -> int:
        return exit_status([Verdict(one) for one in states], require, above)

    assert status(State.GUARANTEED) == status(State.NOT_JUDGED, State.NO_GUARANTEE) == 0
    assert status(State.GUARANTEED, State.NOT_MET, State.VOID) == 1
    assert status(State.NOT_JUDGED, above=True) == 3
    assert status(State.VOID, State.NOT_SEEN) == 4
    assert status(State.GUARANTEED, State.NOT_SEEN) == status() == 5
    assert status(State.GUARANTEED, require=True) == 0
    assert status(State.GUARANTEED, State.NOT_JUDGED, require=True) == status(State.NO_GUARANTEE, require=True) == 5


def test_premises_of_every_analysis_have_a_name_and_a_group() -> None:
    files = [*(ROOT / "examples").rglob("*.toml"), *(ROOT / "tools/tests/data/systems").glob("*.toml")]
    known: set[str] = set()
    for file in files:
        if "[[chains]]" in file.read_text(encoding="utf-8"):
            known |= {one.id for one in bounds_of(load(file)).assumptions}
    assert len(known) > 10
    assert known <= premises._KNOWN.keys()


# ---- counting instances that have no numbers ----


@pytest.mark.parametrize("seed", range(100))
def test_exactly_the_unanswered_starts_are_counted_within_a_period(seed: int) -> None:
    source = random.Random(seed)
    answers = [source.random() < 0.7 for _ in range(source.randint(5, 60))]
    phase = source.randrange(100)
    starts = [100 * n + phase for n in range(len(answers))]
    ends = [at + source.randint(1, 60) for at, is_answered in zip(starts, answers, strict=True) if is_answered]
    assert unanswered(starts, ends, 100, starts[-1] + 100) == answers.count(False)
    assert unanswered(starts, ends, 100, starts[-1] + 50) == answers[:-1].count(False), "the last may still come"


@pytest.mark.parametrize("seed", range(100))
def test_answers_after_the_next_start_are_answers(seed: int) -> None:
    source = random.Random(seed)
    starts = [100 * n for n in range(source.randint(5, 60))]
    ends = sorted(at + source.randint(0, 250) for at in starts)
    assert unanswered(starts, ends, 250, starts[-1] + 250) == 0


@pytest.mark.parametrize("seed", range(100))
def test_missing_messages_are_counted_whatever_the_jitter(seed: int) -> None:
    source = random.Random(seed)
    gone = set(source.sample(range(60), source.randint(0, 59)))
    phase = source.randrange(100)
    times = [1000 + 100 * n + phase + source.randint(-30, 30) for n in range(60) if n not in gone]
    found = not_published(times, 100, 1000, 1000 + 6000)
    assert len(gone) - 4 <= found <= len(gone), "a period at either end is not judged"
    assert not_published(times, 100, 1000, 7000, missed=len(gone)) == 0


def test_a_silent_topic_misses_all() -> None:
    assert not_published([], 100, 0, 1000) == 9


# ---- recorded runs ----


def robot_of_a_user(period_ms: int = 40, agent_ms: int = 20) -> System:
    """A board and a node of the user, which answers the messages of the board."""
    imu = {"topic": "imu/data_raw", "type": "sensor_msgs/msg/Imu", "payload_bytes": 340}
    cmd = {"topic": "cmd_vel", "type": "geometry_msgs/msg/Twist", "payload_bytes": 52}
    steps = (
        ("base", 1, {"name": "imu", "publishes": imu}),
        ("peer", 1, {"name": "cmd", "publishes": cmd}),
        ("base", 1, {"name": "act"}),
    )
    return parse(
        d.described(
            d.board("base", command="x {port}"),
            d.host("peer", command="y"),
            d.entry("links", name="net", kind="udp", agent_ms=agent_ms, return_ms=10, port=44020),
            d.chain("drive", 10, *steps, period_ms=period_ms),
        )
    )


PERIODS = 150


def recorded(imu: list[int], cmd: list[int], seen_until_ms: int = 7000) -> Recorded:
    """A recorded run: `imu` and `cmd` are the times of the messages in ms."""
    told = Recorded(0, end_ns=(PERIODS + 4) * 40 * MS, seen_until_ns=seen_until_ms * MS)
    told.topics = {"imu/data_raw": [one * MS for one in imu], "cmd_vel": [one * MS for one in cmd]}
    return told


def outcome(told: Recorded, system: System | None = None) -> Outcome:
    system = system or robot_of_a_user()
    return outcome_of(system, told, PERIODS)


def only(told: Recorded) -> Verdict:
    (found,) = outcome(told).run.verdicts
    return found


IMU = [40 * n for n in range(160)]
ANSWERS = [at + 10 for at in IMU]


def test_an_observer_that_was_starved_is_no_silent_board() -> None:
    """The observer ran for two of six seconds, and all that it saw was in time."""
    told = recorded([at for at in IMU if at < 2000], [at for at in ANSWERS if at < 2000], seen_until_ms=2000)
    found = only(told)
    assert found.state is State.NOT_JUDGED and "the observer fell behind: it saw 2.0 s of 6.2 s" in found.reasons


def test_messages_that_the_observer_missed_are_not_the_boards() -> None:
    told = recorded(IMU, ANSWERS[:70] + ANSWERS[73:])
    told.missed = {"cmd_vel": [(ANSWERS[73] * MS, 3)]}
    found = only(told)
    assert found.state is State.NOT_JUDGED and "the observer missed 3 messages of cmd_vel" in found.reasons
    told = recorded(IMU[:70] + IMU[72:], ANSWERS)
    told.missed = {"imu/data_raw": [(IMU[72] * MS, 2)]}
    assert only(told).state is State.NOT_JUDGED


def agent(to_dds: int, to_client: int) -> dict[str, object]:
    return {"agent": {"samples_to_dds": to_dds, "samples_to_client": to_client}}


def test_the_agent_tells_a_starved_observer_from_a_silent_board() -> None:
    for to_dds, state in ((0, State.NOT_MET), (100, State.NOT_MET), (160, State.NOT_SEEN)):
        told = recorded([], [])
        told.counters = agent(to_dds, 0)
        assert only(told).state is state, to_dds
    told.undescribed = ["base publishes /battery"]  # the agent's counters include this topic
    assert only(told).state is State.NOT_MET


def test_messages_before_the_observer_was_there_excuse_no_board() -> None:
    """The observer missed ten messages before the run began. During the run, the board left out five."""
    told = recorded(IMU[:70] + IMU[75:], [])
    told.topics["cmd_vel"] = [at + 10 * MS for at in told.topics["imu/data_raw"]]
    told.missed = {"imu/data_raw": [(-1, 10)]}
    told.counters = agent(10 + 155, 155)
    found = only(told)
    assert found.state is State.NOT_MET and found.reasons[0].startswith("5"), found
    told.counters = agent(10 + 160, 155)
    assert only(told).state is State.NOT_JUDGED, "the observer missed five"


def test_the_first_instances_do_not_count_and_are_not_forgotten() -> None:
    says = "of the first 3 instances, which do not count, had no end in time"
    found = only(recorded(IMU, ANSWERS[2:]))
    assert found.state is State.NOT_JUDGED and f"2 {says}" in found.reasons
    system = parse(d.described(d.host("h"), d.chain("work", 1, ("h", 1), period_ms=40)))
    told = Recorded(0)
    told.runs["work", "b0"] = {n: (40 * MS * n, 40 * MS * n + MS, MS) for n in range(100)}
    assert not outcome_of(system, told, 9).run.chains[0].doubt
    told.runs["work", "b0"][1] = (40 * MS, 40 * MS + 99 * MS, MS)
    run = outcome_of(system, told, 9).run
    (found,) = run.verdicts
    assert run.chains[0].samples == 9 and f"1 {says}" in found.reasons and found.state is not State.GUARANTEED
    told.runs["work", "b0"][7] = (40 * MS * 7, 40 * MS * 7 + 99 * MS, MS)
    (found,) = outcome_of(system, told, 9).run.verdicts
    assert found.reasons == ("1 of 9 late",), "a chain that is late is not weakened by it"


@pytest.mark.parametrize(("every_ms", "state"), [(20, State.VOID), (37, State.VOID), (40, State.NOT_JUDGED)])
def test_a_board_that_is_faster_than_described_voids_the_guarantee(every_ms: int, state: State) -> None:
    """Each message is answered in time, but there are more messages than the bounds assume."""
    imu = [every_ms * n for n in range(6400 // every_ms)]
    found = only(recorded(imu, [at + 10 for at in imu]))
    assert found.state is state, found
    said = f"nothing undescribed runs (imu/data_raw came every {every_ms}.000 ms, 40.000 ms described)"
    assert (said in " ".join(found.reasons)) == (state is State.VOID), found


def test_a_second_publisher_leaves_a_doubt() -> None:
    """The node never answers, but a joystick publishes on the node's topic at the same rate."""
    told = recorded(IMU, ANSWERS)
    told.publishers = {"imu/data_raw": 1, "cmd_vel": 2}
    found = only(told)
    assert found.state is State.NOT_JUDGED
    assert "cmd_vel had 2 publishers: not each message is this chain's" in found.reasons


def test_an_observer_counts_what_it_missed_before_its_first_message_and_after_a_restart() -> None:
    node = Mock()
    node.count_publishers.side_effect = [1, 2, 1]
    topic = _Topic(node, {"topic": "imu", "type": "std_msgs/msg/Int32", "readers": 0, "observed": False})
    for number in (4, 5, 8, 1, 2, 4):
        topic._take(b"", {"source_timestamp": 0, "publication_sequence_number": number})
    assert [count for _, count in topic.missed] == [3, 2, 1]
    for _ in range(3):
        topic.look()
    assert (topic.publishers, topic.most_publishers) == (1, 2)


def test_answers_that_the_agent_did_not_pass_on_reached_no_board() -> None:
    told = recorded(IMU, ANSWERS)
    told.counters = agent(len(IMU), len(ANSWERS))
    assert only(told).state is State.NOT_JUDGED
    told.counters = agent(len(IMU), len(ANSWERS) - 4)
    found = only(told)
    assert found.state is State.NOT_MET and found.reasons[0].startswith("4")


def test_a_run_in_which_all_is_answered_is_met_and_its_bound_not_judged() -> None:
    """Only a part of the path can be observed. The verdict on it is never green, and says nothing about all
    instances."""
    run = outcome(recorded(IMU, ANSWERS)).run
    (found,) = run.verdicts
    assert found.state is State.NOT_JUDGED and found.reasons[0].startswith(
        "only imu/data_raw to cmd_vel was seen, matched by time"
    )
    assert run.chains[0].samples == 151


def test_a_clock_that_was_set_leaves_a_doubt() -> None:
    told = recorded(IMU, ANSWERS)
    told.clock_set_ns = 3_600_000 * MS
    found = only(told)
    assert found.state is State.NOT_JUDGED and any("the clock was set by 3600000 ms" in one for one in found.reasons)


@pytest.mark.parametrize(
    ("steps_ns", "set_ns"), [([100_000] * 20, 0), ([0, -5_000 * MS, 0], 5_000 * MS), ([2 * MS], 2 * MS)]
)
def test_a_clock_that_is_set_is_told_from_one_that_is_corrected(steps_ns: list[int], set_ns: int) -> None:
    """Between the readings of the two clocks, the first measurement is interrupted for 50 ms."""
    now_ns, ahead_ns, readings = [0], [10**18], itertools.count()

    def steady() -> int:
        return now_ns[0]

    def wall() -> int:
        now_ns[0] += 50 * MS if next(readings) % 3 == 0 else 0
        return now_ns[0] + ahead_ns[0]

    clock = WallClock(wall, steady)
    for step_ns in steps_ns:
        ahead_ns[0] += step_ns
        now_ns[0] += 200 * MS
        clock.look()
    assert clock.set_ns == set_ns


def test_a_node_that_publishes_by_itself_is_not_taken_to_answer() -> None:
    """The node publishes at a rate of its own and may never read the message, so it cannot be seen that an answer is
    late."""
    own = sorted([*ANSWERS, *(at + 20 for at in ANSWERS)])
    found = only(recorded(IMU, own))
    assert found.state is State.VOID, "it runs more often than described"
    assert any(one.endswith("of imu/data_raw: not each is an answer") for one in found.reasons), found.reasons


def test_a_node_that_publishes_before_it_is_asked_leaves_a_doubt() -> None:
    """The timer of the node has the described period, so the counts agree and each message looks like an answer."""
    says = "cmd_vel came {} before the first instance: not each is an answer"
    imu = list(range(-200, 6400, 40))
    answers = [at + 10 for at in imu]
    told = recorded(imu, [*range(-590, -200, 40), *answers])
    assert says.format("10 times") in only(told).reasons and only(told).state is State.NOT_JUDGED
    told = recorded(imu, [-205, *answers])
    assert says.format("once") in only(told).reasons
    told.missed = {"imu/data_raw": [(imu[0] * MS, 4)]}
    assert says.format("once") not in only(told).reasons, "an answer to one that the observer missed"
    assert not outcome(recorded(imu, answers)).run.chains[0].doubt


@pytest.mark.parametrize(("first_ms", "times"), [(-400, 10), (0, 0)])
def test_a_board_that_tide_plays_asks_nothing_before_the_run(first_ms: int, times: int) -> None:
    system = robot_with(played=True)
    told = recorded(IMU[:153], [at + 10 for at in range(first_ms, 6160, 40)])
    told.runs["drive", "imu"] = {n: (at * MS, at * MS + MS, MS) for n, at in enumerate(IMU[:153])}
    told.runs["drive", "act"] = {n: (at * MS, at * MS + MS, MS) for n, at in enumerate(at + 12 for at in IMU[:153])}
    (chain,) = outcome(told, system).run.chains
    assert chain.lost + chain.skipped + chain.deadline_misses == 0, chain
    assert chain.doubt.startswith(f"cmd_vel came {times} times before") if times else not chain.doubt, chain.doubt
    (found,) = outcome(told, system).run.verdicts
    assert not any("only" in one for one in found.reasons), "all of it was seen, from its release to its end"


def robot_with(
    imu: dict[str, object] | None = None,
    cmd: dict[str, object] | None = None,
    ends: tuple[dict[str, object], ...] = (),
    kind: str = "timer",
    played: bool = False,
) -> System:
    """A board and a node of the user. ``imu`` and ``cmd`` are further keys of their publications. ``ends`` are the keys
    of the last callback, which is on the board and by default publishes nothing. With ``played``, tide runs a stand-in
    for the board."""
    text = {"type": "std_msgs/msg/String", "payload_bytes": 40}
    act: dict[str, object] = {"name": "act"} | ({"publishes": [one | text for one in ends]} if ends else {})
    steps = (
        ("base", 1, {"name": "imu", "kind": kind, "publishes": {"topic": "imu/data_raw", **text, **(imu or {})}}),
        ("peer", 1, {"name": "cmd", "publishes": {"topic": "cmd_vel", **text, **(cmd or {})}}),
        ("base", 1, act),
    )
    net = d.entry("links", name="net", kind="udp", agent_ms=9, return_ms=6, port=44020)
    board = d.board("base") if played else d.board("base", command="x {port}")
    return parse(d.described(board, d.host("peer", command="y"), net, d.chain("drive", 10, *steps, period_ms=40)))


DONE = [{"topic": "done"}, {"topic": "log"}]
# For each kind of run: the description, the messages on topics other than imu and cmd, the expected state, and the
# beginning of its first reason.
KINDS_OF_RUNS: dict[str, tuple[System, dict[str, list[int]], State, str]] = {
    "every fifth is answered, as described": (
        robot_with(cmd={"every": 5}), {"cmd_vel": ANSWERS[2::5]}, State.NOT_JUDGED, "only imu/data_raw to cmd_vel"
    ),
    "every tenth where every fifth is described": (
        robot_with(cmd={"every": 5}), {"cmd_vel": ANSWERS[::10]}, State.NOT_MET, "15 of 28 not started"
    ),
    "on a condition": (
        robot_with(cmd={"distance_ms": 80}), {"cmd_vel": ANSWERS[::7]}, State.NOT_JUDGED, "only imu/data_raw to cmd_vel"
    ),
    "a condition that never held": (
        robot_with(cmd={"distance_ms": 80}), {"cmd_vel": []}, State.NOT_SEEN, "0 messages of cmd_vel came"
    ),
    "no event": (robot_with(kind="event"), {"imu/data_raw": [], "cmd_vel": []}, State.NOT_SEEN, "0 messages of imu"),
    "two events": (
        robot_with(kind="event"), {"imu/data_raw": IMU[:2], "cmd_vel": ANSWERS[:2]}, State.NOT_SEEN, "2 messages of imu"
    ),
    "events without answers": (robot_with(kind="event"), {"cmd_vel": []}, State.NOT_MET, "151 unanswered"),
    "all topics of the end": (robot_with(ends=(*DONE,)), {"done": ANSWERS, "log": ANSWERS}, State.NOT_JUDGED, "only"),
    "one of two topics of the end is silent": (
        robot_with(ends=(*DONE,)), {"done": ANSWERS, "log": []}, State.NOT_MET, "153 unanswered"
    ),
    "a board at half its rate, and all that follows": (
        robot_with(ends=(*DONE,)), {"imu/data_raw": IMU[::2], "cmd_vel": ANSWERS[::2], "done": ANSWERS[::2],
        "log": ANSWERS[::2]}, State.NOT_MET, "77 not started"
    ),
    "the other of two topics is silent": (
        robot_with(ends=(*DONE,)), {"done": [], "log": ANSWERS}, State.NOT_MET, "151 of 151 unanswered"
    ),
    "one of two topics falls silent": (
        robot_with(ends=(*DONE,)), {"done": ANSWERS, "log": ANSWERS[:80]}, State.NOT_MET, "73 unanswered"
    ),
    "an answer twice, and every second not at all": (
        robot_with(), {"cmd_vel": sorted([*ANSWERS[::2], *(at + 3 for at in ANSWERS[::2])])}, State.NOT_MET,
        "76 of 151 unanswered",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS_OF_RUNS)
def test_each_kind_of_a_chain_is_judged_by_what_it_describes(name: str) -> None:
    system, topics, state, says = KINDS_OF_RUNS[name]
    told = recorded(IMU, ANSWERS)
    told.topics |= {topic: [one * MS for one in times] for topic, times in topics.items()}
    (found,) = outcome(told, system).run.verdicts
    assert found.state is state and found.reasons[0].startswith(says), found
    if name.startswith("one of two"):
        assert found.reasons[1].endswith("messages of log are missing")


# ---- equal words everywhere ----


def seen_by_agent(imu: list[int], to_dds: int) -> Recorded:
    told = recorded(imu, [])
    told.counters = agent(to_dds, 0)
    return told


FAST = list(range(0, 6400, 10))
# For each run: its observations and the period of the chain; then the expected verdict, the beginning of its first
# reason, and the exit status.
RUNS: dict[str, tuple[Recorded, int, State, str, int]] = {
    "every tenth is answered": (recorded(IMU, ANSWERS[::10]), 40, State.NOT_MET, "136 of 151 unanswered", 1),
    "every tenth at 100 Hz": (
        recorded(FAST, [at + 8 for at in FAST[::10]]), 10, State.NOT_MET, "552 of 613 unanswered", 1
    ),
    "a starved node": (recorded(IMU, ANSWERS[2:155:3]), 40, State.NOT_MET, "101 of 151 unanswered", 1),
    "a node that dies": (recorded(IMU, ANSWERS[:75]), 40, State.NOT_MET, "79 of 151 unanswered", 1),
    "a node that answers once": (recorded(IMU, [10]), 40, State.NOT_MET, "151 of 151 unanswered", 1),
    "one answer is missing": (recorded(IMU, ANSWERS[:70] + ANSWERS[71:]), 40, State.NOT_MET, "1 of 151 unanswered", 1),
    "a silent node": (recorded(IMU, []), 40, State.NOT_MET, "151 of 151 unanswered", 1),
    "a silent board": (recorded([], []), 40, State.NOT_MET, "153 of 153 not started", 1),
    "a board that dies": (recorded(IMU[:60], ANSWERS[:60]), 40, State.NOT_MET, "94 of 151 not started", 1),
    "a board at half its rate": (recorded(IMU[::2], ANSWERS[::2]), 40, State.NOT_MET, "77 of 151 not started", 1),
    "one late answer": (
        recorded(IMU, [*ANSWERS[:50], ANSWERS[50] + 35, *ANSWERS[51:]]), 40, State.NOT_MET, "1 of 151 unanswered", 1
    ),
    "a starved observer": (
        recorded(IMU[:50], ANSWERS[:50], seen_until_ms=2000), 40, State.NOT_JUDGED, "only imu/data_raw to cmd_vel", 0
    ),
    "an observer that saw nothing": (seen_by_agent([], 160), 40, State.NOT_SEEN, "160 messages that the agent", 5),
    "all is answered": (recorded(IMU, ANSWERS), 40, State.NOT_JUDGED, "only imu/data_raw to cmd_vel was seen", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_verdict_page_json_table_and_exit_status_agree(name: str, tmp_path: Path) -> None:
    told, period_ms, state, says, status = RUNS[name]
    found = results_of(outcome(told, robot_of_a_user(period_ms)).run)
    write(found, tmp_path / "results.json")
    stored = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["runs"][0]["chains"][0]["verdict"]
    assert stored["state"] == state.value and stored["reasons"][0].startswith(says), stored
    assert Results.from_json((tmp_path / "results.json").read_text(encoding="utf-8")) == found
    assert found.exit_status() == status
    assert found.exit_status(require_guarantee=True) == (status or 5), "a CI that asks for a guarantee fails"
    ended, shown = tide("report", tmp_path, COLUMNS="200")
    assert ended == status and shown.startswith(f"{state.value}: drive"), shown
    numbers = "0 of 7 times were measured; 7 are estimates"
    met = state not in (State.NOT_MET, State.NOT_SEEN)
    assert (numbers in shown) == met, "an answer about a guarantee counts its numbers"
    write_page(found, [], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (numbers in page) == met
    assert f'<li class="{KINDS[state.colour]}">' in page and html.escape(stored["reasons"][0]) in page
    for claim in ("in every instance", "met, guaranteed", '<li class="good">', "verdict-cell good"):
        assert claim not in page, claim


def test_a_premise_that_was_seen_broken_voids_every_guarantee(tmp_path: Path) -> None:
    """A premise of all chains is violated, so no chain is guaranteed."""
    system = load(ROOT / "examples/systems/arm_and_base.toml")
    told = everything_held(system, times=3)
    found = outcome_of(system, told, 2).run
    guaranteed = [
        one
        for chain, one in zip(found.chains, found.verdicts, strict=True)
        if (chain.bound_ns or 0) <= chain.deadline_ns
    ]
    assert guaranteed and {one.state for one in guaranteed} <= {State.VOID, State.NOT_MET}
    assert any(one.state is State.VOID and "execution times (" in one.reasons[0] for one in guaranteed)


FILES = sorted((ROOT / "examples/systems").glob("*.toml"))


def longer(system: System, chain: Chain, callback: Callback) -> System:
    more = callback.model_copy(update={"execution_ms": callback.execution_ms * Decimal("1.07") + Decimal("0.01")})
    callbacks = tuple(more if one is callback else one for one in chain.callbacks)
    changed = chain.model_copy(update={"callbacks": callbacks})
    return system.model_copy(update={"chains": tuple(changed if one is chain else one for one in system.chains)})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_premise_is_of_every_chain_whose_bound_it_moves(file: Path) -> None:
    """If a longer execution time changes a bound, the executor of that callback must be a premise of the bound."""
    system = load(file)
    bounds = bounds_of(system)
    reaches = premises.reaches_of(system, bounds)
    moved = 0
    for chain in system.chains:
        for callback in chain.callbacks:
            try:
                after = bounds_of(longer(system, chain, callback))
            except NoBoundError:
                continue
            for one in bounds.chains:
                again = after.chain(one.name)
                if again is not None and again.bound_ns != one.bound_ns:
                    moved += 1
                    assert callback.executor in reaches[one.name].executors, (chain.name, callback.name, one.name)
    assert moved


def test_what_rests_on_estimates_is_not_green(tmp_path: Path) -> None:
    run = outcome(recorded(IMU, ANSWERS)).run
    for estimated, kind in (("0 of 7 times were measured; 7 are estimates", "fair"), ("", "good")):
        chain = run.chains[0].model_copy(update={"part": "", "doubt": ""})
        held = run.model_copy(update={"chains": [chain], "answers": [], "evidence": {"estimated": estimated}})
        assert held.verdicts[0].state is State.GUARANTEED
        results = results_of(held)
        (summary,) = summaries(results)
        assert summary.kind == kind and weaknesses(held) == [estimated] * bool(estimated)
        cell = str(next(iter(verdict_table(results).columns[-1].cells)))
        assert cell.startswith("[green]" if kind == "good" else "[yellow]"), cell
        write_page(results, [], tmp_path / "page.html")
        assert f'class="verdict-cell {kind}"' in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_breaks_on_one_board_voids_no_chain_of_another(tmp_path: Path) -> None:
    """A callback on the board of the arm took longer than described. The stop of the base does not depend on it."""
    system = load(ROOT / "examples/systems/arm_and_base.toml")
    told = everything_held(system)
    for (chain, _), runs in told.runs.items():
        if chain == "servo":
            runs[0] = (*runs[0][:2], 560_000)
    run = outcome_of(system, told, 2).run
    (wrong,) = [one for one in run.answers if one.id == "execution" and one.verdict == "broken"]
    (right,) = [one for one in run.answers if one.id == "execution" and one.verdict == "held"]
    assert wrong.chains is not None and "servo" in wrong.chains and "stop" not in wrong.chains
    assert right.chains is None or "stop" in right.chains
    states = {chain.name: one.state for chain, one in zip(run.chains, run.verdicts, strict=True)}
    assert states["servo"] is State.VOID and states["stop"] is State.NOT_JUDGED
    shown = [line for line in weaknesses(run) if line.startswith("broken")]
    assert shown and all(line.endswith("]") and "stop" not in line.split("[")[-1] for line in shown)


def test_a_callback_that_was_not_measured_is_not_called_in_time() -> None:
    system = load(ROOT / "examples/systems/arm_and_base.toml")
    told = everything_held(system)
    told.runs = {key: runs for key, runs in told.runs.items() if key[0] != "servo"}
    run = outcome_of(system, told, 2).run
    answers = {one.verdict: one for one in run.answers if one.id == "execution"}
    assert set(answers) == {"held", "not observable here"}
    assert "servo/" in answers["not observable here"].counter


def everything_held(system: System, times: int = 0) -> Recorded:
    """A run in which every premise held. Each callback took ``times`` its described execution time."""
    callbacks = [(chain, callback) for chain in system.chains for callback in chain.callbacks]
    told = Recorded(0)
    for chain, callback in callbacks:
        spent_ns = times * callback.execution_ns + 1
        starts = {n: n * chain.period_ns + 1 for n in range(200)}
        told.runs[chain.name, callback.name] = {n: (at_ns, at_ns + 1, spent_ns) for n, at_ns in starts.items()}
    return told


def test_what_a_person_reads_fits_a_screen_and_says_nothing_twice(tmp_path: Path) -> None:
    for name, told in (("bad", recorded(IMU, ANSWERS[::10])), ("fine", recorded(IMU, ANSWERS))):
        write(results_of(outcome(told).run), tmp_path / f"{name}.json")
        shown = tide("report", tmp_path / f"{name}.json", COLUMNS="80", NO_COLOR="1")[1]
        lines = [line.rstrip() for line in shown.splitlines() if line.strip()]
        assert lines[0].startswith("not met: drive (" if name == "bad" else "met, bound not judged: drive")
        assert len(lines) < 24 and max(map(len, lines)) <= 80 and "\x1b" not in shown
        assert len(set(lines)) == len(lines), shown
