# SPDX-License-Identifier: Apache-2.0
"""The analysis as a library in this process: its answers and refusals, that results cannot be changed, and that other
threads run meanwhile."""

from __future__ import annotations

import ast
import os
import random
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tide_tools.analysis import native

ROOT = Path(__file__).parents[2]
SYSTEMS = 60
Document = dict[str, Any]


def host_system(draw: random.Random) -> Document:
    policy = draw.choice(["priority", "default"])
    lanes = [{"budget_ns": draw.randint(2, 4), "period_ns": 4} for _ in range(draw.randint(1, 3))]
    executors = [{"name": name, "policy": policy, "lanes": lanes} for name in ("first", "second")]
    grouped = draw.random() < 0.5
    groups = [{"name": "lock", "executor": "first"}] if grouped else []
    chains = []
    for number in range(draw.randint(2, 5)):
        callbacks: list[Document] = []
        for place in range(draw.randint(1, 4)):
            callbacks.append({"name": f"b{place}", "execution_ns": draw.randint(1, 5)})
            if grouped and number and draw.random() < 0.3:
                callbacks[-1]["group"] = "lock"
        period_ns = draw.randint(20, 200)
        chains.append(
            {
                "name": f"c{number}",
                "executor": "first" if number else "second",
                "priority": number,
                "period_ns": period_ns if number > 1 else 100,
                "deadline_ns": period_ns * draw.choice([1, 1, 2]),
                "jitter_ns": draw.choice([0, 0, 7]) if number > 1 else 0,
                "timer": draw.random() < 0.5,
                "callbacks": callbacks,
            }
        )
    paths = [{"name": "both", "segments": ["c0", "c1"], "delays_ns": [3], "deadline_ns": 300}]
    return {"executors": executors, "groups": groups, "chains": chains, "paths": paths}


def link_system(draw: random.Random) -> Document:
    chains = []
    for priority in range(draw.randint(1, 4)):
        reliable = draw.random() < 0.5
        places = ["client", *draw.choice([["host", "client"], ["host"], []])]
        callbacks = [
            {"name": f"b{place}", "executor": on, "execution_ns": draw.randint(0, 9_000_000), "payload_bytes": 40}
            for place, on in enumerate(places)
        ]
        chains.append(
            {
                "name": f"c{priority}",
                "priority": priority,
                "period_ns": draw.randint(100, 500) * 1_000_000,
                "deadline_ns": draw.randint(40, 100) * 1_000_000,
                "uplink_reliable": reliable,
                "downlink_reliable": reliable,
                "callbacks": callbacks,
            }
        )
    client = {"policy": draw.choice(["tide", "lanes", "batch"]), "submit_ns": 100_000, "process_ns": 200_000}
    return {"client": client, "hosts": [{"name": "host", "lanes": 1}], "chains": chains}


def seeds() -> random.Random:
    return random.Random(int(os.environ.get("TIDE_SEED", "1")))


