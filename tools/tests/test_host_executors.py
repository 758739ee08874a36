# SPDX-License-Identifier: Apache-2.0
"""Host executors by the names of ROS 2: each name has the bound that is proved for its order, or none. Commands play or
refuse it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import descriptions as d
from commands import done, tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.system.load import load, parse
from tide_tools.system.model import System

checked = partial(tide, "check")
GROUP = {"group": "mutex"}
MUTEX = d.entry("groups", name="mutex", kind="exclusive")


def of(policy: str | None, *parts: str, **more: object) -> System:
    return parse(d.described(d.host("h", policy=policy, **more), *parts))


def ms(system: System, chain: str, executor: str | None = None) -> float | None:
    bound_ns = bounds_of(system, executor).chain(chain).bound_ns
    return None if bound_ns is None else bound_ns / 1e6


def crowd() -> tuple[str, ...]:
    """A rare timer beside two frequent ones."""
    frequent = d.chain("eight", 2, ("h", 4), period_ms=8), d.chain("seven", 3, ("h", 3), period_ms=7)
    return d.chain("rare", 1, ("h", 1)), *frequent


def played() -> tuple[str, ...]:
    """A chain of one callback beside a chain of four, and another timer."""
    four = d.chain("four", 2, ("h", 2), ("h", 3), ("h", 4), ("h", 2))
    return d.chain("one", 1, ("h", 1)), four, d.chain("often", 3, ("h", 3), period_ms=30)


@pytest.mark.parametrize(
    ("policy", "model", "bound_ms"),
    [
        ("single_threaded", "wait_set", 2 * (3 + 4) + 1),  # each once in the rest of a set, and in the next one
        ("events", "fifo", 3 + 4 + 1),  # what has expired before
        ("events_cbg", "any_order", 5 * 3 + 4 * 4 + 1),  # all that expires until the callback begins
    ],
)
def test_a_name_has_the_bound_of_its_order(policy: str, model: str, bound_ms: float) -> None:
    system = of(policy, *crowd())
    bounds = bounds_of(system)
    assert ms(system, "rare") == bound_ms
    assert bounds.executor == "described"
    assert [one.model for one in bounds.models] == [model]
    same = {"single_threaded": "rclcpp", "events": "events", "events_cbg": "any_order"}
    assert ms(of(None, *crowd()), "rare", same[policy]) == bound_ms
    assert ms(system, "seven", "priority") == 3 + 4 - 1e-6  # --executor overrides the file


def test_executors_of_one_description_have_different_orders() -> None:
    """Only the executor with priorities lets the urgent chain go first."""
    parts = [d.host("a", policy="tide"), d.host("b", policy="events_cbg")]
    for name in "ab":
        parts += [d.chain(f"{name}_urgent", 2, (name, 1)), d.chain(f"{name}_long", 1, (name, 9), (name, 9))]
    system = parse(d.described(*parts))
    assert {one.executor: one.model for one in bounds_of(system).models} == {"a": "priority", "b": "any_order"}
    assert (ms(system, "a_urgent"), ms(system, "b_urgent")) == (1 + 9 - 1e-6, 1 + 18)


def starving(policy: str | None, long_ms: int = 500) -> System:
    """The set of Thread Carefully (EMSOFT 2024): two timers of 500 ms occupy both threads, then a third one of 500 ms
    runs while the fourth, of its group, is dropped from the wait set."""
    timers = [("t1", long_ms, {}), ("t2", long_ms, {}), ("t3", long_ms, GROUP), ("t4", 10, GROUP)]
    chains = [
        d.chain(name, number, ("h", execution_ms, more), period_ms=1000)
        for number, (name, execution_ms, more) in enumerate(timers, 1)
    ]
    return of(policy, MUTEX, *chains, lanes=2)


def test_the_sets_that_starve_rclcpp_have_no_bound_for_it() -> None:
    bounds = bounds_of(starving("multi_threaded"))
    assert not bounds.met
    for one in bounds.chains:  # they share the executor, and nothing limits when a starved chain runs
        assert one.bound_ns is None and one.root is not None
        assert one.root.kind == "starvation" and "exclusive group 'mutex'" in one.root.what
    # ros2/rclcpp#2360: two timers that exclude each other
    two = [d.chain(f"t{n}", n, ("h", 450, GROUP), period_ms=1000) for n in (1, 2)]
    assert ms(of("multi_threaded", MUTEX, *two, lanes=2), "t1") is None
    # If each group has one callback, none is dropped.
    apart = [d.chain("t1", 1, ("h", 450, GROUP), period_ms=1000), d.chain("t2", 2, ("h", 450), period_ms=1000)]
    assert ms(of("multi_threaded", MUTEX, *apart, lanes=2), "t1") == 450


def test_a_queue_of_groups_loses_none_and_is_bounded_above_its_schedule() -> None:
    """With all four released at once: the first two until 300 ms, the third until 600 ms, then the fourth. At the
    published load, the bound for any order on two threads does not settle."""
    system = starving("events_cbg", 300)
    assert all(one.bound_ns is not None for one in bounds_of(system).chains)
    assert (ms(system, "t4") or 0) >= 610
    assert (ms(system, "t3") or 0) >= 600
    assert "starve" not in bounds_of(system).models[0].text
    assert {one.root.kind for one in bounds_of(starving("events_cbg")).chains if one.root} == {"too_long"}


def isolated(**more: object) -> System:
    chain = d.chain("control", 2, ("h", 2, GROUP), ("h", 3))
    return of("callback_isolated", MUTEX, chain, d.chain("log", 1, ("h", 90), period_ms=100), **more)


def test_each_group_of_isolated_callbacks_has_a_thread() -> None:
    system = isolated(scheduling="fifo")
    assert (ms(system, "control"), ms(system, "log")) == (5, 90)  # on one thread, 95 of 100 ms would be busy
    assert [one.executor for one in bounds_of(system).models] == ["h:mutex", "h:control.b1", "h:log.b0"]
    # A message between two threads takes propagation_ms.
    text = d.described(d.host("h", policy="callback_isolated", scheduling="fifo"), MUTEX)
    text += d.chain("control", 2, ("h", 2, GROUP), ("h", 3, {"propagation_ms": 7}))
    assert ms(parse(text), "control") == 12
    # Callbacks of one group share its thread.
    both = [d.chain(name, n, ("h", 10 * n, GROUP)) for n, name in enumerate(("a", "b"), 1)]
    assert ms(of("callback_isolated", MUTEX, *both, scheduling="fifo"), "a") == 30


def test_threads_with_budgets_are_bounded_and_fair_ones_are_not() -> None:
    budget = {"budget_ms": 5, "budget_period_ms": 10}
    chain = d.chain("control", 2, ("h", 2, GROUP), ("h", 3))
    deadline = of("callback_isolated", MUTEX, chain, scheduling="deadline", **budget)
    assert (ms(deadline, "control") or 0) > 5
    for scheduling in (None, "other"):
        bounds = bounds_of(isolated(scheduling=scheduling))
        for one in bounds.chains:
            assert one.root is not None and one.root.kind == "fair" and one.root.path == ("executors", 0)
            assert "SCHED_OTHER" in one.root.what and "'h'" in one.root.what
    # What has nothing to do with these threads keeps its bound.
    text = d.described(d.host("h", policy="callback_isolated"), d.host("other"), d.chain("a", 1, ("h", 1)))
    system = parse(text + d.chain("b", 2, ("other", 1)))
    assert (ms(system, "a"), ms(system, "b")) == (None, 1)


def test_beside_a_board_the_names_that_have_no_bound_have_none() -> None:
    def mixed(**host: object) -> System:
        chains = [d.chain(name, n, ("board", 1), ("h", 5, GROUP)) for n, name in enumerate(("a", "b"), 1)]
        return parse(d.described(d.board("board"), d.host("h", **host), MUTEX, d.line("uart"), *chains))

    assert ms(mixed(lanes=2), "a") is not None
    assert ms(mixed(lanes=2, policy="events_cbg"), "a") == ms(mixed(lanes=2), "a")
    assert ms(mixed(lanes=2, policy="multi_threaded"), "a") is None
    assert ms(mixed(policy="callback_isolated"), "a") is None
    assert ms(mixed(policy="callback_isolated", scheduling="fifo"), "a") == ms(mixed(), "a")


@pytest.mark.parametrize(
    ("host", "groups", "what"),
    [
        ({"policy": "batch"}, "", "'h' is on the host, which has no executor 'batch'; use one of: tide, single_thr"),
        ({"policy": "events", "lanes": 2}, "", "which has one thread, and has 2 lanes; remove it, or write policy = "),
        ({"policy": "single_threaded", "lanes": 3}, "", 'policy = "multi_threaded"'),
        ({"scheduling": "fifo"}, "", "'scheduling', which is for callback_isolated only"),
        ({"policy": "callback_isolated", "lanes": 2}, "", "has lanes, but callback_isolated has a thread for each"),
        (
            {"policy": "callback_isolated", "scheduling": "deadline"},
            "",
            "has no budget_ms, and its threads have SCHED_D",
        ),
        (
            {"policy": "callback_isolated", "scheduling": "fifo", "budget_ms": 1, "budget_period_ms": 2},
            "",
            'do not have SCHED_DEADLINE; write scheduling = "deadline"',
        ),
        (
            {"policy": "callback_isolated"},
            MUTEX.replace("exclusive", "reentrant"),
            "gives each group one thread; make it",
        ),
    ],
)
def test_what_a_name_does_not_have_is_refused(host: dict[str, object], groups: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    step = ("h", 1, GROUP) if groups else ("h", 1)
    file.write_text(d.described(d.host("h", **host), groups, d.chain("a", 1, step)), encoding="utf-8")
    status, output = checked(file)
    assert status == 2 and what in " ".join(output.split()) and f"{file}:" in output


def test_a_board_has_no_executor_of_the_host(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    text = d.described(d.board("m", policy="events"), d.line("uart"), d.chain("a", 1, ("m", 1)))
    file.write_text(text, encoding="utf-8")
    status, output = checked(file)
    assert status == 2 and "'m' is on a board, which has no executor 'events'" in " ".join(output.split())


def test_an_overloaded_thread_is_named(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    both = [d.chain(name, n, ("h", 60, GROUP)) for n, name in enumerate(("a", "b"), 1)]
    host = d.host("h", policy="callback_isolated", scheduling="fifo")
    file.write_text(d.described(host, MUTEX, *both), encoding="utf-8")
    status, output = checked(file)
    assert status == 2 and f"{file}:3: executor 'h:mutex' has to give 120 % of a core, but is one thread" in output


@pytest.mark.parametrize("policy", ["single_threaded", "events", "events_cbg", "multi_threaded", "tide"])
def test_the_simulator_stays_below_the_bounds_of_a_name(policy: str, tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(d.described(d.host("h", policy=policy), *played()), encoding="utf-8")
    told = json.loads(done("simulate", file, "--search", "--runs", "20", "--json"))
    worst = {one["chain"]: (one["max_ns"], one["bound_ns"]) for one in told["observed"]}
    assert all(0 < seen <= bound for seen, bound in worst.values())


def test_the_simulator_keeps_expired_timers_in_the_wait_set(tmp_path: Path) -> None:
    """In the same runs, timers that enter a set as they expire are above the bound for a wait set."""
    text = (Path(__file__).parent / "data/check/live_timers_in_a_ready_set.toml").read_text(encoding="utf-8")
    file = tmp_path / "system.toml"
    file.write_text(text.replace('where = "host"', 'where = "host"\npolicy = "single_threaded"'), encoding="utf-8")
    (cached,) = [one for one in bounds_of(load(file)).chains if one.name == "victim"]
    told = json.loads(done("simulate", file, "--search", "--json"))
    worst = {one["chain"]: one["max_ns"] for one in told["observed"]}
    assert worst["victim"] <= (cached.bound_ns or 0)
    file.write_text(text, encoding="utf-8")
    live = json.loads(done("simulate", file, "--search", "--json"))
    assert {one["chain"]: one["max_ns"] for one in live["observed"]}["victim"] > (cached.bound_ns or 0)


def test_the_simulator_plays_isolated_threads(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    both = [d.chain(name, n, ("h", 10 * n, GROUP), ("h", 50)) for n, name in enumerate(("a", "b"), 1)]
    host = d.host("h", policy="callback_isolated", scheduling="fifo")
    file.write_text(d.described(host, MUTEX, *both), encoding="utf-8")
    told = json.loads(done("simulate", file, "--search", "--runs", "20", "--json"))
    worst = {one["chain"]: one["max_ns"] for one in told["observed"]}
    assert 60_000_000 < worst["a"] <= 80_000_000  # on one thread, 120 of each 100 ms would be busy


def test_a_queue_with_two_instances_of_a_chain_is_not_played(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    slow = d.chain("slow", 1, ("h", 30), period_ms=100)
    fast = d.chain("fast", 2, ("h", 1), period_ms=20, deadline_ms=100)
    file.write_text(d.described(d.host("h", policy="events"), slow, fast), encoding="utf-8")
    status, output = tide("simulate", file)
    output = " ".join(output.split())
    assert status == 2 and f"{file}:6: the simulator cannot play it: two instances of chain 'fast' may be in" in output


def test_a_run_refuses_what_it_would_play_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(d.described(d.host("h", policy="single_threaded"), d.chain("a", 1, ("h", 1))), encoding="utf-8")
    status, output = tide("run", file)
    output = " ".join(output.split())
    assert status == 2 and "tide run plays executor 'h' as one queue, not as single_threaded; add the command" in output


def test_the_described_executors_are_compared_with_the_others(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(d.described(d.host("h", policy="events_cbg"), *crowd()), encoding="utf-8")
    compared = json.loads(checked(file, "--compare", "--json")[1])["compared"]
    told = {one["executor"]: next(c["bound_ns"] for c in one["chains"] if c["name"] == "rare") for one in compared}
    assert list(told) == ["described", "default", "priority", "rclcpp", "events", "any_order"]
    assert told["described"] == told["any_order"] > told["rclcpp"] > told["events"]


def test_show_names_executors_and_optimise_keeps_their_threads(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    chains = [d.chain("a", 1, ("h", 30), deadline_ms=40), d.chain("b", 2, ("h", 30), deadline_ms=40)]
    for policy, answer in (("multi_threaded", 0), ("events", 1)):
        file.write_text(d.described(d.host("h", policy=policy), *chains), encoding="utf-8")
        assert f"executor h: {policy}" in done("show", file)
        status, output = tide("optimise", file, "--dry-run", "--cores", "2")
        assert status == answer, output
        assert ("lanes = 2" in output) == (answer == 0)


# ---- threads on one core ----


def on_core(*more: str, **plan: object) -> str:
    """An urgent thread and a less urgent one on core 2."""
    control = d.host("control", policy="single_threaded", core=2, thread_priority=80)
    slow = d.host("plan", **{"policy": "events", "core": 2, "thread_priority": 20, **plan})
    chains = d.chain("fast", 1, ("control", 2), period_ms=10), d.chain("slow", 2, ("plan", 30))
    return d.described(control, slow, *chains, *more)


def test_a_more_urgent_thread_preempts_and_a_less_urgent_one_takes_nothing() -> None:
    system = parse(on_core())
    assert (ms(system, "fast"), ms(system, "slow")) == (2, 30 + 4 * 2)
    parts = {one.kind: one.value_ns for one in bounds_of(system).chain("slow").parts}
    assert parts == {"preemption": 8_000_000, "last_callback": 30_000_000}
    assert bounds_of(system).chain("slow").depends_on == ("fast",)
    text = next(one.text for one in bounds_of(system).assumptions if one.id == "shared_cores")
    assert "core 2: control 80, plan 20" in text
    other = parse(on_core(core=3))
    assert (ms(other, "fast"), ms(other, "slow")) == (2, 30)
    # On the other core, the order of the priorities turns the interference round.
    turned = parse(on_core(thread_priority=90))
    assert (ms(turned, "fast"), ms(turned, "slow")) == (32, 30)


def test_what_releases_late_on_a_more_urgent_thread_comes_closer_together() -> None:
    """The urgent thread's segment is released within 6 ms, by a chain of another core. So 3 of its runs, not 2, fall
    into the 11 ms of the slow callback and these runs."""
    first = d.host("sensor", core=1, thread_priority=50)
    chain = d.chain("fused", 3, ("sensor", 6), ("control", 1), period_ms=8)
    system = parse(on_core(first, chain).replace("execution_ms = 30", "execution_ms = 5"))
    assert ms(system, "fused") == 6 + 1 + 2  # behind `fast` on its thread
    slow_ms = ms(system, "slow")
    assert slow_ms is not None and slow_ms > 5 + 2 * 1 + 2 * 2


def test_a_priority_without_a_core_has_no_bound() -> None:
    system = parse(
        d.described(
            *(d.host("h", thread_priority=50), d.host("o"), d.host("p", core=1, thread_priority=9)),
            *(d.host("u", core=2, thread_priority=90), d.chain("a", 1, ("h", 1)), d.chain("b", 2, ("o", 1))),
            *(d.chain("c", 3, ("p", 1)), d.chain("e", 4, ("u", 1))),
        )
    )
    assert (ms(system, "b"), ms(system, "c"), ms(system, "e")) == (None, None, 1)  # e's thread is more urgent
    root = bounds_of(system).chain("a").root
    assert root == bounds_of(system).chain("b").root == bounds_of(system).chain("c").root
    assert root is not None and root.kind == "global" and root.path == ("executors", 0, "thread_priority")
    assert "add core = N" in root.what


def test_groups_pin_the_threads_of_isolated_callbacks() -> None:
    group = MUTEX + "core = 2\nthread_priority = 60\n"
    host = d.host("h", policy="callback_isolated", scheduling="fifo", core=2, thread_priority=10)
    chains = d.chain("control", 2, ("h", 2, GROUP), period_ms=10), d.chain("log", 1, ("h", 30))
    system = parse(d.described(host, group, *chains))
    assert (ms(system, "control"), ms(system, "log")) == (2, 38)
    assert ms(system, "log", "any_order") == 2 + 30  # --executor overrides the threads: one, without preemption


def test_beside_a_board_threads_on_one_core_are_one_lane() -> None:
    def mixed(core: int) -> System:
        hosts = d.host("a", core=1, thread_priority=9), d.host("b", core=core, thread_priority=3)
        chains = d.chain("x", 1, ("board", 1), ("a", 5)), d.chain("y", 2, ("board", 1), ("b", 4))
        return parse(d.described(d.board("board"), *hosts, d.line("uart"), *chains))

    apart, shared = mixed(2), mixed(1)
    for name, more_ms in (("x", 4), ("y", 5)):
        alone_ms, together_ms = ms(apart, name), ms(shared, name)
        assert alone_ms is not None and together_ms is not None and together_ms >= alone_ms + more_ms - 1e-6
    assert "any_order" in bounds_of(shared).chain("x").holds_for


GROUPED = d.chain("grouped", 3, ("plan", 1, GROUP))
SECTIONS = [{"callback": f"{one}.b0", "section_ms": 1} for one in ("fast", "slow")]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (on_core(thread_priority=80), "'control' and 'plan' have one thread_priority on core 2; give each its own"),
        (on_core(thread_priority=None), "'plan' shares core 2 and has no thread_priority; add one, or another core"),
        (
            on_core(policy=None, lanes=2),
            "'plan' has 'core', which is for one thread, and has 2 lanes; describe an exec",
        ),
        (
            on_core(budget_ms=1, budget_period_ms=2),
            "'plan' has a budget and 'core': a thread has one kind of scheduling",
        ),
        (on_core(policy="callback_isolated"), 'its threads do not have SCHED_FIFO; write scheduling = "fifo"'),
        (
            on_core(MUTEX + "core = 1\n", GROUPED),
            "group 'mutex' has 'core', which is for groups of callback_isolated executors",
        ),
        (
            on_core().replace("execution_ms = 30", "execution_ms = 90"),
            "core 2 has to give 110 % of itself to control, ",
        ),
        (
            on_core(d.entry("locks", name="l", sections=SECTIONS)),
            "'fast.b0' may be preempted on its core while it has lock 'l', for which there is no bound; give its ",
        ),
    ],
)
def test_what_a_core_does_not_have_is_refused(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    status, output = checked(file)
    assert status == 2 and what in " ".join(output.split()) and f"{file}:" in output


def test_the_simulator_plays_threads_on_one_core(tmp_path: Path) -> None:
    """Preempted by each run of `fast`, `slow` takes as long as its bound; without preemption it takes less."""
    file = tmp_path / "system.toml"
    file.write_text(on_core(), encoding="utf-8")
    told = json.loads(done("simulate", file, "--search", "--runs", "20", "--json"))
    worst = {one["chain"]: one["max_ns"] for one in told["observed"]}
    assert worst == {"fast": 2_000_000, "slow": 38_000_000}
    assert "core 2 of the host: control 80, plan 20" in done("show", file)
    status, output = tide("run", file)
    assert status == 2 and "not a part of a core; add the command" in " ".join(output.split())
