# SPDX-License-Identifier: Apache-2.0
"""Priorities in a description become levels: a board or an executor has at most 126 of them, in the same order."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from bounded import refusal
from commands import done
from tide_test_support import each_seed
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.sizing import client_of, only_board
from tide_tools.footprint.program import program
from tide_tools.optimise.choice import Moves, applied, is_ordered
from tide_tools.optimise.search import FewestChanges, Search
from tide_tools.play.boards import BoardsPlayer
from tide_tools.play.host import HostPlayer
from tide_tools.run.plan import plan_of
from tide_tools.system.check import check
from tide_tools.system.fields import CHAIN_PRIORITY_MAXIMUM
from tide_tools.system.levels import levels, levels_of_boards, meetings, names_by_level, priorities_of
from tide_tools.system.load import parse
from tide_tools.system.model import System


def described(chains: list[tuple[str, int, tuple[str, ...], str]], boards: int = 2, hosts: int = 1) -> str:
    """A description. Each chain is given as its name, its priority, an executor for each callback, and other keys of
    its entry."""
    text = '[system]\nname = "drawn"\n'
    for board in range(boards):
        text += f'[[executors]]\nname = "m{board}"\nwhere = "mcu"\nlink = "l{board}"\n'
        text += f'[[links]]\nname = "l{board}"\nkind = "serial"\nbaud = 921600\n'
    text += "".join(f'[[executors]]\nname = "h{host}"\nwhere = "host"\nlanes = 2\n' for host in range(hosts))
    for name, priority, way, more in chains:
        text += f'[[chains]]\nname = "{name}"\npriority = {priority}\nperiod_ms = 1000\ndeadline_ms = 1000\n'
        text += f'reliability = "best_effort"\n{more}\ncallbacks = [\n'
        for place, executor in enumerate(way):
            kind = "subscription" if place or more else "timer"
            text += f'{{ name = "b{place}", kind = "{kind}", executor = "{executor}", execution_ms = 0.01, '
            text += f'publishes = {{ topic = "{name}/t{place}", payload_bytes = 8 }} }},\n'
        text += "]\n"
    return text


def crowd(of_first: int, of_second: int, step: int = 1) -> str:
    """Chains of two boards and an executor of the host. The priorities of the boards are independent."""
    chains = [(f"c{n}", (n + 1) * step, ("m0" if n < of_first else "m1",), "") for n in range(of_first + of_second)]
    return described(chains)


def drawn(seed: int) -> System:
    """A random system. Chains that meet have different priorities; there are few priorities, so others often have equal
    ones."""
    source = random.Random(seed)
    names = ["m0", "m1", "m2", "h0", "h1"]
    most = source.choice((9, 126, 130, 1000, CHAIN_PRIORITY_MAXIMUM))
    used: dict[str, set[int]] = {name: set() for name in names}
    chains = []
    for number in range(source.randint(1, 30)):
        way = tuple(source.choice(names) for _ in range(source.randint(1, 3)))
        priority = source.randint(1, most)
        if all(priority not in used[name] for name in way):
            chains.append((f"c{number}", priority, way, ""))
            for name in way:
                used[name].add(priority)
    return System.model_validate(parse(described(chains, 3, 2)).model_dump())


@each_seed(range(60))
def test_levels_keep_the_order_on_each_executor(seed: int) -> None:
    system = drawn(seed)
    priorities = {chain.name: chain.priority for chain in system.chains}
    for executor in system.executors:
        found = levels(system, executor.name)
        there = {chain.name for chain in system.chains if executor.name in {one.executor for one in chain.callbacks}}
        assert set(found) == there, seed
        assert sorted(found, key=lambda name: found[name]) == sorted(found, key=lambda name: priorities[name]), seed
        assert len(set(found.values())) == len(found) and all(1 <= level <= 126 for level in found.values()), seed
        if all(priorities[name] <= 126 for name in found):
            assert found == {name: priorities[name] for name in found}, seed


def test_equal_priorities_need_chains_that_do_not_meet() -> None:
    apart = [("a", 5, ("m0",), ""), ("b", 5, ("m1",), ""), ("c", 5, ("h0",), ""), ("d", 7, ("m0", "h0", "m1"), "")]
    system = parse(described(apart))
    assert all(bound.bound_ns is not None for bound in bounds_of(system).chains)
    one_board = parse(described([("a", 5, ("m0", "h0"), ""), ("b", 5, ("h1",), ""), ("c", 5, ("h2",), "")], 1, 3))
    assert all(bound.bound_ns is not None for bound in bounds_of(one_board).chains)
    (line,) = refusal(described([*apart, ("e", 7, ("m1", "h0"), "")]))
    assert "chains 'd' and 'e' both have priority 7 and meet on executor 'm1'; give" in line
    assert "system.toml:" in line and "\n" not in line


def test_a_chain_that_branches_comes_to_the_executors_of_what_it_follows() -> None:
    chains = [
        ("a", 5, ("h0", "h1"), ""),
        ("b", 6, ("h1",), 'branches_from = "a.b0"'),
        ("c", 8, ("h0",), 'branches_from = "b.b0"'),
    ]
    system = parse(described(chains, 0, 2))
    there = {name: [chain.name for chain in of] for name, of in meetings(system).items()}
    assert there == {"h0": ["a", "b", "c"], "h1": ["a", "b", "c"]}
    chains[2] = ("c", 5, ("h0",), 'branches_from = "b.b0"')
    assert "both have priority 5 and meet on executor 'h0'" in refusal(described(chains, 0, 2))[0]
    first = system.chains[0].callbacks[0]
    assert priorities_of(system)[id(first)] == 8 << 8  # the priority of the most urgent chain that it starts


def test_a_board_has_126_levels_and_a_description_more() -> None:
    whole = parse(crowd(126, 126))
    assert set(levels(whole, "m1").values()) == set(range(1, 127))
    assert levels_of_boards(whole) == {name: levels(whole, name) for name in ("m0", "m1")}
    (line,) = refusal(crowd(127, 1))
    assert "executor 'm0' has chains of 127 priorities, and there are 126 levels; move chains to another one" in line


def test_whoever_executes_takes_the_same_levels(tmp_path: Path) -> None:
    chains = [
        ("a", 900, ("m0",), ""),
        ("b", 20, ("m0", "h0", "m1"), ""),
        ("c", 900, ("m1",), ""),
        ("d", 3, ("m1",), ""),
    ]
    system = parse(described(chains))
    assert levels_of_boards(system) == {"m0": {"a": 2, "b": 1}, "m1": {"b": 2, "c": 3, "d": 1}}
    player = BoardsPlayer(system, "described", 0, random.Random(1))
    words = player.words(player.drawn())
    assert re.findall(r"name=(c\d+b\d+) on=(board\d) execution_us=\d+ level=(\d+)", words) == [
        *(("c0b0", "board0", "2"), ("c1b0", "board0", "1"), ("c1b2", "board1", "2")),
        *(("c2b0", "board1", "3"), ("c3b0", "board1", "1")),
    ]
    second = program(client_of(only_board(system, "m1")))
    assert re.findall(r'tide_chain_init\(&chains\[\d\], "(\w)", (\d)', second) == [("b", "2"), ("c", "3"), ("d", "1")]
    assert {one.name: one.level for one in plan_of(system, system.executor("m1"), 1)} == {"b": 2, "c": 3, "d": 1}
    assert names_by_level(system, "m1") == {2: "b", 3: "c", 1: "d"}
    assert names_by_level(system) == {3: "c", 20: "b"}  # 1 and 2 are those of chains on other boards
    file = tmp_path / "system.toml"
    file.write_text(described(chains))
    assert re.search(r"c\s+900\s+3\s", done("show", file, "--as", "levels", "--executor", "m1"))


def test_a_chain_of_the_host_alone_needs_no_level_of_a_board() -> None:
    chains = [(f"c{n}", n + 1, ("m0",), "") for n in range(126)] + [("host", 126, ("h0",), ""), ("n", 5, ("m1",), "")]
    system = parse(described(chains))
    player = BoardsPlayer(system, "described", 0, random.Random(1))
    assert re.search(r"name=c126b0 on=host1 execution_us=\d+ period_us", player.words(player.drawn()))


def test_the_host_has_as_many_levels_where_executors_go_by_priority() -> None:
    system = parse(described([(f"c{n}", n + 1, ("h0",), "") for n in range(127)], 0))
    assert bounds_of(system).chains[0].bound_ns is not None  # ready sets have no order
    with pytest.raises(NoBoundError) as caught:
        bounds_of(system, "priority")
    assert "executor 'h0' has chains of 127 priorities" in caught.value.findings[0].what
    player = HostPlayer(system, "default", random.Random(1))
    assert player.words(player.drawn()).count("path=") == 127
    fewer = system.with_chains(system.chains[:126])
    assert bounds_of(fewer, "priority").chains[0].bound_ns is not None


def test_a_search_exchanges_no_priorities_of_chains_that_would_meet() -> None:
    """Both boards have the same three priorities. On the first board, the least urgent chain is late."""
    text = described([(f"{'xy'[board]}{n}", n + 1, (f"m{board}",), "") for board in (0, 1) for n in (0, 1, 2)])
    text = text.replace("deadline_ms = 1000", "deadline_ms = 12", 1)
    for chain in ("x1", "x2"):
        head, _, rest = text.partition(f'name = "{chain}"')
        text = f'{head}name = "{chain}"{rest.replace("execution_ms = 0.01", "execution_ms = 8", 1)}'
    system = parse(text)
    assert [bound.name for bound in bounds_of(system).chains if not bound.met] == ["x0"]
    moves = Moves(system, keep_lanes=True)
    search = Search(system, 1, 200, moves=moves)
    found = FewestChanges(system, search, moves).run()
    assert found.score.feasible and not check(applied(system, found.choice))
    assert all(is_ordered(system, choice) for choice in search._known)
    assert found.choice.priorities == (3, 1, 2, 1, 2, 3)