def window_parts(chain: native.ChainAnswer) -> list[tuple[str, int, str | None]]:
    """The parts of the window that the lanes share, then those of the rest."""
    whole = chain.breakdown
    if whole is None:
        return []
    kinds = [("precedence", whole.precedence_ns, None), ("own", whole.own_ns, None)]
    demands = [*kinds, *(("interference", value_ns, name) for name, value_ns in whole.interference_ns)]
    demands += [("blocking", whole.blocking_ns, None), ("groups", whole.groups_ns, None)]
    parts = [
        (kind, value_ns * whole.window_ns // whole.demand_ns, name)
        for kind, value_ns, name in demands
        if value_ns and whole.demand_ns
    ]
    rest_ns = whole.window_ns - sum(value_ns for _, value_ns, _ in parts)
    return [*parts, ("last_callback", rest_ns + whole.finish_ns, None)]


def test_parts_of_bounds_of_executors_add_up_and_several_analyses_apply() -> None:
    draw = seeds()
    met = 0
    for number in range(SYSTEMS):
        document = host_system(draw)
        answer = native.bound_executors(document, refine=True, joint=True, cap_running=True, sharpen=True)
        plain = native.bound_executors(document)
        every = native.compare_executors(document)
        for chain, other in zip(answer.chains, plain.chains, strict=True):
            assert list(chain.parts) == window_parts(chain), number
            assert chain.response_ns is None or sum(part[1] for part in chain.parts) == chain.response_ns, number
            assert other.response_ns is None or (
                chain.response_ns is not None and chain.response_ns <= other.response_ns
            )
            assert sum(one.chain == chain.chain for one in every) >= 2, number
        (path,) = answer.paths
        bounds = {chain.chain: chain.response_ns for chain in answer.chains}
        assert path.segments == (("c0", bounds["c0"]), ("c1", bounds["c1"])), number
        if path.response_ns is not None:
            assert path.response_ns == (bounds["c0"] or 0) + 3 + (bounds["c1"] or 0), number
        met += answer.guaranteed
    assert 5 < met < SYSTEMS, "the systems prove nothing"


def test_parts_of_bounds_of_links_add_up() -> None:
    draw = seeds()
    bounded = 0
    for number in range(SYSTEMS):
        answer = native.bound_link(link_system(draw))
        assert {"over_in_time"} <= {one.id for one in answer.assumptions}, number
        for chain in answer.chains:
            if chain.response_ns is None:
                assert chain.parts == () and chain.reason, number
                continue
            bounded += 1
            assert sum(value_ns for _, value_ns, _ in chain.parts) == chain.response_ns, number
    assert bounded > SYSTEMS


def test_a_wrong_description_is_refused_with_a_line_for_each_entry() -> None:
    draw = seeds()
    document = host_system(draw)
    document["chains"][0]["period_ns"] = 0
    document["chains"][1]["callbacks"] = []
    with pytest.raises(ValueError) as refused:
        native.bound_executors(document)
    assert str(refused.value).splitlines()[:2] == [
        "chain 'c0': period_ns is 0, but must be at least 1",
        "chain 'c1': has no callback",
    ]
    document["executors"][0] |= {"policy": "urgent", "threads": -2}
    document["paths"][0]["delays_ns"] = [True, "3"]
    del document["chains"][0]["priority"]
    document["unknown"] = 1
    with pytest.raises(ValueError) as refused:
        native.bound_executors(document)
    assert str(refused.value).splitlines() == [
        'executor \'first\': \'policy\' must be "priority", "default", "wait_set", "fifo" or "any_order"',
        "executor 'first': has both 'threads' and 'lanes'",
        "executor 'first': 'threads' must be from 1 to 1024",
        "chain 'c0': 'priority' is missing",
        "path 'both': 'delays_ns' must be integers",
        "system: 'unknown' is unknown",
    ]
    link = {
        "client": {"policy": "fast"},
        "chains": [{"name": "brake", "colour": 1, "callbacks": [{"executor": "moon"}]}],
    }
    with pytest.raises(ValueError) as refused:
        native.bound_link(link)
    assert str(refused.value).splitlines() == [
        'client: \'policy\' must be one of "tide", "lanes", "batch"',
        "chain 'brake', callback number 1: there is no executor 'moon'",
        "chain 'brake': 'colour' is unknown",
    ]
    with pytest.raises(ValueError, match=r"^system: has no chains$"):
        native.bound_link({})


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (2**63, "chain 'c0': 'period_ns' is too large"),
        (-(2**80), "chain 'c0': 'period_ns' is too large"),
        *(
            (value, "chain 'c0': 'period_ns' must be an integer")
            for value in (1.5, object(), {1: 2}, "soon", True, None)
        ),
        (2**63 - 1, f"chain 'c0': period_ns is {2**63 - 1}, but must be at most 1000000000000000"),
    ],
)
def test_odd_values_are_refused_with_their_entry(value: object, what: str) -> None:
    document = host_system(random.Random(3))
    document["chains"][0]["period_ns"] = value
    document["paths"] = []
    with pytest.raises(ValueError) as refused:
        native.bound_executors(document)
    assert str(refused.value) == what


