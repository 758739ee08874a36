# SPDX-License-Identifier: Apache-2.0
"""Services in chains: valid descriptions, messages on the line, bounds, and runs of the shipped code in virtual
time."""

from __future__ import annotations

import itertools
import random
from contextlib import closing
from typing import Any

import pytest

from bounded import MS, all_ns, bound_ns, bound_of, bounded, refusal, worst_of
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError, all_of, link_document, sections_of
from tide_tools.analysis.sizing import client_of, options, pools
from tide_tools.play.boards import BoardsPlayer
from tide_tools.play.server import Server
from tide_tools.run.plan import ServicePart, nodes_of, plan_of, write_board_plan
from tide_tools.simulate.described import simulate_description
from tide_tools.system.load import parse
from tide_tools.system.model import System
from tide_tools.watch.agents import Replies, services_told
from tide_tools.watch.chains import points_of

PLACES = {"m": ("mcu", "l"), "n": ("mcu", "k"), "h": ("host", None), "g": ("host", None)}


def described(*chains: str, board: str = "", link: str = "escaped_bytes = 0\nexact_sizes = true") -> str:
    text = '[system]\nname = "asking"\n'
    for name, (where, line) in PLACES.items():
        if not any(f'executor = "{name}"' in one for one in chains):
            continue
        text += f'[[executors]]\nname = "{name}"\nwhere = "{where}"\n'
        if line is not None:
            text += f'link = "{line}"\n{board}\n'
            text += f'[[links]]\nname = "{line}"\nkind = "serial"\nbaud = 115200\nagent_ms = 1\nreturn_ms = 1\n{link}\n'
    return text + "".join(chains)


def service(
    name: str,
    way: str,
    priority: int = 3,
    request: int | None = 1,
    reply: int = 20,
    times: tuple[float, ...] = (1, 2, 1),
) -> str:
    """A chain of a client, a server, and the callback for the reply. If ``request`` is None, the size follows from the
    type."""
    asker, server, client = way
    sized = "" if request is None else f", payload_bytes = {request}"
    kind = 'type = "std_srvs/srv/SetBool"'
    return f"""
[[chains]]
name = "{name}"
priority = {priority}
period_ms = 200
deadline_ms = 200
reliability = "reliable"
callbacks = [
  {{ name = "ask", kind = "timer", executor = "{asker}", execution_ms = {times[0]},
     requests = {{ service = "{name}/set", {kind}{sized} }} }},
  {{ name = "serve", kind = "service", executor = "{server}", execution_ms = {times[1]},
     replies = {{ service = "{name}/set", {kind}, payload_bytes = {reply} }} }},
  {{ name = "go_on", kind = "client", executor = "{client}", execution_ms = {times[2]} }},
]
"""


# ---- the description ----

