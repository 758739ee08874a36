# SPDX-License-Identifier: Apache-2.0
"""How the latency of the agent is determined for the messages of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

import descriptions as d
from tide_tools.run.evidence import Handed, Traced, evidence_of, handed
from tide_tools.run.plan import WARM_UP_INSTANCES, instances_of
from tide_tools.run.robot import Recorded
from tide_tools.run.seen import release_ns_of, undisturbed
from tide_tools.system.load import parse
from tide_tools.system.model import System
from tide_tools.trace.step import Step

US = 1000
FLOAT = "std_msgs/msg/Float64"


def system_of(lanes: int = 1) -> System:
    look, think = (
        {"name": name, "publishes": {"topic": topic, "type": FLOAT, "payload_bytes": 8}}
        for name, topic in (("look", "/seen"), ("think", "/act"))
    )
    loop = ("board", 0.2, look), ("node", 1, think), ("board", 0.2, {"name": "act"})
    return parse(
        d.described(
            d.board("board", link="uart"),
            d.host("node", lanes=lanes),
            d.line("uart", agent_ms=1, return_ms=0.5),
            d.chain("loop", 2, *loop, period_ms=20),
            d.chain("other", 1, ("node", 1, {"name": "sit"}), period_ms=20),
        )
    )


def step(start_us: int, end_us: int, place: str, what: str, chain: str = "loop", index: int = 7) -> Step:
    return Step(chain, index, start_us * US, end_us * US, place, what, 0)


def way(begin_us: int, sent_us: int) -> list[Step]:
    """The steps of an instance. The agent has the message at 600, and the callback ends a millisecond after its
    beginning."""
    end_us = begin_us + 1000
    return [
        step(0, 200, "board", "look"),
        step(190, 600, "uart, to the host", "message"),
        step(600, 650, "agent", "to ROS 2"),
        step(begin_us, end_us, "node", "think"),
        step(end_us + sent_us, end_us + sent_us, "agent", "to the board"),
        step(end_us + sent_us, end_us + sent_us + 400, "uart, to the board", "message"),
        step(end_us + sent_us + 500, end_us + sent_us + 700, "board", "act"),
    ]


@pytest.mark.parametrize(
    ("lanes", "others", "sure_us"),
    [
        (1, [], 1400),
        (1, [(700, 1500, "sit")], 600),  # the only lane was busy
        (2, [(700, 1500, "sit")], 1400),
        (2, [(700, 1500, "sit"), (1000, 1400, "sit")], 1000),
        (1, [(0, 300, "sit"), (500, 800, "sit")], 1200),
        (2, [(700, 1500, "think")], 600),  # a callback cannot delay itself
    ],
)
def test_a_wait_for_a_node_that_was_busy_is_taken_off(
    lanes: int, others: list[tuple[int, int, str]], sure_us: int
) -> None:
    steps = way(2000, 100)
    for number, (start_us, end_us, what) in enumerate(others):
        steps.append(step(start_us, end_us, "node", what, "loop" if what == "think" else "other", number))
    found = [one for one in handed(Traced(system_of(lanes), steps)) if one.way == "agent" and one.index == 7]
    assert found == [Handed("loop", "board", 7, "agent", 1400 * US, sure_us * US, 1000 * US)]
    assert found[0].is_slow is (sure_us > 1000)


@pytest.mark.parametrize(
    ("index", "came_us", "expected"), [(8, [600, 700, 900], 1100), (8, [600, 700], None), (7, [600], None)]
)
def test_a_message_of_several_is_told_by_its_place(index: int, came_us: list[int], expected: int | None) -> None:
    """A callback publishes three topics, one of them in every second run. Another chain joins the second topic."""
    topics = [{"topic": name, "type": FLOAT, "payload_bytes": 8} for name in ("/a", "/b", "/c")]
    topics[1]["every"] = topics[2]["every"] = 2
    system = parse(
        d.described(
            d.board("board", link="uart"),
            d.host("node"),
            d.line("uart", agent_ms=1, return_ms=0.5),
            d.chain("own", 2, ("board", 0.2, {"name": "look", "publishes": topics}), period_ms=20),
            d.chain("seldom", 1, ("node", 1, {"name": "take", "topic": "/c"}), branches_from="own.look", period_ms=40),
        )
    )
    steps = [step(0, 200, "board", "look", "own", index)]
    steps += [step(at_us, at_us + 10, "agent", "to ROS 2", "own", index) for at_us in came_us]
    steps.append(step(2000, 3000, "node", "take", "seldom", index))
    found = handed(Traced(system, steps))
    assert [one.took_ns for one in found] == ([] if expected is None else [expected * US])


def test_a_wait_for_a_line_that_was_busy_is_taken_off() -> None:
    steps = [*way(1000, 700), step(2100, 2600, "uart, to the board", "message", "other", 1)]
    steps.append(step(2000, 2700, "uart, to the host", "message", "other", 2))  # a frame in the other direction
    back = [one for one in handed(Traced(system_of(), steps)) if one.way == "return"]
    assert back == [Handed("loop", "board", 7, "return", 700 * US, 200 * US, 500 * US)]
    assert handed(Traced(system_of(), way(1000, 700)))[1].is_slow


def test_what_is_published_before_the_end_took_nothing() -> None:
    (_, back) = handed(Traced(system_of(), way(1000, -20)))
    assert (back.way, back.took_ns, back.is_slow) == ("return", 0, False)


@pytest.mark.parametrize("missing", range(7))
def test_what_was_not_recorded_is_left_out(missing: int) -> None:
    steps = way(1000, 100)
    what = steps.pop(missing).what
    ways = {one.way for one in handed(Traced(system_of(), steps))}
    assert ways == {"look": {"return"}, "to ROS 2": {"return"}, "think": set(), "to the board": {"agent"}}.get(
        what, {"agent", "return"}
    )


def test_the_evidence_has_every_message() -> None:
    system = system_of()
    steps = [*way(1000, 100), *(replace(one, instance=8) for one in way(2000, 0))]
    told = evidence_of(handed(Traced(system, steps)))["handed"]["board"]
    assert told["agent"] == {"sure_ns": 400 * US, "upto_us": {"400": 1, "1400": 1}}
    assert told["return"] == {"sure_ns": 100 * US, "upto_us": {"0": 1, "100": 1}}
    assert evidence_of([]) == {}
    other = Handed("loop", "another", 9, "agent", 0, 0, 7)
    assert set(evidence_of([*handed(Traced(system, way(1000, 100))), other])["handed"]) == {"board", "another"}


def test_an_instance_that_the_agent_held_is_disturbed() -> None:
    system = system_of()
    recorded = Recorded(10**9)
    for chain in system.chains:
        for place, callback in enumerate(chain.callbacks):
            for index in range(instances_of(system, chain, 10)):
                start_ns = release_ns_of(system, chain, recorded, index) + place * 2_000_000
                runs = recorded.runs.setdefault((chain.name, callback.name), {})
                runs[index] = (start_ns, start_ns + 100_000, 100_000)
    recorded.handed = [
        Handed("loop", "board", WARM_UP_INSTANCES + 1, "agent", 9, 9, 8),
        Handed("loop", "board", 5, "agent", 9, 8, 8),
    ]
    found = undisturbed(system, recorded, 10)
    assert len(found["loop"]) == 9 and WARM_UP_INSTANCES + 1 not in found["loop"]
    assert len(found["other"]) == 9  # one of them met the disturbed instance on the node
