# SPDX-License-Identifier: Apache-2.0
"""Bounds assume that the windows of streams and the pools of boards and agents suffice. tide check counts the messages
in transfer and compares them with the pools, `tide footprint` writes the pool sizes, and the simulator uses them."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tide_tools.analysis.bounds as bounding
from commands import done
from descriptions import board, described, host, line
from descriptions import chain as written
from tide_tools.analysis.bounds import ask_link, bounds_of, uses_of
from tide_tools.analysis.result import Bounds
from tide_tools.analysis.sizing import (
    AGENT_NODES,
    AGENT_REASSEMBLY_BYTES,
    AGENT_RESERVED_NODES,
    DEFAULTS,
    client_of,
    need_of,
    only_board,
    pools,
)
from tide_tools.simulate.described import Outcome, simulate_description
from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.model import System

ROOT = Path(__file__).parents[2]


def chain(name: str, priority: int, period_ms: int, way: str, sizes: tuple[int, ...], extra: str = "") -> str:
    """A chain. In ``way``, m is the board and any other letter an executor of the host."""
    continues = {"branches_from": extra.split('"')[1]} if extra else {}
    steps = []
    for place, where in enumerate(way):
        sends = {"topic": f"{name}/t{place}", "payload_bytes": sizes[place]} if place < len(sizes) else None
        steps.append((where, 0.1, {"publishes": sends}))
    return written(name, priority, *steps, period_ms=period_ms, reliability="reliable", **continues)


def system(
    *chains: str, baud: int = 921_600, mtu: int = 512, agent: float = 1, back: float = 1, board: str = ""
) -> System:
    hosts = sorted(set(re.findall(r'executor = "([a-z])"', "".join(chains))) - {"m"})
    link = line("l", baud=baud, mtu_bytes=mtu, escaped_bytes=12, agent_ms=agent, return_ms=back)
    own = f'[[executors]]\nname = "m"\nwhere = "mcu"\nsubmit_ms = 0.01\nprocess_ms = 0.01\n{board}\n'
    return parse(described(own, *map(host, hosts), link, *chains))


def bound_ms(bounds: Bounds, name: str) -> float | None:
    found_ns = bounds.chain(name).bound_ns
    return None if found_ns is None else found_ns / 1e6


# If a chain's ACKNACKs wait behind one large frame of a less urgent chain, it has sent 16 frames before the first
# ACKNACK comes.
FULL_WINDOW = (chain("a", 9, 2, "mh", (12,)), chain("u", 2, 800, "gm", (8100,)))


def test_a_window_that_runs_full_takes_the_bound_with_its_numbers() -> None:
    bounds = bounds_of(system(*FULL_WINDOW, mtu=4096, agent=0.5, back=0.5))
    assert not bounds.met and bound_ms(bounds, "a") is None
    reason = bounds.chain("a").reason
    assert re.search(r"up to \d+ frames of its stream to the agent .* a window holds 16", reason or "")
    assert "lower mtu_bytes" in (reason or "")
    slower = (FULL_WINDOW[0].replace("_ms = 2\n", "_ms = 20\n"), FULL_WINDOW[1])
    assert bounds_of(system(*slower, mtu=4096, agent=0.5, back=0.5)).met
    # The callback has a second message on the stream. Neither message is fragmented, so shorter ones would not help.
    both = [{"topic": f"a/t{n}", "payload_bytes": 12} for n in (0, 1)]
    steps = (("m", 0.1, {"publishes": both}), ("h", 0.1, {"topic": "a/t0"}))
    pair = written("a", 9, *steps, period_ms=3, reliability="reliable")
    reason = bounds_of(system(pair, FULL_WINDOW[1], mtu=4096, agent=0.5, back=0.5)).chain("a").reason
    assert re.search(r"the stream that it shares .*; make it best_effort or lengthen its period$", reason or "")


def test_the_simulator_sees_what_a_full_window_does() -> None:
    """A chain with a period of 2 ms waits for a message that takes 88 ms. To show this, a run has to be longer than
    usual."""
    outcome = simulate_description(system(*FULL_WINDOW, mtu=4096, agent=0.5, back=0.5), None, 6, 1, False)
    worst_ms = next(one.worst_ns for one in outcome.seen if one.chain == "a") / 1e6
    assert worst_ms > 2 and not outcome.is_broken


def test_a_run_whose_pools_an_unbounded_chain_fills_says_so() -> None:
    """The more urgent chain has a bound, and its instances end. Nevertheless such a run is no evidence for the
    bound."""
    (full, large) = (
        FULL_WINDOW[0].replace("_ms = 2\n", "_ms = 4\n"),
        FULL_WINDOW[1].replace("priority = 2", "priority = 10"),
    )
    outcome = simulate_description(system(full, large, mtu=4096, agent=0.5, back=0.5), None, 3, 1, False)
    (seen,) = (one for one in outcome.seen if one.chain == "u")
    assert seen.bound_ns is not None and seen.ended > 0 and not outcome.is_broken
    assert re.fullmatch(r"[\d.]+ ms, but pools were full", seen.wrong)


BRANCHES = (
    chain("c0", 1, 900, "mhm", (8, 6000)),
    *(chain(f"c{n}", n + 1, 900, f"{'ijkl'[n - 1]}m", (6000,), 'branches_from = "c0.b0"') for n in range(1, 5)),
)
SIX_TOLD = tuple(chain(f"c{n}", n + 1, 900, f"{'hijkno'[n]}m", (4000,)) for n in range(6))
ONE_LARGE = (
    chain("map", 2, 900, "gm", (7000,)),
    chain("work", 1, 200, "m", ()).replace("execution_ms = 0.1", "execution_ms = 80"),
)
ORDINARY = (chain("a", 9, 9, "mh", (8,)), chain("u", 2, 500, "gm", (480,)))
BATCH = tuple(chain(f"c{n}", n + 1, 900, f"m{'hijkno'[n]}m", (6000, 8)) for n in range(6))
# If several messages wait for one subscription, every subscription reserves as many slots as its queue may hold.
UNEQUAL = (
    chain("fast", 99, 4, "hm", (46,)).replace("deadline_ms = 4", "deadline_ms = 80"),
    *(
        chain(f"c{n}", n + 100, 400, f"{'ijklnopq'[n]}m", (100,)).replace("execution_ms = 0.1", "execution_ms = 2")
        for n in range(8)
    ),
)
FOUND = {
    "readers reserve what others do not use": lambda: system(*UNEQUAL, baud=2_000_000, back=20),
    "branches of one timer share a window": lambda: system(*BRANCHES, baud=20_000_000, agent=50, back=50),
    "all of a batch share a window": lambda: system(
        *BATCH, baud=20_000_000, agent=50, back=50, board='policy = "batch"'
    ),
    "each fragmented message has a reassembly": lambda: system(*SIX_TOLD),
    "slots hold a message while a callback runs": lambda: system(*ONE_LARGE),
    "nodes hold what is not acknowledged": lambda: system(*ORDINARY, baud=115_200, agent=0.5, back=0.5),
}


def played(of: System, runs: int = 12) -> Outcome:
    return simulate_description(of, None, runs, 1, True)


@pytest.mark.parametrize("what", FOUND)
def test_nothing_is_above_its_bound_with_the_pools_of_the_bound(what: str) -> None:
    described = FOUND[what]()
    assert bounds_of(described).met
    outcome = played(described)
    assert not outcome.is_broken and not outcome.full
    assert all(one.lost == 0 and one.ended > 0 for one in outcome.seen)


# Each description, and pool sizes that are too small for it, as a defect would make them.
TOO_SMALL = [
    ("slots hold a message while a callback runs", {"slots": 4}),  # `tide footprint` writes more (two per reader)
    ("slots hold a message while a callback runs", {"slots": 12}),
    # enough for the frames, but not for what readers reserve
    ("readers reserve what others do not use", {"slots": 29}),
    ("each fragmented message has a reassembly", {"reassemblies": 2}),  # as the simulator once had it
    ("each fragmented message has a reassembly", {"reassemblies": 1}),
    ("slots hold a message while a callback runs", {"reassemblies": 0}),
    ("nodes hold what is not acknowledged", {"small_nodes": 2}),
    ("all of a batch share a window", {"large_nodes": 1}),
]


@pytest.mark.parametrize(("what", "sizes"), TOO_SMALL)
def test_smaller_pools_are_caught(what: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    right = need_of
    monkeypatch.setattr(bounding, "need_of", lambda *of: replace(right(*of), sizes=right(*of).sizes | sizes))
    assert played(FOUND[what]()).is_broken


def _without_windows(document: dict[str, Any]) -> None:
    document["protocol"]["window"] = 1_000_000


def _longer_frames(document: dict[str, Any]) -> None:
    document["line"]["mtu_bytes"] += 4


def _half_windows(document: dict[str, Any]) -> None:
    document["protocol"]["window"] = 32


@pytest.mark.parametrize(
    ("what", "mistake"),
    [
        ("branches of one timer share a window", _without_windows),
        ("branches of one timer share a window", _longer_frames),
        ("branches of one timer share a window", _half_windows),
        ("all of a batch share a window", _without_windows),
        ("all of a batch share a window", _half_windows),
    ],
)
def test_bounds_without_windows_are_caught(
    what: str, mistake: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ask_link

    def broken(document: dict[str, Any]) -> Any:
        changed = copy.deepcopy(document)
        mistake(changed)
        return right(changed)

    monkeypatch.setattr(bounding, "ask_link", broken)
    outcome = played(FOUND[what]())
    assert any(one.is_above for one in outcome.seen)


def test_footprint_writes_what_check_says_and_the_simulator_plays() -> None:
    described = FOUND["slots hold a message while a callback runs"]()
    (need,) = bounds_of(described).needs
    written = pools(client_of(only_board(described, "m"), uses_of(described)))
    assert need.sizes["slots"] == written["TIDE_SLOTS"] == 17
    assert bounds_of(FOUND["readers reserve what others do not use"]()).needs[0].sizes["slots"] == 45
    assert need.sizes["reassemblies"] == written["TIDE_REASSEMBLIES"] == 1
    nodes = FOUND["nodes hold what is not acknowledged"]()
    written = pools(client_of(only_board(nodes, "m"), uses_of(nodes)))
    assert written["TIDE_SMALL_NODES"] > 4  # more than two messages for each writer
    (words,) = (one.text for one in bounds_of(nodes).assumptions if one.id == "pools")
    assert words.startswith(f"board 'm' has at least {written['TIDE_SMALL_NODES']} small nodes of 128 bytes")
    assert "the runtime's defaults are too small: up to 14 of 12 small nodes may be in use" in words


def test_what_piled_up_without_a_bound_arrives_before_a_run_ends() -> None:
    """There are fewer nodes than unacknowledged messages, so publishing waits for a node."""
    slow = chain("slow", 4, 400, "m", ()).replace("execution_ms = 0.1", "execution_ms = 4")
    described = system(chain("late", 5, 4, "mhm", (40, 20)), slow, agent=40, back=40)
    assert bound_ms(bounds_of(described), "late") is None
    outcome = played(described, 3)
    assert not outcome.violations and all(one.ended > 0 for one in outcome.seen)


def test_a_best_effort_message_on_a_slow_line_ends_before_the_run() -> None:
    """A run waits at its end for a message that takes longer than the period of its chain and is never repeated."""
    slow = chain("slow", 5, 146, "mm", (106,)).replace("deadline_ms = 146", "deadline_ms = 600")
    slow = slow.replace('"reliable"', '"best_effort"')
    described = system(slow, baud=9600, mtu=16_000, agent=10)
    assert 146 < (bound_ms(bounds_of(described), "slow") or 0) < 600
    assert all(one.lost == 0 for one in played(described, 3).seen)


def test_bytes_of_a_line_are_escaped_where_any_may_be() -> None:
    """A frame of 330 bytes takes 28 ms, and 56 ms if every byte is escaped."""
    text = described(board("m"), host("h"), line("l", baud=115_200), chain("a", 1, 500, "mh", (300,)))
    outcome = played(parse(text), 3)
    assert outcome.seen[0].worst_ns > 50_000_000 and not outcome.is_broken


def test_a_firmware_that_exists_says_its_sizes(tmp_path: Path) -> None:
    few = system(*ONE_LARGE, board="pools = { slots = 4 }")
    bounds = bounds_of(few)
    assert not bounds.met and bound_ms(bounds, "map") is None
    reason = bounds.chain("map").reason
    assert reason == "up to 17 of 4 slots may be in use; write slots = 17"
    assert bounds_of(system(*ONE_LARGE, board="pools = { slots = 17 }")).met
    assert bounds_of(system(*ONE_LARGE, board="pools = { slots = 22, subscription_depth = 20 }")).met
    deep = bounds_of(system(*ONE_LARGE, chain("b", 3, 500, "gm", (8,)), board="pools = { subscription_depth = 12 }"))
    assert deep.met and deep.needs[0].sizes["slots"] == 2 + 15 + 12
    small = bounds_of(system(*ORDINARY, baud=115_200, board="pools = { window = 4 }"))
    assert bound_ms(small, "a") is None and "a window holds 4" in str(small.chain("a").reason)
    with pytest.raises(SystemFileError, match="is on the host, which has no pools"):
        system(*ONE_LARGE, board='[[executors]]\nname = "x"\nwhere = "host"\npools = { slots = 4 }')


def test_sizes_of_the_runtime_and_the_agent_are_those_of_their_headers() -> None:
    header = (ROOT / "runtime/include/tide/pools.h").read_text(encoding="utf-8")
    for key, value in DEFAULTS.items():
        assert re.search(rf"#define TIDE_{key.upper()} {value}\n", header), key
    limits = (ROOT / "agent/core/limits.h").read_text(encoding="utf-8")
    told = ", ".join(f"{{{size}, {count}}}" for size, count in AGENT_NODES)
    assert f"nodes = {{{{{told}}}}};" in limits
    assert f"reserved_nodes = {AGENT_RESERVED_NODES};" in limits
    assert f"reassembly_bytes = size_t{{2}} * {AGENT_REASSEMBLY_BYTES // 2};" in limits


def test_nodes_of_the_agent_are_counted() -> None:
    """In the agent, ten nodes hold messages of more than 1 kB for one board."""
    crowd = [chain(f"c{n}", n + 1, 3000, f"{'hijknopqrst'[n]}m", (2000,)) for n in range(11)]
    assert bounds_of(system(*crowd[:10])).met
    bounds = bounds_of(system(*crowd))
    assert not bounds.met
    assert "up to 11 messages of more than 1024 bytes to board 'm' may be under way" in str(bounds.chains[0].reason)


def test_unfinished_messages_at_the_agent_are_counted() -> None:
    """A more urgent message is sent between the fragments of another one, so each level may have an unfinished
    message."""
    crowd = [chain(f"c{n}", n + 1, 3000 - n, "mh", (6000 if n < 3 else 60_000,)) for n in range(5)]
    fitting = system(*crowd, baud=3_000_000, mtu=16_000)
    assert bounds_of(fitting).met and not played(fitting, 2).is_broken
    more = [chain(f"c{n}", n + 1, 3000 - n, "mh", (60_000,)) for n in range(3)]
    bounds = bounds_of(system(*more, baud=3_000_000, mtu=16_000))
    assert not bounds.met
    assert "fragments of 3 levels of board 'm' may be unfinished at once, 180036 bytes" in str(bounds.chains[0].reason)


def test_time_between_two_executors_of_the_host_counts_beside_a_board() -> None:
    hops = (chain("a", 2, 500, "mhijm", (100, 8, 8, 8)),)
    least = bound_ms(bounds_of(system(*hops)), "a")
    text = "\n".join(hops).replace('executor = "i"', 'executor = "i"\npropagation_ms = 3')
    one = bounds_of(system(text))
    assert least is not None and bound_ms(one, "a") == pytest.approx(least + 3)
    (told,) = (each for each in one.assumptions if each.id == "dds")
    assert told.values == {"a.b2": 3_000_000, "a.b3": 0}
    (none,) = (each for each in bounds_of(system(*hops)).assumptions if each.id == "dds")
    assert none.text == "DDS takes no time between two executors of the host, as no propagation_ms is given"
    outcome = played(system(text), 4)
    worst_ms = outcome.seen[0].worst_ns / 1e6
    assert not outcome.is_broken and worst_ms > 3


def test_a_default_holds_for_all_hops_but_those_that_say_their_own() -> None:
    hops = chain("a", 2, 500, "hijk", (8, 8, 8)).replace('executor = "k"', 'executor = "k"\npropagation_ms = 1')
    text = f'[system]\nname = "x"\npropagation_ms = 5\n{hops}\n'
    text += "\n".join(f'[[executors]]\nname = "{one}"\nwhere = "host"' for one in "hijk")
    bounds = bounds_of(parse(text))
    assert bound_ms(bounds, "a") == pytest.approx(0.4 + 5 + 5 + 1)
    assert not simulate_description(parse(text), None, 4, 1, True).is_broken


def test_a_last_callback_ends_before_what_it_publishes() -> None:
    described = system(chain("a", 5, 100, "m", (100,)).replace("execution_ms = 0.1", "execution_ms = 1"), baud=115_200)
    assert bound_ms(bounds_of(described), "a") == pytest.approx(1.02)
    assert not played(described, 4).is_broken


def test_the_header_is_for_the_chains_of_the_file(tmp_path: Path) -> None:
    file = ROOT / "tools/tests/data/systems/three_chains.toml"
    out = tmp_path / "pools.h"
    done("footprint", file, "--header", out)
    described = parse(file.read_text(encoding="utf-8"))
    (need,) = bounds_of(described).needs
    assert f"#define TIDE_SMALL_NODES {need.sizes['small_nodes']}\n" in out.read_text(encoding="utf-8")


def test_what_executors_must_keep_is_said_in_numbers() -> None:
    late = chain("a", 1, 10, "gg", (8,)).replace("deadline_ms = 10", "deadline_ms = 40")
    late = (
        late.replace("execution_ms = 0.1", "execution_ms = 2.5")
        + "\n"
        + chain("u", 2, 100, "g", ()).replace("execution_ms = 0.1", "execution_ms = 20")
    )
    told = {one.id: one for one in bounds_of(system(late)).assumptions}
    assert told["depth"].values["a"] >= 3 and "a " + str(told["depth"].values["a"]) in told["depth"].text
    assert told["expiries"].text.startswith("a late timer of a runs once for each expiry")
    fast = (chain("loop", 2, 400, "mhm", (8, 8)),)
    (start,) = (one for one in bounds_of(system(*fast)).assumptions if one.id == "heard_at_start")
    answer_ns = 1_000_000_000 - start.values["silence_ns"]
    assert answer_ns == bounds_of(system(*fast)).chains[0].bound_ns and "the first release of loop" in start.text
    stock = bounds_of(system(*fast, chain("t", 1, 30, "m", ()), board='policy = "batch_stock"'))
    (run,) = (one for one in stock.assumptions if one.id == "timers_run")
    assert run.values == {"event_ns": 30_000_000} and "30 ms at most" in run.text


def test_subscriptions_are_as_deep_as_instances_may_wait() -> None:
    """A command of a node comes every 10 ms and takes 35 ms, so four commands may wait at the board."""
    bounds = bounds_of(system(chain("a", 9, 10, "gm", (12,)), back=35))
    (need,) = bounds.needs
    assert 30 < (bound_ms(bounds, "a") or 0) <= 40
    assert (need.sizes["subscription_depth"], need.sizes["slots"]) == (4, 4 + 2)
    (depth,) = (one for one in bounds.assumptions if one.id == "depth")
    assert depth.values == {"a": 4}
    late = next(one for one in bounds.assumptions if one.id == "over_in_time")
    assert late.values == {"a": 4} and late.text.endswith("several instances under way: a 4")
