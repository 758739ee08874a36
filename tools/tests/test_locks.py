# SPDX-License-Identifier: Apache-2.0
"""Locks between callbacks: refusals name their line, and what locks cost on a board and on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from bounded import MS, all_ns, bound_ns, bound_of, refusal
from commands import done
from descriptions import board, chain, host, line
from tide_tools.analysis.result import ChainBound
from tide_tools.system.load import parse

BOARD = board("board", lanes=3)
LINE = line("line", baud=115200)


def _chain(name: str, priority: int, executor: str, execution_ms: float, more: str = "") -> str:
    return f"{chain(name, priority, (executor, execution_ms, {'name': 'run'}))}{more}\n"


def _lock(*sections: tuple[str, float], name: str = "map") -> str:
    taken = ", ".join(f'{{ callback = "{callback}", section_ms = {time} }}' for callback, time in sections)
    return f'[[locks]]\nname = "{name}"\nsections = [{taken}]\n'


def _system(*parts: str) -> str:
    return "\n".join(('[system]\nname = "s"\n', *parts))


def _parts(bound: ChainBound) -> dict[str, int]:
    told: dict[str, int] = {}
    for part in bound.parts:
        told[part.kind] = told.get(part.kind, 0) + part.value_ns
    return told


THREE = (_chain("high", 9, "board", 10), _chain("middle", 5, "board", 20), _chain("low", 1, "board", 30))


def test_a_chain_up_to_the_ceiling_waits_for_the_longest_section_below_it() -> None:
    locks = (_lock(("high.run", 1), ("low.run", 4)), _lock(("middle.run", 6), ("low.run", 2), name="log"))
    plain = parse(_system(BOARD, LINE, *THREE))
    locked = parse(_system(BOARD, LINE, *THREE, *locks))
    extra = {name: bound_ns - all_ns(plain)[name] for name, bound_ns in all_ns(locked).items()}
    # `high` waits for the 4 ms of `low` in `map`, but not for the 6 ms of `middle` in `log`, whose ceiling is below
    # `high`. `middle` waits for the same 4 ms, because `low` is as urgent as `high` then. No chain is less urgent than
    # `low`.
    assert extra == {"high": 4 * MS, "middle": 4 * MS, "low": 0}
    assert _parts(bound_of(locked, "middle"))["lock_blocking"] == 4 * MS
    assert "lock_blocking" not in _parts(bound_of(locked, "low"))


def test_callbacks_that_do_not_overlap_never_wait() -> None:
    board = BOARD.replace("lanes = 3", "lanes = 1")
    plain = _system(board, LINE, *THREE)
    assert all_ns(plain) == all_ns(f"{plain}\n{_lock(('high.run', 1), ('low.run', 4))}")


def test_on_the_host_each_other_lane_is_before_it_once() -> None:
    chains = [_chain(name, place + 1, "one", 10) for place, name in enumerate("abc")] + [_chain("d", 9, "two", 10)]
    lock = _lock(("a.run", 1), ("b.run", 2), ("c.run", 3), ("d.run", 4))
    system = parse(_system(host("one", lanes=2), host("two", lanes=1), *chains, lock))
    # `d` waits for the longest sections of two lanes, 3 and 2 ms; `a` for that of one other lane, 3 ms, and that of the
    # lane of the other executor.
    assert _parts(bound_of(system, "d"))["lock_wait"] == 5 * MS
    assert bound_ns(system, "d") == 15 * MS
    assert _parts(bound_of(system, "a"))["lock_wait"] == 7 * MS


def test_an_accelerator_with_a_queue_is_a_lock_for_the_time_of_its_service(tmp_path: Path) -> None:
    """Camera and lidar have executors of their own, and mapping shares that of the lidar. Each of them waits once for
    the longest section of every other lane. A run stays below the bounds."""
    chains = [_chain("camera", 9, "one", 15), _chain("lidar", 5, "two", 22), _chain("map", 1, "two", 9)]
    gpu = _lock(("camera.run", 12), ("lidar.run", 20), ("map.run", 6), name="gpu")
    text = _system(host("one", lanes=1), host("two", lanes=1), *chains, gpu)
    waits = {name: _parts(bound_of(parse(text), name))["lock_wait"] for name in ("camera", "lidar", "map")}
    assert waits == {"camera": 20 * MS, "lidar": 12 * MS, "map": 12 * MS}
    assert bound_ns(text, "camera") == (15 + 20) * MS
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    done("simulate", file, "--runs", "4")


def test_a_reentrant_callback_waits_for_itself_and_an_exclusive_group_for_nobody_of_it() -> None:
    groups = '[[groups]]\nname = "r"\nkind = "reentrant"\n[[groups]]\nname = "x"\nkind = "exclusive"\n'
    chains = [_chain("a", 3, "one", 10, 'group = "r"')]
    chains += [_chain(name, place + 1, "one", 10, 'group = "x"') for place, name in enumerate("bc")]
    lock = _lock(("a.run", 1), ("b.run", 2), ("c.run", 3))
    system = parse(_system(host("one", lanes=3), groups, *chains, lock))
    assert _parts(bound_of(system, "a"))["lock_wait"] == 5 * MS  # `a` waits for `b` and `c` on the other lanes
    # `b` waits for `a` on both, but not for `c` of its own group
    assert _parts(bound_of(system, "b"))["lock_wait"] == 2 * MS


@pytest.mark.parametrize(
    ("lock", "what"),
    [
        (_lock(("a.run", 1), ("x.run", 1)), "there is no chain 'x'"),
        (_lock(("a.run", 1), ("b.stop", 1)), "chain 'b' has no callback 'stop' of its own"),
        (_lock(("a.run", 1), ("a.run", 2)), "'a.run' is listed twice in lock 'map', but takes it once per run"),
        (_lock(("a.run", 11), ("b.run", 2)), "'a.run' holds locks for 11 ms and runs for 10 ms"),
        (_lock(("a.run", 1), ("m.run", 2)), "which share no memory"),
        (_lock(("m.run", 1), ("n.run", 2)), "which share no memory"),
        (_lock(("a.run", 1), ("p.run", 2)), "'run' may lose its budget while it has lock 'map'"),
        (_lock(("a.run", 1), ("b.run", 1)) * 2, "there are two locks named 'map'"),
    ],
)
def test_what_is_impossible_is_told_with_its_line(lock: str, what: str) -> None:
    hosts = (host("one", lanes=2), host("poor", budget_ms=5, budget_period_ms=10))
    boards = BOARD + BOARD.replace('"board"', '"other"').replace('"mcu"', '"mcu"\nlink = "second"')
    links = LINE + LINE.replace('"line"', '"second"')
    places = (("a", "one"), ("b", "one"), ("m", "board"), ("n", "other"), ("p", "poor"))
    chains = [_chain(name, place + 1, executor, 10) for place, (name, executor) in enumerate(places)]
    head = _system(*hosts, boards.replace('name = "board"', 'name = "board"\nlink = "line"'), links, *chains)
    parse(head)
    first = head.count("\n") + 2
    (line,) = (one for one in refusal(head + "\n" + lock) if what in one)
    assert int(line.split(":")[1]) >= first


def test_check_prints_the_part_and_what_is_supposed(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(_system(BOARD, LINE, *THREE, _lock(("high.run", 1), ("low.run", 4))))
    told = done("check", file, "--explain", "high", COLUMNS="200")
    assert "a less urgent callback that holds a lock" in told
    whole = done("check", file, "--details", COLUMNS="200")
    assert "one at a time, for section_ms at most" in " ".join(whole.split())


@pytest.mark.parametrize("place", ["host", "board"])
def test_a_simulated_run_takes_the_locks_and_stays_below_the_bounds(tmp_path: Path, place: str) -> None:
    file = tmp_path / "system.toml"
    if place == "board":
        text = _system(BOARD, LINE, *THREE, _lock(("high.run", 1), ("low.run", 4)))
    else:
        chains = [_chain(name, number + 1, "one", 10) for number, name in enumerate("abc")]
        text = _system(host("one", lanes=2), *chains, _lock(("a.run", 8), ("b.run", 9), ("c.run", 7)))
    file.write_text(text)
    done("simulate", file, "--search", COLUMNS="200")


def test_chains_that_are_left_out_take_no_locks() -> None:
    system = parse(_system(BOARD, LINE, *THREE, _lock(("high.run", 1), ("low.run", 4))))
    left = system.with_chains(tuple(one for one in system.chains if one.name != "high"))
    assert [[one.callback for one in lock.sections] for lock in left.locks] == [[("low", "run")]]