GOOD = described(service("c", "mhm"))
SET_BOOL = "std_srvs/srv/SetBool"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"service"', '"subscription"'), "'serve' of chain 'c' is of kind subscription, which receives no requests"),
        (
            ('kind = "service", executor = "h", execution_ms = 2,\n     replies', 'kind = "client", executor = "h", '
             "execution_ms = 2,\n     replies"),
            "which receives no requests",
        ),
        (('"client"', '"subscription"'), "the reply of service 'serve' of chain 'c' is not taken by a client"),
        (
            (f',\n     requests = {{ service = "c/set", type = "{SET_BOOL}", payload_bytes = 1 }}', ""),
            "service 'serve' of chain 'c' is not requested by the callback before it",
        ),
        (
            (f',\n     replies = {{ service = "c/set", type = "{SET_BOOL}", payload_bytes = 20 }}', ""),
            "service 'serve' of chain 'c' sends no reply",
        ),
        (('replies = { service = "c/set"', 'replies = { service = "d/set"'), "serves service 'd/set', but 'ask'"),
        (
            (f'type = "{SET_BOOL}", payload_bytes = 20', 'type = "std_srvs/srv/Trigger", payload_bytes = 20'),
            "serves type 'std_srvs/srv/Trigger', but 'ask' requests 'std_srvs/srv/SetBool'",
        ),
        (('"client", executor = "m"', '"client", executor = "h"'), "where the request was sent, on 'm'"),
        (('"reliable"', '"best_effort"'), "chain 'c' has a service and is best effort"),
        (
            (f'type = "{SET_BOOL}", payload_bytes = 20', f'type = "{SET_BOOL}"'),
            "the reply of service 'c/set' has no largest size",
        ),
        (
            (f'type = "{SET_BOOL}", payload_bytes = 1 ', 'type = "no_such/srv/Thing" '),
            "has an unknown size: there is no definition of no_such/srv/Thing here",
        ),
        ((f'type = "{SET_BOOL}", payload_bytes = 1 ', 'type = "std_msgs/msg/Bool" '), "write it as package/srv/Name"),
        (
            ('executor = "m", execution_ms = 1 }', 'executor = "m", execution_ms = 1, publishes = { topic = "t", '
             'payload_bytes = 8 }, requests = { service = "b", type = "std_srvs/srv/Trigger" } }'),
            "publishes and requests, but a callback sends only one of them",
        ),
        (('kind = "timer"', 'kind = "service"'), "begins with the service 'ask', so nothing starts it"),
        (('"c/set"', '"c set"'), "write letters, digits and _ in parts joined by /"),
    ],
)  # fmt: skip
def test_what_a_service_may_not_be_is_told(change: tuple[str, str], told: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    lines = refusal(text)
    assert any(told in line for line in lines), lines
    assert all(line.startswith("system.toml:") and ";" in line for line in lines)


def test_a_request_without_a_server() -> None:
    head, _, tail = GOOD.partition('  { name = "serve"')
    told = "'ask' of chain 'c' requests service 'c/set', and the callback after it is not a server"
    assert told in "\n".join(refusal(head + tail[tail.index('  { name = "go_on"') :]))


def test_types_say_sizes() -> None:
    (chain,) = parse(described(service("c", "mhm", request=None))).chains
    assert [one.sent_bytes for one in chain.callbacks] == [4, 20, 0]
    goal = "test_msgs/action/Fibonacci_SendGoal"
    text = described(service("c", "mhm", request=None)).replace(SET_BOOL, goal).replace(", payload_bytes = 20", "")
    (chain,) = parse(text).chains  # request: UUID and number; reply: flag and time
    assert [one.sent_bytes for one in chain.callbacks] == [20, 12, 0]


# ---- the lowering ----


@pytest.mark.parametrize(("way", "sizes"), [("mhm", [7, 24, 0]), ("hmh", [31, 44, 0])])
def test_what_goes_with_a_request_and_a_reply(way: str, sizes: list[int]) -> None:
    """Besides their payloads, messages to and from the server have 24 B, and those to the client have 4 B."""
    document = link_document(parse(described(service("c", way, request=7))))
    (chain,) = document["chains"]
    assert [one["payload_bytes"] for one in chain["callbacks"]] == sizes


def test_a_service_of_a_board_for_itself_passes_through_the_agent() -> None:
    system = parse(described(service("c", "mmm", request=7)))
    (chain,) = link_document(system)["chains"]
    assert [one["payload_bytes"] for one in chain["callbacks"]] == [7, 31, 44, 24, 0]
    assert [one["executor"] for one in chain["callbacks"]] == ["m", "!relay", "m", "!relay", "m"]
    assert bound_ns(system, "c") > (1 + 2 + 1 + 4) * MS


def test_a_service_costs_what_topics_of_its_size_cost() -> None:
    asking = topics = service("c", "mhm", request=30, reply=26)
    for old, new in (
        ("requests = { service", "publishes = { topic"), ("replies = { service", "publishes = { topic"),
        ('"c/set"', '"c/in"'), (SET_BOOL, "std_msgs/msg/String"), ('"service"', '"subscription"'),
        ('"client"', '"subscription"'), ("payload_bytes = 26", "payload_bytes = 30"),
    ):  # fmt: skip
        topics = topics.replace(old, new)
    topics = topics.replace('"c/in"', '"c/out"', 1)
    assert bound_of(described(asking), "c").parts == bound_of(described(topics), "c").parts


@pytest.mark.parametrize("policy", ["batch_stock", "batch_blocking"])
def test_no_bound_where_publishing_waits(policy: str) -> None:
    for way in ("mhm", "hmh"):
        with pytest.raises(NoBoundError) as refusal:
            bounds_of(parse(described(service("c", way), board=f'policy = "{policy}"')))
        assert "publishing waits, and there is no bound there for requests and replies: c." in str(refusal.value)
    assert all_ns(described(service("c", "mhm"), board='policy = "batch"'))


def test_a_service_of_another_board_is_within_the_section_of_who_asks() -> None:
    system = parse(described(service("c", "mnm"), service("d", "hnh", priority=2)))
    (outer,) = sections_of(system, system.chain("c"))
    (inner,) = outer.inner
    assert (outer.place, inner.place) == ("m", "n") and outer.is_last and not inner.is_last
    assert [[one.name for one in each.callbacks] for each in (outer, inner)] == [["ask", "go_on"], ["serve"]]
    assert [one.name for one in all_of([outer])] == ["c#1", "c#2"]
    bound = bound_of(system, "c")
    assert {part.executor for part in bound.parts} == {"m", "n"} and bound.depends_on == ()
    assert bound_ns(described(service("c", "mnm")), "c") < all_ns(system)["c"]


def test_a_board_that_serves_takes_as_long_as_it_does() -> None:
    """If the server takes longer, the bound grows by the same time."""
    found_ns = [bound_ns(described(service("c", "mnm", times=(1, served, 1))), "c") for served in (2, 12, 22)]
    assert [after - before for before, after in itertools.pairwise(found_ns)] == [10 * MS, 10 * MS]


def test_a_reply_of_another_board_is_as_long_on_both_lines() -> None:
    """A reply that is 80 bytes longer takes more time on the line of the server and on that of the client."""
    short, long = (bound_ns(described(service("c", "mnm", reply=reply)), "c") for reply in (20, 100))
    assert long - short >= 2 * 80 * 10 * 1_000_000_000 // 115_200


# ---- the shipped code in virtual time ----


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch"])
def test_requests_and_replies_of_the_shipped_code_keep_to_their_bounds(executor: str) -> None:
    ways = ("mhm", "hmh", "mnm", "hng", "mgm")
    chains = [service(f"c{n}", way if way != "hng" else "hnh", priority=9 - n) for n, way in enumerate(ways)]
    system = parse(described(*chains, link=""))
    worst = worst_of(system, executor, 8)
    for one in bounded(system, executor).chains:
        assert one.bound_ns is None or 4 * MS < worst[one.name] <= one.bound_ns, one.name


LOSSES = "up_loss=0.1;down_loss=0.1;up_corruption=0.05;up_duplication=0.05"
CUTS = "cuts=2;cut_maximum_us=300000"
RESTARTS = "restarts=2;outage_maximum_us=300000"


@pytest.mark.parametrize("faults", [LOSSES, CUTS, RESTARTS, f"{LOSSES};{CUTS};{RESTARTS}"])
def test_every_reply_is_that_of_its_request_whatever_the_line_and_the_agents_do(faults: str) -> None:
    """Lines only delay messages. If an agent dies, replies may be lost, but none is taken for the reply to another
    request."""
    ways = ("mhm", "hmh", "mnm", "hnh")
    system = parse(described(*(service(f"c{n}", way, priority=9 - n) for n, way in enumerate(ways)), link=""))
    with closing(Server("tide-sim")) as server:
        for seed in range(1, 5):
            player = BoardsPlayer(system, "tide", 0, random.Random(seed))
            words = f"{faults};{player.words(player.drawn())}".replace("horizon_us=800000", "horizon_us=2400000")
            played = server.play(words)
            assert not played.violations, words
            assert min(played.ended) >= (12 if "restarts" not in faults else 1), words


def test_a_simulation_shows_where_the_time_went() -> None:
    outcome = simulate_description(parse(described(service("c", "mnm"))), None, 4, 1, False)
    assert not outcome.is_broken and outcome.find_recording()
    first = [one for one in outcome.find_recording() if one.instance == 0]
    causes = {(one.place, one.what) for one in first}
    assert {("m", "ask"), ("n", "serve"), ("m", "go_on")} <= causes
    assert {("l, to the host", "request"), ("k, to the board", "request")} <= causes
    assert {("k, to the host", "reply"), ("l, to the board", "reply")} <= causes


def test_a_mistake_in_the_sizes_is_seen_by_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the bound for a slow line did not include the HEARTBEATs and ACKNACKs for a reply, the shipped code would
    exceed it."""
    from tide_tools.analysis import lower

    link = "escaped_bytes = 0\nexact_sizes = true\nheartbeat_delay_ms = 60\nagent_heartbeat_ms = 1000"
    text = described(service("c", "hmh", reply=9, times=(0.1, 0.1, 0.1)), link=link)
    text = text.replace("115200", "9600").replace("agent_ms = 1\nreturn_ms = 1", "agent_ms = 0\nreturn_ms = 0")
    system = parse(text.replace("_ms = 200\n", "_ms = 500\n"))
    right_ns = bound_ns(system, "c")
    monkeypatch.setattr(lower, "up_bytes", lambda sender, taker: sender.sent_bytes)
    monkeypatch.setattr(lower, "down_bytes", lambda sender, taker: sender.sent_bytes)
    assert bound_ns(system, "c") < worst_of(system, runs=4)["c"] <= right_ns


# ---- a run, and a watch ----


def planned(system: System, name: str, tmp_path: Any) -> str:
    file = tmp_path / f"{name}_plan.txt"
    write_board_plan(system.executor(name), plan_of(system, system.executor(name), 5), file)
    return str(file.read_text())


def test_boards_and_nodes_are_told_their_part_of_a_service(tmp_path: Any) -> None:
    system = parse(described(service("c", "mnm", request=4), service("d", "hmh", priority=2, request=4)))
    board, kept = planned(system, "m", tmp_path), system.chains[0].reliability
    assert f"callback ask 1000000 0 1000000 - c/set {SET_BOOL} bool 0 1 {kept} m_plan_" in board
    assert f"callback go_on 1000000 0 1000000 c/set {SET_BOOL} digits 8 1 {kept} - -" in board
    serves = f"d/set {SET_BOOL} bool 0 1 {kept} - d/set {SET_BOOL} digits 8 1 {kept} m_plan_"
    assert f"callback serve 2000000 0 2000000 {serves}" in board
    host = system.executor("h")
    told = nodes_of(system, host, plan_of(system, host, 5), tmp_path)
    asks, takes = told["chains"][0]["callbacks"]
    (request,) = asks["sends"]
    assert request["part"] == "Request" and takes["takes"]["part"] == "Response"
    assert request["topic"] == takes["takes"]["topic"] == "d/set"
    (chain,) = (one for one in plan_of(system, system.executor("n"), 5))
    (message,) = chain.callbacks[0].sends
    assert isinstance(message.publication, ServicePart) and len(message.sample.body) <= 20


def test_a_watch_sees_services_of_boards_by_what_their_agent_tells() -> None:
    (points,) = points_of(parse(GOOD), 10_000)
    assert not points.points and not points.unseen and points.services == ("/c/set",)
    _, nodes = points_of(parse(described(service("d", "mhm"), service("c", "hgh", priority=1))), 10_000)
    assert nodes.unseen == ("service /c/set cannot be observed from outside",) and not nodes.services


def told(client: str, *values: tuple[str, int, int, int]) -> dict[str, str]:
    """The values of a diagnostic status in the form in which the agent writes them (agent/core/diagnostics.cpp)."""
    assert client
    return {key: f"{replies} replies, last {last} us, greatest {most} us" for key, replies, last, most in values}


def test_what_is_told_of_a_service_is_counted_from_its_replies() -> None:
    replies = Replies("/c/set", True, 1)
    assert replies.state(0, 3)[0] == "waiting"
    rows = [(1, 4000, 4000), (2, 4000, 4000), (5, 3000, 9000), (6, 3000, 9000), (7, 9500, 9500)]
    for second, (count, last_us, most_us) in enumerate(rows):
        known = services_told([told("A", ("asks /c/set", count, last_us, most_us), ("queue", 1, 1, 1))])
        assert list(known) == ["/c/set"]
        replies.take(known["/c/set"], 5 * MS, 9 * MS, second)
        replies.take(known["/c/set"], 5 * MS, 9 * MS, second)  # the same values once more
        assert replies.state(second, 3) == ("running", "") and not replies.why_not(known["/c/set"])
    assert (replies.misses, replies.above) == (2, 1)
    assert replies.state(99, 3)[0] == "silent"


def test_several_who_ask_are_not_told_apart() -> None:
    both = services_told([told("A", ("serves /s", 3, 1, 1)), told("B", ("asks /s", 3, 2, 2))])["/s"]
    assert [one.serves for one in both] == [False, True]
    board, node = Replies("/s", True, 1), Replies("/s", False, 1)
    for one, last_ns in ((board, 2000), (node, 1000)):
        one.take(both, MS, None, 1)
        assert not one.why_not(both) and one.told.last_ns == last_ns
    assert "several" in Replies("/s", False, 2).why_not(both)
    twice = services_told([told("A", ("asks /s", 3, 1, 1)), told("B", ("asks /s", 3, 2, 2))])["/s"]
    assert "several" in board.why_not(twice) and not node.why_not(twice)
    every = points_of(parse(described(service("d", "mhm"), service("c", "hmh", priority=1))), 10_000)
    assert [(one.services, one.asked) for one in every] == [(("/d/set",), ("/d/set",)), (("/c/set",), ())]


def test_a_footprint_counts_clients_services_and_what_goes_with_their_messages() -> None:
    """One board calls and another one serves. 24 B arrive with a request and leave with a reply; at the caller, 4 B
    arrive with the reply."""
    chains = (service("c", "mhm", request=300, reply=400), service("d", "hmh", priority=2, request=500, reply=600))
    client = client_of(parse(described(*chains)))
    sizes = pools(client)
    assert (sizes["TIDE_CLIENTS"], sizes["TIDE_SERVICES"], sizes["TIDE_SUBSCRIPTIONS"]) == (1, 1, 0)
    assert [end.payload_bytes + end.header_bytes for end in client.writes] == [300, 600 + 24]
    assert [end.payload_bytes + end.header_bytes for end in client.reads] == [400 + 4, 500 + 24]
    assert sizes["TIDE_SLOTS"] == 2 * 2 + 2 and sizes["TIDE_STREAMS"] == 2 + 1 and sizes["TIDE_LARGE_NODES"] == 2 * 2
    assert sizes["TIDE_LARGE_NODE_BYTES"] >= 624 + 12 and sizes["TIDE_REASSEMBLY_BYTES"] >= 524
    assert "TIDE_FRAGMENTS=1" in options(client)
