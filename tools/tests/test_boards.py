# SPDX-License-Identifier: Apache-2.0
"""Several boards in a description: bounds are as computed by hand, refusals name their location, and a description of a
single board has the same results as before."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from bounded import MS, bound_ns, refusal
from commands import done
from descriptions import board, chain, described, entry, host, line
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.result import Bounds
from tide_tools.simulate.described import simulate_description
from tide_tools.system.check import not_played
from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.servers import on_one_core

SEED = int(os.environ.get("TIDE_SEED", "1"))


def found(*parts: str, executor: str | None = None) -> Bounds:
    return bounds_of(parse(described(*parts)), executor)


TWO = (
    board("base", link="uart_base"),
    board("arm", link="uart_arm"),
    host("nav"),
    line("uart_base", escaped_bytes=0, agent_ms=1, return_ms=1),
    line("uart_arm", escaped_bytes=0, agent_ms=2, return_ms=0.5),
)


def drawn_board(source: random.Random, name: str) -> tuple[str, str, str]:
    """The executors, the link and the chains of a board that shares nothing with other boards."""
    executors = board(name, link=f"uart_{name}", submit_ms=0.1, process_ms=source.choice((0, 0.2)), interrupt_ms=0.01)
    executors += host(f"host_{name}", lanes=source.choice((1, 2)))
    link = line(f"uart_{name}", baud=source.choice((115200, 921600)), agent_ms=source.choice((0, 1.5)), return_ms=0.2)
    chains = ""
    for number in range(source.randint(1, 4)):
        ways = ((name, f"host_{name}", name), (name, f"host_{name}"), (f"host_{name}", name), (name,))
        steps = [(where, source.randint(0, 40) / 10) for where in source.choice(ways)]
        chains += chain(
            f"{name}{number}",
            number * 2 + (name == "arm") + 1,
            *steps,
            payload=source.randint(8, 200),
            reliability=source.choice(("reliable", "best_effort")),
            jitter_ms=source.choice((0, 1)),
            period_ms=source.choice((100, 150, 400)),
            deadline_ms=100,
        )
    return executors, link, chains


@pytest.mark.parametrize("executor", ["tide", "lanes", "batch", "batch_stock"])
def test_boards_that_share_nothing_are_bounded_as_each_alone(executor: str) -> None:
    for seed in range(SEED, SEED + 25):
        source = random.Random(seed)
        parts = [drawn_board(source, name) for name in ("base", "arm")]
        together = bounds_of(parse(described(*("".join(kind) for kind in zip(*parts, strict=True)))), executor)
        for part in parts:
            for one in bounds_of(parse(described(*part)), executor).chains:
                other = together.chain(one.name)
                same = (other.bound_ns, other.parts) == (one.bound_ns, one.parts)
                same = same and (other.depends_on, other.reason) == (one.depends_on, one.reason)
                assert same, f"TIDE_SEED={seed}, {one.name}"


def test_from_board_to_board_the_ways_add_up() -> None:
    """On the line to the agent, a message of 20 bytes has 19 bytes more, including padding. At 921,600 baud each byte
    takes 10.85 us."""
    bounds = found(*TWO, chain("grip", 1, ("base", 3), ("nav", 5), ("arm", 2)))
    told = {(part.kind, part.executor): part.value_ns for part in bounds.chain("grip").parts}
    assert told["execution", "base"] == 3 * MS and told["execution", "arm"] == 2 * MS
    assert told["host", "base"] == 6 * MS and told["host", "arm"] == MS // 2  # the agent and nav; the return
    frames_ns = told["line", "base"] + told["line", "arm"]
    assert 2 * (20 + 12) * 10 * 10**9 / 921600 < frames_ns < 2 * (20 + 24) * 10 * 10**9 / 921600
    rest_ns = sum(value for (kind, _), value in told.items() if kind not in ("execution", "host", "line"))
    assert bound_ns(bounds, "grip") == 11 * MS + MS // 2 + frames_ns + rest_ns
    assert 0 < rest_ns < 3 * MS  # for probes: the base gets no messages, and the arm sends none to its agent
    straight = found(*TWO, chain("grip", 1, ("base", 3), ("arm", 2)))
    assert bound_ns(bounds, "grip") - bound_ns(straight, "grip") == 5 * MS


def test_a_chain_of_another_board_keeps_a_shared_executor_busy() -> None:
    own = chain("mine", 2, ("base", 1), ("nav", 4), ("base", 1))
    for others, more_ms in (
        ("", 0),
        (chain("theirs", 1, ("arm", 1), ("nav", 7), ("arm", 1)), 7),
        (chain("theirs", 1, ("nav", 7), ("arm", 1)), 7),
        (chain("local", 1, ("nav", 7)), 7),
        (chain("away", 1, ("arm", 1), ("nav", 7), ("base", 0)), 7),
        (chain("elsewhere", 1, ("arm", 7)), 0),
    ):
        seen_ns = bound_ns(found(*TWO, own, others), "mine")
        alone_ns = bound_ns(found(*TWO, own), "mine")
        assert seen_ns - alone_ns >= more_ms * MS, others
        assert seen_ns - alone_ns < (more_ms + 3) * MS, others


def test_what_comes_late_from_another_board_comes_in_a_heap() -> None:
    """On the arm, `often` may wait 24 ms for `slow`. Two of its instances may therefore meet `patient` on the base
    within 32 ms; if a timer released them on the base, they would be 50 ms apart."""
    often = chain("often", 3, ("arm", 0.1), ("base", 2), period_ms=50, deadline_ms=50)
    patient = chain("patient", 1, ("base", 30), period_ms=400, deadline_ms=400)
    two = (board("base", link="uart_base", lanes=2), *TWO[1:])
    slow = chain("slow", 2, ("arm", 24), period_ms=400, deadline_ms=400)
    punctual_ns = bound_ns(found(*two, often, patient), "patient")
    late_ns = bound_ns(found(*two, often, patient, slow), "patient")
    assert late_ns >= punctual_ns + 2 * MS


def test_what_is_late_on_another_board_comes_in_a_heap_to_a_shared_executor() -> None:
    """Instances of `often` that `slow` delays on the arm arrive close together at the host, where they meet `mine`."""
    often = chain("often", 3, ("arm", 0.1), ("nav", 2), period_ms=50, deadline_ms=50)
    mine = chain("mine", 1, ("base", 1), ("nav", 12), ("base", 1), period_ms=400, deadline_ms=400)
    slow = chain("slow", 2, ("arm", 24), period_ms=400, deadline_ms=400)
    punctual_ns = bound_ns(found(*TWO, often, mine), "mine")
    assert bound_ns(found(*TWO, often, mine, slow), "mine") >= punctual_ns + MS


def test_what_has_no_bound_on_one_board_has_none_behind_it() -> None:
    """On the arm, `often` may wait for `slow` longer than its period, so it has no bound. `mine` meets `often` on the
    base, so it has none either. `apart` shares nothing with these chains."""
    bounds = found(
        *TWO,
        chain("slow", 9, ("arm", 120), ("base", 1), period_ms=200, deadline_ms=200),
        chain("often", 8, ("arm", 0.1), ("base", 1)),
        chain("mine", 2, ("base", 1)),
        chain("apart", 1, ("nav", 1)),
    )
    roots = {one.name: one.root and one.root.chain for one in bounds.chains}
    assert roots == {"slow": None, "often": "often", "mine": "often", "apart": None}
    assert bounds.chain("slow").bound_ns is not None and not bounds.met
    root = bounds.chain("mine").root
    assert root is not None and root.path == ("chains", 1)
    assert "it depends on chain 'often', which has none: its timer's callback may end 120" in root.reason("mine")


def test_boards_have_policies_of_their_own() -> None:
    chains = chain("first", 2, ("base", 1), ("nav", 1), ("base", 1)) + chain("second", 1, ("base", 8), period_ms=20)
    chains += chain("third", 4, ("arm", 1), ("nav", 1), ("arm", 1)) + chain("fourth", 3, ("arm", 8))
    plain = found(*TWO, chains)
    lanes = found(board("base", link="uart_base", lanes=2), *TWO[1:], chains)
    batch = found(board("base", link="uart_base", policy="batch"), *TWO[1:], chains)
    assert (plain.executor, lanes.executor, batch.executor) == ("tide", "described", "described")
    assert len({bound_ns(one, "first") for one in (plain, lanes, batch)}) == 3
    assert bound_ns(lanes, "first") < bound_ns(plain, "first")
    assert len({bound_ns(one, "third") for one in (plain, lanes, batch)}) == 1
    assert {model.executor: model.model for model in lanes.models} == {
        "base": "lanes",
        "arm": "tide",
        "nav": "any_order",
    }
    assert found(*TWO, chains, executor="batch").executor == "batch"
    alone = (host("nav"), TWO[3], chain("first", 2, ("base", 1), ("nav", 1), ("base", 1)))
    assert found(board("base", policy="batch"), *alone).executor == "batch"


def test_a_board_finds_its_link() -> None:
    """The link of a board is the one that it names, else the one that its chains name, else the only link."""
    steps = ("base", 1), ("nav", 1), ("base", 1)
    one = found(board("base"), host("nav"), TWO[3], chain("first", 1, *steps))
    same = found(board("base", link="uart_base"), host("nav"), TWO[3], chain("first", 1, *steps))
    assert one.to_json() == same.to_json()
    unnamed = (board("base"), board("arm"), *TWO[2:])
    third = chain("third", 3, ("arm", 1), ("nav", 1), link="uart_arm")
    by_chains = found(*unnamed, chain("first", 1, *steps, link="uart_base"), third)
    by_boards = found(*TWO, chain("first", 1, *steps), third)
    assert [one.bound_ns for one in by_chains.chains] == [one.bound_ns for one in by_boards.chains]


def test_a_network_has_the_delays_that_are_given() -> None:
    rover = board("rover", link="wifi"), host("nav"), entry("links", name="wifi", kind="udp", agent_ms=8, return_ms=6)
    best_effort = found(*rover, chain("drive", 1, ("rover", 1), ("nav", 2), ("rover", 3)))
    assert 20 * MS <= bound_ns(best_effort, "drive") < 20 * MS + MS // 5
    reliable = found(*rover, chain("drive", 1, ("rover", 1), ("nav", 2), ("rover", 3), reliability="reliable"))
    assert bound_ns(reliable, "drive") >= bound_ns(best_effort, "drive")
    two = found(*rover, board("mast", link="wifi"), chain("drive", 1, ("rover", 1), ("nav", 2), ("mast", 3)))
    assert bound_ns(two, "drive") >= 20 * MS
    with pytest.raises(NoBoundError) as refusal:
        found(*rover[:2], entry("links", name="wifi", kind="udp"), chain("drive", 1, ("rover", 1), ("nav", 2)))
    assert "give it agent_ms and return_ms" in refusal.value.findings[0].remedy


@pytest.mark.parametrize(
    ("parts", "path", "what"),
    [
        (
            (*TWO, chain("loop", 1, ("base", 1), ("arm", 1), ("base", 1), ("nav", 1), ("arm", 1))),
            ("chains", 0, "callbacks", 4),
            "chain 'loop' returns to board 'arm' from a board to which it had returned before",
        ),
        (
            (board("base", link="uart_base"), board("arm", link="uart_base"), *TWO[2:4], chain("a", 1, ("arm", 1))),
            ("executors", 1),
            "'base' and 'arm' are two microcontrollers on the serial link 'uart_base'",
        ),
        (
            (board("base"), board("arm"), *TWO[2:], chain("a", 1, ("arm", 1), ("arm", 1))),
            ("chains", 0, "callbacks", 0),
            "'b0' sends on board 'arm', but its link is not specified",
        ),
        (
            (
                *TWO,
                chain("a", 1, ("arm", 1), ("nav", 1)),
                chain("c", 2, ("nav", 1))[:-1],
                '\npublishes = { topic = "x", payload_bytes = 8 }\n',
                entry("chains", name="b", priority=3, period_ms=100, deadline_ms=100, reliability="reliable"),
                'branches_from = "c.b0"\n[[chains.callbacks]]\nname = "d"\nkind = "subscription"\nexecutor = "nav"\n',
                "execution_ms = 1\n",
            ),
            ("chains", 2, "reliability"),
            "chain 'b' is reliable and begins with the timer of 'c'",
        ),
        (
            (
                board("base", link="uart_base", lanes=2),
                *TWO[1:],
                *tuple(chain(f"a{one}", one, ("base", 1)) for one in (1, 2, 3)),
            ),
            ("executors", 0, "lanes"),
            "executor 'base' has 2 lanes for chains of 3 priorities",
        ),
        (
            (
                board("base", link="uart_base"),
                board("arm", link="uart_arm", submit_ms=2000000),
                *TWO[2:],
                chain("a", 1, ("base", 1)),
            ),
            ("executors", 1, "submit_ms"),
            "'submit_ms' of 'arm'",
        ),
    ],
)
def test_what_has_no_bound_is_named_with_its_place(parts: tuple[str, ...], path: tuple[object, ...], what: str) -> None:
    with pytest.raises(NoBoundError) as refusal:
        found(*parts)
    finding = refusal.value.findings[0]
    assert finding.path == path and what in finding.what, refusal.value.findings


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ((*TWO[:2], host("nav", link="uart_arm"), *TWO[3:]), "'nav' is on the host, which has no link of its own"),
        ((*TWO[:2], host("nav", policy="batch"), *TWO[3:]), "'nav' is on the host, which has no executor 'batch'"),
        ((board("base", link="usb"), *TWO[1:]), "there is no link 'usb'; use one of: uart_base, uart_arm"),
        ((board("base", policy="fifo"), *TWO[1:]), "'policy' is 'fifo'"),
        ((*TWO, chain("a", 1, ("base", 1), ("nav", 1), link="uart_arm")), "touches no board on link 'uart_arm'"),
        ((*TWO, chain("a", 1, ("base", 120))), "the callbacks on board 'base' need 120 %"),
        ((*TWO, chain("a", 1, ("nav", 1), ("arm", 1), payload=10_000)), "'uart_arm' has to carry 109 %"),
    ],
)
def test_what_does_not_hang_together_is_one_line(parts: tuple[str, ...], what: str) -> None:
    chains = "" if "[[chains]]" in "".join(parts) else chain("ok", 9, ("base", 1))
    lines = refusal(described(*parts, chains))
    assert any(what in one for one in lines) and lines[0].startswith("system.toml:"), lines


def test_each_board_has_a_core_and_each_link_its_own_load() -> None:
    parse(described(*TWO, chain("a", 1, ("base", 70)), chain("b", 2, ("arm", 70))))
    long = {"payload": 6000, "reliability": "reliable"}
    ways = (("a", 1, "base"), ("b", 2, "arm"))
    parse(described(*TWO, *(chain(name, number, (where, 1), ("nav", 1), **long) for name, number, where in ways)))


def test_tide_check_tells_assumptions_of_each_board(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(described(*TWO, chain("grip", 1, ("base", 3), ("nav", 5), ("arm", 2))), encoding="utf-8")
    done("check", file, "--explain", "grip", "--compare", COLUMNS="160")
    result = done("check", file, "--explain", "grip", "--details", COLUMNS="160")
    for text in ("board base: from the line to the node: 1 ms at most", "board arm: from the line", "on arm"):
        assert text in result
    for name in ("base", "arm"):
        assert re.search(rf"board '{name}' has at least \d+ small nodes of \d+ bytes", result)
    assert "hold while all boards send through the agent" in result


def loaded(*loads: dict[str, Any], reliability: str = "best_effort", **of_board: Any) -> str:
    """A chain to a node and back takes 7.78 ms: 2 for its own callbacks, 2 because it may wait once for the callback of
    `low`, 0.39 for each of its two frames, and 3 for agent and node."""
    return described(
        board("m", loads=list(loads) or None, **of_board),
        line("l", baud=1_000_000, escaped_bytes=0, agent_ms=1, return_ms=1),
        host("h"),
        chain("c", 2, ("m", 1), ("h", 1), ("m", 1), reliability=reliability),
        chain("low", 1, ("m", 2)),
    )


def load_of(execution_ms: float, period_ms: float, **more: Any) -> dict[str, Any]:
    return {
        "name": f"load{str(period_ms).replace('.', '_')}",
        "execution_ms": execution_ms,
        "period_ms": period_ms,
        **more,
    }


@pytest.mark.parametrize(
    ("loads", "more_ms"),
    [
        ((), 0),
        ((load_of(10, 1000),), 10),  # once
        ((load_of(10, 1000, masks_interrupts=True),), 10),  # such a load delays the chain only once
        ((load_of(0.1, 1),), 0.9),  # the load comes nine times in 8.68 ms
        # thirteen times in 12.08 ms, because the first one may be late by a period
        ((load_of(0.1, 1), load_of(3, 500)), 4.3),
        (
            (load_of(10, 1000, agent_bytes=24),),
            10 + 4 * 0.43,
        ),  # and a frame of 43 bytes, both before and after the chain's messages
    ],
)
def test_loads_of_a_board_go_before_its_callbacks(loads: tuple[dict[str, Any], ...], more_ms: float) -> None:
    bounds = bounds_of(parse(loaded(*loads)))
    assert bound_ns(bounds, "c") == pytest.approx((7.78 + more_ms) * MS, abs=0.11 * MS)
    assert ("loads" in [one.id for one in bounds.assumptions]) is bool(loads)
    for executor in ("lanes", "batch"):
        assert bound_ns(loaded(*loads), "c", executor) >= bound_ns(loaded(), "c", executor)


@pytest.mark.parametrize("more", [{}, {"masks_interrupts": True}, {"agent_bytes": 24}])
def test_loads_are_played_and_keep_to_the_bounds(more: dict[str, Any]) -> None:
    outcome = simulate_description(parse(loaded(load_of(10, 150, **more))), None, 12, 1, True)
    seen = next(one for one in outcome.seen if one.chain == "c")
    assert not outcome.is_broken and seen.lost == 0
    assert seen.worst_ns > 9.79 * MS, "without a load it is never so late"


def test_a_load_that_takes_the_line_has_bounds_with_publishes_that_do_not_wait() -> None:
    masks = load_of(10, 1000, masks_interrupts=True)
    with pytest.raises(NoBoundError, match="stop or use the link"):
        bounds_of(parse(loaded(masks, reliability="reliable")), "batch_stock")
    assert bounds_of(parse(loaded(masks)), "batch_stock")
    assert bounds_of(parse(loaded(load_of(10, 1000))), "batch_stock")


@pytest.mark.parametrize(
    ("text", "line_of", "what"),
    [
        (loaded(load_of(5, 5)), "loads", "takes as long as its period of 5 ms"),
        (loaded(load_of(0.99, 1)), "executors", "callbacks and loads on the microcontroller need 103 %"),
        (loaded(load_of(1, 10), load_of(2, 10)), "loads", "two loads named"),
        (loaded(load_of(1, 10)).replace('where = "mcu"', 'where = "host"'), "loads", "on executor 'm' of the host"),
    ],
)
def test_loads_that_cannot_be_are_named(text: str, line_of: str, what: str) -> None:
    assert any(what in line for line in refusal(text))


def test_usb_has_a_measured_rate_and_polls() -> None:
    """A message or acknowledgment waits for the poll, and is then sent as over a line with this rate of bytes."""
    ends = (board("m"), host("h"), chain("c", 2, ("m", 1), ("h", 1), ("m", 1), reliability="reliable"))
    fields = {"escaped_bytes": 0, "agent_ms": 1, "return_ms": 1}
    serial = found(*ends, line("l", baud=5_000_000, **fields))
    usb = {
        poll_ms: found(*ends, entry("links", name="l", kind="usb_cdc", bytes_per_s=500_000, poll_ms=poll_ms, **fields))
        for poll_ms in (0, 1)
    }
    assert bound_ns(usb[0], "c") == bound_ns(serial, "c")
    assert bound_ns(usb[1], "c") == bound_ns(serial, "c") + 2 * MS
    with pytest.raises(SystemFileError, match="of its 1000 bytes/s to the host"):
        found(ends[0], ends[1], chain("c", 2, ("m", 1), ("h", 1), payload=400, period_ms=300),
              entry("links", name="l", kind="usb_cdc", bytes_per_s=1000, **fields))  # fmt: skip
    with pytest.raises(SystemFileError, match=r"'udp' or 'tcp'; .* not support CAN FD"):
        found(*ends, entry("links", name="l", kind="can_fd"))


def test_tcp_is_a_network_whose_delays_are_given() -> None:
    ends = (board("m"), host("h"), chain("c", 2, ("m", 1), ("h", 1)))
    udp, tcp = (found(*ends, entry("links", name="l", kind=kind, agent_ms=5, return_ms=5)) for kind in ("udp", "tcp"))
    assert bound_ns(udp, "c") == bound_ns(tcp, "c")
    with pytest.raises(NoBoundError, match="whose delay has no bound of its own"):
        found(*ends, entry("links", name="l", kind="tcp"))


def sharing(urgent: int = 7, **more: object) -> str:
    """Two executors of a board: one with chain `a`, one with `b` and `c`."""
    of = {"board": "esp32", "core": 0, **more}
    parts = (board("m", **of, thread_priority=urgent), board("n", **of, thread_priority=3), host("h"))
    urgent_chain = chain("a", 3, ("m", 1), ("h", 1), period_ms=20)
    others = chain("b", 2, ("n", 1), ("h", 1)), chain("c", 1, ("n", 50))
    return described(*parts, line("l", escaped_bytes=0), urgent_chain, *others)


def test_a_more_urgent_executor_on_one_core_preempts() -> None:
    """`a` never waits for the 50 ms of `c`, which `b` on the executor of `c` does."""
    system = parse(sharing())
    bounds = bounds_of(system)
    assert bound_ns(bounds, "a") < 10 * MS and bound_ns(bounds, "b") > 50 * MS
    assert bound_ns(bounds, "c") >= 50 * MS + 3 * MS
    text = next(one.text for one in bounds.assumptions if one.id == "cores")
    assert text == "the more urgent of the executors on one core preempts the other: m, n"
    outcome = simulate_description(on_one_core(system), None, 20, 1, False)
    worst = {one.chain: one.worst_ns for one in outcome.seen}
    assert not outcome.is_broken and worst["a"] < 10 * MS and worst["b"] > 30 * MS
    assert worst["c"] >= 53 * MS, "the others preempt it"
    lines = [one.what for one in not_played(system, ())]
    assert len(lines) == 2 and all("as one, which does not preempt itself" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (sharing(3), "'m' and 'n' share a core and have no different thread_priority"),
        (sharing(2), "chain 'a' of 'm' is more urgent than some of 'n', which preempts it"),
        (sharing(policy="batch"), "share a core, for which they need tide's policy and one lane each"),
        (sharing().replace("core = 0", "core = 1", 1), "'m' and 'n' are on board 'esp32' and name different cores"),
        (sharing().replace('executor = "h"', 'executor = "n"', 1), "visit 'm' and 'n', which share a core"),
        (sharing().replace('board = "esp32"\n', ""), "executor 'm' has 'core', and is the only one of its board"),
    ],
)
def test_what_executors_on_one_core_of_a_board_need(text: str, what: str) -> None:
    assert any(what in line for line in refusal(text))


def test_a_thread_that_sleeps_takes_only_its_cpu_time() -> None:
    """Its runs of 2 ms may lie back to back, the end of one before the beginning of the next."""

    def loaded(**load: object) -> str:
        loads = [{"name": "sensor", "execution_ms": 2, "period_ms": 50, **load}]
        return described(board("m", loads=loads), host("h"), line("l"), chain("a", 1, ("m", 10)))

    at_once, sleeping = (bound_ns(parse(loaded(**one)), "a") for one in ({}, {"sleeps": True}))
    awake = bound_ns(parse(loaded(execution_ms=40)), "a")
    assert (at_once, sleeping) == (12 * MS, 14 * MS) and awake >= 50 * MS
    outcome = simulate_description(parse(loaded(sleeps=True)), None, 40, 1, True)
    (seen,) = outcome.seen
    assert not outcome.is_broken and 12 * MS < seen.worst_ns <= sleeping
    assert "masks interrupts and sleeps" in refusal(loaded(sleeps=True, masks_interrupts=True))[0]


def test_cores_of_a_board_share_its_link_and_wait_no_longer_than_on_one() -> None:
    def two(of_first: str | None, of_second: str | None, link: str | None = None) -> str:
        parts = (board("m", board=of_first), board("n", board=of_second), host("h"))
        chains = (chain("a", 2, ("m", 1), ("h", 1), ("m", 1)), chain("b", 1, ("n", 2), ("h", 1)))
        return described(*parts, line("l", escaped_bytes=0, agent_ms=1, return_ms=1), *chains)

    bounds = bounds_of(parse(two("esp32", "esp32")))
    alone = bounds_of(parse(two("esp32", "esp32").replace('executor = "n"', 'executor = "m"')))
    for name in ("a", "b"):
        assert bound_ns(bounds, name) >= bound_ns(alone, name)
    assert {one.executor for one in bounds.models} == {"m", "n", "h"}
    assert any(one.id == "cores" and one.places == ("m", "n") for one in bounds.assumptions)
    late = bounds_of(parse(two("esp32", "esp32").replace("execution_ms = 2", "execution_ms = 99")))
    roots = [one.root for one in late.chains if one.root is not None]
    assert roots and all(one.what.endswith(" (bounded as one core: m, n)") for one in roots), "b keeps n busy, not m"
    with pytest.raises(NoBoundError, match="two microcontrollers on the serial link"):
        bounds_of(parse(two(None, None)))
    lanes = two("esp32", "esp32").replace('name = "n"\n', 'name = "n"\nlanes = 2\n', 1)
    assert "differ in policy or lanes" in refusal(lanes)[0]
    same = two("esp32", "esp32").replace("priority = 1", "priority = 2")
    assert "both have priority 2" in refusal(same)[0], "they meet on the link"
