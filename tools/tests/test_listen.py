# SPDX-License-Identifier: Apache-2.0
"""tide trace describe of a running system: descriptions derived from messages, endpoints and statuses. The tests write
these down; tests/ros2/test_describe_real.py listens to real ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from commands import tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.premises import origins_of
from tide_tools.errors import UsageError
from tide_tools.system.load import parse
from tide_tools.system.model import Publication, System
from tide_tools.system.places import SerialLink, UdpLink
from tide_tools.trace.listen import (
    RECEIVED,
    REPLIED,
    SENT,
    Arrival,
    Endpoint,
    Introspected,
    Seen,
    Service,
    Status,
    Topic,
    answers_of,
    described,
    rate_of,
)

MS = 1_000_000
AGENT, BASE, BRAIN, LOG = b"agent", b"agent", b"brain", b"log"
INT32 = "std_msgs/msg/Int32"


def arrivals(period_ms: float, offset_ms: float = 0, count: int = 50, jitter_ms: float = 0) -> list[Arrival]:
    """Messages of 4 B, of which each second one is late by the jitter."""
    return [
        Arrival(int((n * period_ms + offset_ms + n % 2 * jitter_ms) * MS), n + 1, 4, MS // 10) for n in range(count)
    ]


def topic(
    publisher: tuple[str, bytes],
    subscribers: Sequence[tuple[str, bytes]],
    messages: list[Arrival],
    reliable: bool = True,
) -> Topic:
    return Topic(INT32, [Endpoint(*publisher, reliable)], [Endpoint(*one, reliable) for one in subscribers], messages)


def statuses(link: str = "serial /dev/ttyUSB0 921600", bits: str = "921600") -> Iterator[Status]:
    """The statuses of an agent with one client."""
    yield Status("tide_agent", "1 clients", "vm process 1", {"samples_to_dds": "1"})
    yield Status(f"tide_agent: link {link}", "serving", link, {"bits per second": bits})
    yield Status("tide_agent: client 000000C1", "connected", link, {"connected": "yes"})


def objects(*every: tuple[str, dict[str, str]], node: str = "base") -> Iterator[Status]:
    """The statuses of a board, with its table."""
    yield Status(f"{node}: link", "as usual", "000000C1", {"sessions": "1", "mtu bytes": "256"})
    yield Status(f"{node}: executor 1", "as usual", "000000C1", {"lanes": "1", "policy": "0", "send mode": "0"})
    for number, (kind, values) in enumerate(every, 1):
        own = {**values, "objects": str(len(every))}
        yield Status(f"{node}: object {number}", kind, "000000C1", own)


TABLE = (
    ("chain", {"name": "brake", "priority": str(3 << 8), "period ns": str(100 * MS), "deadline ns": str(60 * MS)}),
    ("publisher", {"name": "/request", "priority": str((3 << 8) + 1)}),
    ("publisher", {"name": "/done", "priority": str((3 << 8) + 2)}),
    ("timer", {"name": "", "priority": str(3 << 8), "period ns": str(100 * MS), "runs": "50", "longest ns": "400000"}),
    ("timer", {"name": "", "priority": "0", "period ns": str(500 * MS), "runs": "9", "longest ns": "100000"}),
    ("subscription", {"name": "/answer", "priority": str((3 << 8) + 2), "runs": "50", "longest ns": "300000"}),
)


def robot(table: Sequence[tuple[str, dict[str, str]]] = TABLE) -> Seen:
    """A board asks, a node answers, the board acts and reports that, and another node logs all of it."""
    base, brain, log = ("base", BASE), ("brain", BRAIN), ("log", LOG)
    topics = {
        "/diagnostics": topic(("tide_agent", AGENT), [], []),
        "/request": topic(base, [brain, log], arrivals(100)),
        "/answer": topic(brain, [base], arrivals(100, 7, jitter_ms=1)),
        "/done": topic(base, [log], arrivals(100, 11)),
    }
    seen = Seen(5.0, topics)
    for number, one in enumerate((*statuses(), *(objects(*table) if table else ()))):
        seen.take(one, Arrival(number * 250 * MS, 0, 300 + number, 0))
    return seen


def read(seen: Seen) -> tuple[System, list[str], str]:
    """The description, its notes, and its text."""
    text = described(seen, "seen", 0)
    return parse(text), [line for line in text.splitlines() if line.startswith("# ")][2:], text


def ways(system: System) -> dict[str, list[str]]:
    return {chain.name: [f"{one.executor}/{one.kind}" for one in chain.callbacks] for chain in system.chains}


def test_a_boards_table_and_the_graph_give_the_whole_chain() -> None:
    system, notes, text = read(robot())
    found = ways(system)
    assert found["brake"] == ["base/timer", "brain/subscription", "base/subscription", "log/subscription"]
    assert found["log_request"] == ["log/subscription"]
    brake = system.chain("brake")
    assert (brake.period_ns, brake.deadline_ns, brake.priority) == (100 * MS, 60 * MS, len(system.chains))
    asks, answers, acts, _ = brake.callbacks
    assert (asks.execution_ns, answers.execution_ns, acts.execution_ns) == (400_000, 8 * MS, 300_000)
    assert asks.source.startswith("measured 50 times on ") and answers.source.startswith("measured 50 times on ")
    assert [one.topic for one in (*asks.publishes, *answers.publishes, *acts.publishes)] == [
        "request",
        "answer",
        "done",
    ]
    (line,) = system.links
    assert isinstance(line, SerialLink) and (line.baud, line.mtu_bytes, line.source) == (921_600, 256, "guessed")
    loads = {chain.name: chain.period_ns // MS for chain in system.chains[2:]}
    assert loads == {"base_timer_2": 500, "base_reports": 250}
    reports = system.chain("base_reports")
    assert (reports.priority, reports.callbacks[0].sent_bytes) == (1, 310), "less urgent than a longer period"
    assert (brake.source, system.chain("log_request").source) == (None, "guessed"), "the deadline of a branch"
    assert notes == [] and "deadline_ms = 60 # stated by the firmware" in text


def test_lanes_are_stated_or_those_for_which_there_are_bounds() -> None:
    for lanes, (expected, text) in {
        3: (3, "lanes = 3 # stated by the firmware"),
        2: (1, "lanes = 1 # guessed: 2 stated by the firmware; bounds are known for 1 or 3, one for each priority"),
    }.items():
        seen = robot()
        seen.statuses["base: executor 1"] = Status("base: executor 1", "as usual", "", {"lanes": str(lanes)})
        system, _, written = read(seen)
        assert system.executor("base").lanes == expected and text in written


def test_check_says_first_what_was_guessed(tmp_path: Path) -> None:
    file = tmp_path / "seen.toml"
    file.write_text(described(robot(), "seen", 0), encoding="utf-8")
    status, output = tide("check", file)
    first, second = output.splitlines()[:2]
    assert (status, first) == (
        1,
        "no guarantee yet: with the guesses of tide trace describe every deadline would be met",
    )
    assert "are guesses of" in second and "guaranteed" not in output
    system = parse(file.read_text(encoding="utf-8"))
    assert bounds_of(system).met and origins_of(system).guesses > 0
    stated = file.read_text(encoding="utf-8").replace('source = "guessed"', "")
    file.write_text(stated, encoding="utf-8")
    status, output = tide("check", file)
    assert (status, output.partition(",")[0]) == (0, "every deadline is guaranteed")


def test_a_firmware_without_a_table_is_described_by_its_messages() -> None:
    system, notes, text = read(robot(()))
    assert ways(system)["base_request_timer"] == [
        "base/timer", "brain/subscription", "base/subscription", "log/subscription",
    ]  # fmt: skip
    assert notes[0].startswith("# base does not report its callbacks")
    assert "# guessed: base publishes /done because it received /answer, as 50 times were seen" in text
    chain = system.chain("base_request_timer")
    assert [one.source.split()[0] for one in chain.callbacks] == ["guessed", "measured", "guessed", "guessed"]
    assert chain.source == "guessed" and chain.deadline_ns == chain.period_ns == 100 * MS


def test_priorities_that_a_firmware_does_not_have_are_named() -> None:
    flat = [(kind, {**values, "priority": "0"}) for kind, values in TABLE if kind != "chain"]
    system, notes, text = read(robot(flat))
    assert notes[0] == "# base declares no chain: the priorities of its chains here are not those of its firmware."
    assert ways(system)["base_timer"][:2] == ["base/timer", "brain/subscription"]
    assert "# guessed: the timer of 100 ms publishes /request, by its rate" in text


def test_the_policy_is_stated_or_guessed() -> None:
    for told, (expected, text) in {
        ("0", "0"): ("tide", 'policy = "tide" # stated by the firmware'),
        ("1", "1"): ("batch_stock", 'policy = "batch_stock" # stated by the firmware'),
        ("2", "0"): ("tide", 'policy = "tide" # guessed: the firmware has a policy without bounds here'),
    }.items():
        seen = robot()
        values = {"lanes": "1", "policy": told[0], "send mode": told[1]}
        seen.statuses["base: executor 1"] = Status("base: executor 1", "as usual", "", values)
        system, _, written = read(seen)
        assert system.executor("base").policy == expected and text in written
    assert 'policy = "tide" # guessed: the firmware does not say its policy' in read(robot(()))[2]


def test_a_table_that_is_not_whole_is_said_so() -> None:
    seen = robot()
    del seen.statuses["base: object 6"]
    _, notes, _ = read(seen)
    assert "# base reported 5 of 6 objects: listen longer." in notes


def test_of_two_messages_that_could_answer_each_other_the_quicker_does() -> None:
    node, other = ("node", b"1"), ("other", b"2")
    topics = {"/a": topic(node, [other], arrivals(20)), "/b": topic(other, [node], arrivals(20, 3))}
    assert list(answers_of(topics, ["node", "other"])) == [("other", "/b")]
    topics["/a"].arrivals, topics["/b"].arrivals = topics["/a"].arrivals[:8], topics["/b"].arrivals[4:12]
    assert list(answers_of(topics, ["node", "other"])) == [("other", "/b")], "received from different times on"


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        (arrivals(50, 3, count=20), "another rate"),
        (arrivals(20, 15), "as likely a timer"),
        (arrivals(20, 3, count=3), "too few"),
        ([], "none"),
    ],
)
def test_what_is_no_answer(messages: list[Arrival], why: str) -> None:
    node, other = ("node", b"1"), ("other", b"2")
    topics = {"/a": topic(node, [other], arrivals(20)), "/b": topic(other, [], messages)}
    assert answers_of(topics, ["node", "other"]) == {}, why


def test_rates() -> None:
    rate = rate_of(arrivals(20.05, jitter_ms=2))
    assert rate is not None and (rate.period_ns, rate.count) == (20 * MS, 49)
    assert (rate.least_ns, rate.most_ns) == (18_050_000, 22_050_000)
    third = rate_of(arrivals(33.3333))
    assert third is not None and third.period_ns == 33_333_000
    lost = arrivals(10)
    del lost[10:20]
    rate = rate_of(lost)
    assert rate is not None, "the numbers of the publisher tell of the lost ones"
    assert (rate.period_ns, rate.most_ns) == (10 * MS, 10 * MS)
    assert rate_of(arrivals(10, count=3)) is None
    irregular = rate_of(arrivals(10, jitter_ms=6))
    assert irregular is not None and irregular.period_ns == 0


@pytest.mark.parametrize(
    ("mean_ms", "period_ms"),
    [(1001, 1000), (998, 1000), (66.67, 66.666), (142.86, 142.857), (17.01, 17), (125.2, 125), (3.013, 3.013)],
)
def test_a_mean_interval_stands_for_a_round_period_or_rate(mean_ms: float, period_ms: float) -> None:
    rate = rate_of(arrivals(mean_ms))
    assert rate is not None and rate.period_ns == round(period_ms * MS)


def test_irregular_messages_come_after_events() -> None:
    topics = {"/hit": topic(("node", b"1"), [("other", b"2")], arrivals(10, jitter_ms=6))}
    system, _, text = read(Seen(1.0, topics))
    (chain,) = system.chains
    assert (chain.callbacks[0].kind, chain.period_ns) == ("event", 4 * MS)
    assert "/hit is published after events" in text


def test_two_publishers_of_a_topic_are_guessed() -> None:
    one, other = ("one", b"1"), ("other", b"2")
    both = Topic(INT32, [Endpoint(*one, True), Endpoint(*other, True)], [Endpoint("end", b"3", True)], arrivals(10))
    system, _, text = read(Seen(1.0, {"/tf": both}))
    assert [chain.period_ns for chain in system.chains] == [20 * MS, 20 * MS]
    assert "# guessed: /tf has 2 publishers, whose messages look alike" in text


def test_a_publisher_beside_one_that_answers_everything_is_silent() -> None:
    """Both ends of the ping-pong of the micro-ROS demos can publish both topics."""
    board, host = ("board", b"1"), ("host", b"2")
    ping, pong = topic(board, [board, host], arrivals(20)), topic(board, [board], arrivals(20, 3))
    pong.publishers.append(Endpoint(*host, True))
    system, notes, _ = read(Seen(1.0, {"/ping": ping, "/pong": pong}))
    assert ways(system)["host_ping"] == ["host/subscription", "board/subscription"]
    assert notes[0] == "# board publishes /pong, too, but host seems to publish all that was received."


def test_what_is_in_no_chain_is_named() -> None:
    bump = ("event", {"name": "", "priority": str(2 << 8), "runs": "7", "longest ns": "1000"})
    seen = robot((*TABLE, bump))
    seen.topics["/silent"] = topic(("brain", BRAIN), [], [])
    seen.services["/arm/close"] = Service("std_srvs/srv/Trigger", [Endpoint("brain", BRAIN, True)])
    _, notes, _ = read(seen)
    assert "# /silent had no message in 5 s: it is in no chain here." in notes
    assert "# an event of base ran 7 times, which no message shows: it is in no chain here." in notes
    assert any(one.startswith("# /arm/close of brain is called by no node: it is in no chain here") for one in notes)


# ---- services ----

HOLD, TRIGGER = "/hold", "std_srvs/srv/Trigger"


def end(node: str, number: int = 0) -> Endpoint:
    return Endpoint(node, node.encode(), True, f"{node}{number}".encode())


def served(clients: Sequence[str], replies: list[Arrival], kind: str = TRIGGER, server: str = "hand") -> Service:
    """In DDS a client publishes requests and reads replies."""
    ends = [end(one, 1) for one in clients], [end(one, 2) for one in clients]
    return Service(kind, [end(server)], *ends, [Arrival(one.at_ns, 0, 12, 0) for one in replies])


def introspected(
    client: str, times: Sequence[Arrival], took_ms: float, first: int = RECEIVED
) -> Iterator[Introspected]:
    for one in times:
        for event, later_ms in ((first, 0), (REPLIED, took_ms)):
            yield Introspected(event, end(client, 2).id, one.number, one.at_ns + int(later_ms * MS))


def calling(service: Service, **topics: Topic) -> Seen:
    return Seen(5.0, {f"/{name}": one for name, one in topics.items()}, {HOLD: service})


def kinds(system: System) -> dict[str, list[str]]:
    return {chain.name: [f"{one.executor} {one.kind}" for one in chain.callbacks] for chain in system.chains}


def test_the_replies_of_a_service_give_the_chain_of_its_only_client() -> None:
    turned = topic(("arm", b"arm"), [("log", LOG)], arrivals(100, 5), reliable=False)
    system, notes, text = read(calling(served(["arm"], arrivals(100, 3)), turned=turned))
    assert kinds(system) == {"arm_hold_timer": ["arm timer", "hand service", "arm client", "log subscription"]}
    (chain,) = system.chains
    asks, serves, takes, _ = chain.callbacks
    assert chain.reliability == "reliable", "as services are"
    assert asks.requests and serves.replies and (asks.requests.type, asks.requests.service) == (TRIGGER, "hold")
    assert (asks.sent_bytes, serves.sent_bytes) == (4, 12) and "payload_bytes = 12 } # the longest of 50" in text
    assert (chain.source, serves.source, takes.source.split()[0]) == ("guessed", "guessed", "measured")
    assert "period_ms = 100 # guessed: the replies had this rate, measured: 49 intervals" in text
    assert notes == ["# guessed: arm publishes /turned because it received the reply of /hold, as 50 times were seen"]


def test_introspection_shows_when_a_request_came_and_how_long_it_took() -> None:
    one = served(["arm"], arrivals(100, 3))
    one.events = [*introspected("arm", arrivals(100), 2.5)]
    system, _, text = read(calling(one))
    serves = system.chains[0].callbacks[1]
    assert (serves.execution_ns, serves.least_ns) == (2_500_000, 2_500_000) and serves.source.startswith("measured 50")
    assert "period_ms = 100 # measured: 49 intervals" in text


def test_a_node_that_asks_because_of_a_message_is_in_the_chain_of_the_message() -> None:
    scan = topic(("eye", b"eye"), [("arm", b"arm")], arrivals(50))
    one = served(["arm"], arrivals(50, 6))
    system, _, text = read(calling(one, scan=scan))
    assert kinds(system) == {"eye_scan_timer": ["eye timer", "arm subscription", "hand service", "arm client"]}
    assert "# guessed: arm sends a request to /hold because it received /scan, as 50 times were seen" in text
    assert system.chains[0].callbacks[1].source == "guessed", "the time until the reply is not that of the callback"
    one.events = [*introspected("arm", arrivals(50, 2), 1, SENT)]
    system, _, _ = read(calling(one, scan=scan))
    assert system.chains[0].callbacks[1].execution_ns == 2 * MS


def test_replies_to_several_clients_are_told_apart_by_introspection_alone() -> None:
    one = served(["arm", "leg"], sorted([*arrivals(100, 3), *arrivals(40, 4)], key=lambda one: one.at_ns))
    system_notes = (
        "# /hold of hand is called by arm, leg, and replies do not say whose they are: it is in no chain here."
    )
    tick = topic(("arm", b"arm"), [("log", LOG)], arrivals(30))
    _, notes, _ = read(calling(one, tick=tick))
    assert notes == [system_notes]
    one.events = [*introspected("arm", arrivals(100), 1), *introspected("leg", arrivals(40), 1)]
    turned = topic(("arm", b"arm"), [("log", LOG)], arrivals(100, 5))
    system, _, _ = read(calling(one, turned=turned))
    assert kinds(system) == {
        "leg_hold_timer": ["leg timer", "hand service", "leg client"],
        "arm_hold_timer": ["arm timer", "hand service", "arm client", "log subscription"],
    }
    assert [chain.period_ns for chain in system.chains] == [40 * MS, 100 * MS]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (served([], arrivals(10)), "is called by no node"),
        (served(["arm"], arrivals(10, count=3)), "had 3 answers in 5 s"),
        (served(["arm"], []), "had no answer in 5 s"),
        (Service(TRIGGER, [end("hand"), end("foot")], [end("arm")], problem=""), "is served by 2 nodes"),
        (Service("my/srv/Own", [end("hand")], [end("arm")], problem="has type my/srv/Own, which is not installed here"),
         "has type my/srv/Own, which is not installed here"),
    ],
)  # fmt: skip
def test_a_service_in_no_chain_is_named_with_the_reason(one: Service, why: str) -> None:
    _, notes, _ = read(calling(one, tick=topic(("arm", b"arm"), [("log", LOG)], arrivals(30))))
    assert notes == [f"# /hold of hand {why}: it is in no chain here."]


ASKING = (
    ("chain", {"name": "hold", "priority": str(3 << 8), "period ns": str(100 * MS), "deadline ns": str(90 * MS)}),
    ("publisher", {"name": "/held", "priority": str((3 << 8) + 3)}),
    ("timer", {"name": "", "priority": str(3 << 8), "period ns": str(100 * MS), "runs": "50", "longest ns": "400000"}),
    ("client", {"name": "/holdRequest", "priority": str((3 << 8) + 2), "runs": "49", "longest ns": "300000"}),
)


def asking_board() -> Seen:
    """A board asks a node and publishes when it has the reply."""
    seen = robot(ASKING)
    seen.topics = {
        "/diagnostics": topic(("tide_agent", AGENT), [], []),
        "/held": topic(("base", BASE), [("log", LOG), ("brain", BRAIN)], arrivals(100, 9)),
    }
    one = served(["base"], arrivals(100, 5), server="brain")
    one.clients, one.readers = [Endpoint("base", BASE, True, b"1")], [Endpoint("base", BASE, True, b"2")]
    one.servers = [Endpoint("brain", BRAIN, True)]
    seen.services = {HOLD: one}
    values = {"connected": "yes", "asks /hold": "50 replies, last 900 us, greatest 2500 us"}
    seen.statuses["tide_agent: client 000000C1"] = Status(
        "tide_agent: client 000000C1", "connected", "serial /dev/ttyUSB0 921600", values
    )
    return seen


def test_a_boards_table_says_which_callback_asks_and_its_agent_how_long_the_server_takes() -> None:
    system, notes, text = read(asking_board())
    hold = system.chain("hold")
    assert kinds(system)["hold"] == ["base timer", "brain service", "base client", "brain subscription"]
    asks, serves, takes, _ = hold.callbacks
    assert (asks.execution_ns, serves.execution_ns, takes.execution_ns) == (400_000, 2_500_000, 300_000)
    assert "# elapsed at the agent from a request to /hold to its reply, DDS included" in text
    assert hold.source is None and hold.deadline_ns == 90 * MS
    assert notes == [
        "# log_held takes /held of base_hold, which is in no chain here: with a board there is no bound for a service "
        "before a branch."
    ]
    assert all(one.bound_ns is not None for one in bounds_of(system).chains)


def test_the_callback_ahead_of_the_client_in_the_boards_chain_asks() -> None:
    seen = asking_board()
    ahead = ("subscription", {"name": "/ready", "priority": str((3 << 8) + 1), "runs": "50", "longest ns": "200000"})
    start = ("publisher", {"name": "/start", "priority": str((3 << 8) + 1)})
    for one in objects(*ASKING, start, ahead):
        seen.take(one, Arrival(0, 0, 300, 0))
    seen.topics["/start"] = topic(("base", BASE), [("brain", BRAIN)], arrivals(100, 1))
    seen.topics["/ready"] = topic(("brain", BRAIN), [("base", BASE)], arrivals(100, 2))
    system, _, _ = read(seen)
    way = ["base timer", "brain subscription", "base subscription", "brain service", "base client"]
    assert kinds(system)["hold"][:5] == way


def test_a_callback_with_a_topic_and_a_request_has_a_copy() -> None:
    seen = asking_board()
    more = ("publisher", {"name": "/tick", "priority": str((3 << 8) + 1)})
    for one in objects(ASKING[0], more, *ASKING[1:]):
        seen.take(one, Arrival(0, 0, 300, 0))
    seen.topics["/tick"] = topic(("base", BASE), [("log", LOG)], arrivals(100))
    system, _, text = read(seen)
    assert kinds(system)["hold"][:2] == ["base timer", "brain service"]
    assert kinds(system)["hold_2"] == ["base timer", "log subscription"]
    assert "# guessed: the callback of base that sends several messages has a copy for /tick" in text


GOAL, RESULT, STATUS, ACTION = ("/go/_action/send_goal", "/go/_action/get_result", "/go/_action/status",
                                "example_interfaces/action/Fibonacci")  # fmt: skip


@pytest.mark.parametrize(
    ("takes_ms", "steps", "why"),
    [
        (30, False, ""),
        (30, True, "takes several callbacks, as its feedback shows"),
        (170, False, "takes longer than half the time between goals"),
    ],
)
def test_an_action_is_two_services_and_its_status(takes_ms: int, steps: bool, why: str) -> None:
    goals, results = arrivals(200, 2), arrivals(200, 2 + takes_ms)
    goal, result = (
        served(["arm"], times, f"{ACTION}_{part}") for times, part in ((goals, "SendGoal"), (results, "GetResult"))
    )
    every = sorted([*arrivals(200, 2), *arrivals(200, 4), *arrivals(200, takes_ms)], key=lambda one: one.at_ns)
    status = topic(("hand", b"hand"), [("arm", b"arm")], [Arrival(one.at_ns, 0, 32, 0) for one in every])
    topics = {STATUS: status}
    if steps:
        each = sorted([*arrivals(200, 10), *arrivals(200, 20)], key=lambda one: one.at_ns)
        topics["/go/_action/feedback"] = topic(("hand", b"hand"), [("arm", b"arm")], each)
    system, notes, text = read(Seen(5.0, topics, {GOAL: goal, RESULT: result}))
    asked = ["arm timer", "hand service", "arm client"]
    whole = asked if why else [*asked, "hand service", "arm client"]
    assert kinds(system)["arm_go_action_send_goal_timer"] == whole
    assert system.chain("hand_go_action_status_event").period_ns == 50 * MS
    if why:
        assert "# nothing starts arm_go_action_get_result_reply in what was seen: it is in no chain here." in notes
        assert notes[0] == (
            f"# a goal of /go {why}: its result is in no chain here; describe the timer that ends the goal."
        )
    else:
        assert system.chain("arm_go_action_send_goal_timer").callbacks[3].execution_ns == 30 * MS and notes == []
        assert "# elapsed from the goal's reply to the result's" in text


def test_a_stock_agent_needs_the_names_of_its_boards() -> None:
    seen = robot(())
    seen.statuses.clear()
    assert not parse(described(seen, "seen", 0)).boards()
    seen.boards = frozenset({"base"})
    system, notes, text = read(seen)
    assert [one.name for one in system.boards()] == ["base"] and isinstance(system.links[0], UdpLink)
    assert 'kind = "udp" # guessed' in text
    assert any("the link of base is not known" in one for one in notes)


def test_nodes_of_one_process_share_an_executor() -> None:
    seen = robot()
    for one in seen.topics.values():
        one.publishers = [
            Endpoint(end.node, BRAIN if end.process == LOG else end.process, True) for end in one.publishers
        ]
        one.subscribers = [
            Endpoint(end.node, BRAIN if end.process == LOG else end.process, True) for end in one.subscribers
        ]
    system, notes, _ = read(seen)
    assert {one.name for one in system.executors} == {"base", "brain"}
    assert "# log is in the process of brain: guessed to share its executor." in notes


def test_sizes_and_reliability_are_those_on_the_link() -> None:
    seen = robot()
    request = seen.topics["/request"]
    request.publishers = [Endpoint("base", BASE, False)]
    request.arrivals.append(Arrival(5000 * MS, 51, 32, 0))
    system, _, _ = read(seen)
    (sends,) = system.chain("brake").callbacks[0].publishes
    assert isinstance(sends, Publication)
    assert (sends.payload_bytes, sends.reliability, system.chain("brake").reliability) == (
        32,
        "best_effort",
        "reliable",
    )


def test_without_messages_there_is_nothing_to_describe() -> None:
    with pytest.raises(UsageError, match="no topic of a node had 4 messages in 1 s"):
        described(Seen(1.0, {"/a": topic(("node", b"1"), [], arrivals(10, count=2))}), "seen", 0)