def test_odd_names_and_lists_are_refused() -> None:
    document = host_system(random.Random(3))
    document["chains"][0] |= {"name": "\ud800", 7: 1, "callbacks": {}}
    document["groups"] = [1]
    with pytest.raises(ValueError) as refused:
        native.bound_executors(document)
    assert str(refused.value).splitlines() == [
        "group number 1: must be an object",
        "chain number 1: 'name' must be a string",
        "chain number 1: 'callbacks' must be a list",
        "chain number 1: has a name that is no text",
    ]
    with pytest.raises(TypeError):
        native.bound_executors([document])  # type: ignore[arg-type]


def test_random_sets_are_judged_by_each_analysis_and_odd_recipes_refused() -> None:
    met = native.judge_random_sets({"utilisation": 2}, first=1, count=30)
    assert (met["theorem2-safe"], met["theorem2-tight"], met["theorem4-published"]) == (0, 13, 8)
    safe = native.judge_random_sets({"utilisation": 0.2, "periods": "log_uniform"}, first=1, count=10, only_safe=True)
    assert set(safe) == {f"theorem{number}-safe" for number in range(1, 5)} and max(safe.values()) == 10
    for recipe, what in (
        ({"utilisation": 0}, "'utilisation' must be above 0"),
        ({"threads": 0}, "recipe: 'threads' must be from 1 to 1024"),
        ({"periods": "never"}, "recipe: 'periods' must be one of"),
        ({"shortest_ms": 9, "longest_ms": 8}, "shortest_ms is more than longest_ms"),
        ({"colour": 1}, "recipe: 'colour' is unknown"),
    ):
        with pytest.raises(ValueError, match=what):
            native.judge_random_sets(recipe, first=1, count=1)


def test_results_do_not_change() -> None:
    document = host_system(random.Random(3))
    answer = native.bound_executors(document)
    for owner, name in ((answer, "guaranteed"), (answer.chains[0], "response_ns"), (answer.paths[0], "segments")):
        with pytest.raises(AttributeError):
            setattr(owner, name, None)
    before = answer.chains[0].chain
    document["chains"].clear()
    chain = answer.chains[0]
    del answer
    assert chain.chain == before


def test_other_threads_run_while_bounds_are_computed() -> None:
    """The interpreter switches threads so rarely here that the other thread runs only if the analysis releases the
    interpreter lock."""
    document = link_system(random.Random(1))
    document["chains"] = [
        {**document["chains"][0], "name": f"c{number}", "priority": number, "period_ns": 10**12} for number in range(60)
    ]
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0)

    interval_s = sys.getswitchinterval()
    other = threading.Thread(target=count)
    other.start()
    sys.setswitchinterval(1000)
    try:
        seen = False
        for _ in range(200):
            before = turns
            native.bound_link(document)
            seen = turns > before
            if seen:
                break
    finally:
        sys.setswitchinterval(interval_s)
        done.set()
        other.join()
    assert seen


def test_the_stub_says_what_the_module_has() -> None:
    stub = ast.parse((ROOT / "tools/tide_tools/analysis/native.pyi").read_text(encoding="utf-8"))
    classes = {one.name: one for one in stub.body if isinstance(one, ast.ClassDef)}
    functions = {one.name: one.args for one in stub.body if isinstance(one, ast.FunctionDef)}
    assert {*classes, *functions} == {name for name in vars(native) if not name.startswith("_")}
    for name, one in classes.items():
        written = {member.name for member in one.body if isinstance(member, ast.FunctionDef)}
        assert written == {member for member in dir(getattr(native, name)) if not member.startswith("_")}, name
    for name, arguments in functions.items():
        signature = str(getattr(native, name).__doc__).splitlines()[0]
        written_names = [one.arg for one in (*arguments.args, *arguments.kwonlyargs)]
        assert re.findall(r"(\w+): ", signature) == written_names, signature
