# SPDX-License-Identifier: Apache-2.0
"""The analysis in this process: the same answers and refusals as the program, nothing that can be changed, other
threads meanwhile."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tide.analysis import native
from tide.programs.binaries import find_binary

ROOT = Path(__file__).parents[2]
SYSTEMS = 60
Document = dict[str, Any]


def program(document: object, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(find_binary("tide-analysis")), *options, "-"]
    return subprocess.run(command, input=json.dumps(document), capture_output=True, text=True, check=False)


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


def as_told(chain: native.ChainAnswer) -> Document:
    """As the program prints it."""
    names = ("chain", "executor", "analysis", "response_ns", "deadline_ns", "met", "guaranteed")
    told = {name: getattr(chain, name) for name in names}
    told["depends_on"] = [{"chain": other, "because": why} for other, why in chain.depends_on]
    told["breakdown"] = None
    if chain.breakdown is not None:
        kinds = ("precedence", "own", "blocking", "groups", "demand", "window", "finish")
        told["breakdown"] = {f"{kind}_ns": getattr(chain.breakdown, f"{kind}_ns") for kind in kinds}
        told["breakdown"]["interference_ns"] = dict(chain.breakdown.interference_ns)
    return told


def window_parts(chain: native.ChainAnswer) -> list[tuple[str, int, str | None]]:
    """Of the window as the demand is divided, and the rest of it with what is behind."""
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


def part_of(told: Document, chain: Document) -> Document:
    """Of what the program printed, what the module shows, too."""
    return {name: value for name, value in chain.items() if name in told}


def test_executors_are_bounded_as_by_the_program() -> None:
    draw = seeds()
    met = 0
    for number in range(SYSTEMS):
        document = host_system(draw)
        done = program(document, "--refine", "--joint", "--cap", "--sharpen")
        printed = json.loads(done.stdout)
        answer = native.bound_executors(document, refine=True, joint=True, cap_running=True, sharpen=True)
        assert [as_told(one) for one in answer.chains] == [
            part_of(as_told(one), chain) for one, chain in zip(answer.chains, printed["chains"], strict=True)
        ], number
        for chain in answer.chains:
            assert list(chain.parts) == window_parts(chain), number
            assert chain.response_ns is None or sum(part[1] for part in chain.parts) == chain.response_ns, number
        for path, told in zip(answer.paths, printed["paths"], strict=True):
            assert (path.path, path.response_ns, path.deadline_ns) == (told["path"], told["response_ns"], 300), number
            assert (path.met, path.guaranteed) == (told["met"], told["guaranteed"]), number
            assert path.segments == tuple((one["chain"], one["response_ns"]) for one in told["segments"]), number
        assert (answer.guaranteed, answer.settled) == (printed["guaranteed"], printed["settled"]), number
        met += answer.guaranteed
        compared = json.loads(program(document, "--joint", "--compare").stdout)["chains"]
        every = native.compare_executors(document, joint=True)
        assert [as_told(one) for one in every] == [
            part_of(as_told(one), chain) for one, chain in zip(every, compared, strict=True)
        ], number
    assert 5 < met < SYSTEMS, "the systems prove nothing"


def test_links_are_bounded_as_by_the_program() -> None:
    draw = seeds()
    bounded = 0
    for number in range(SYSTEMS):
        document = link_system(draw)
        printed = json.loads(program(document, "--link").stdout)
        answer = native.bound_link(document)
        assumed = [{"id": one.id, "text": one.text, "values": dict(one.values)} for one in answer.assumptions]
        assert (answer.met, assumed) == (printed["met"], printed["assumptions"]), number
        for chain, told in zip(answer.chains, printed["chains"], strict=True):
            names = ("chain", "response_ns", "deadline_ns", "met", "hidden")
            assert {name: getattr(chain, name) for name in names} == {name: told[name] for name in names}, number
            assert chain.depends_on == tuple(told["depends_on"]), number
            if chain.response_ns is None:
                assert chain.parts == () and told["parts"] is None
                continue
            bounded += 1
            assert sum(value_ns for _, value_ns, _ in chain.parts) == chain.response_ns, number
            parts: Document = {}
            for kind, value_ns, other in chain.parts:
                if other is None:
                    parts[f"{kind}_ns"] = value_ns
                else:
                    parts.setdefault(f"{kind}_ns", {})[other] = value_ns
            parts["lateness_ns"] = chain.lateness_ns
            assert {name: value for name, value in parts.items() if value} == {
                name: value for name, value in told["parts"].items() if value
            }, number
    assert bounded > SYSTEMS


def test_a_wrong_description_is_refused_with_the_words_of_the_program() -> None:
    draw = seeds()
    document = host_system(draw)
    document["chains"][0]["period_ns"] = 0
    document["chains"][1]["callbacks"] = []
    document["unknown"] = 1
    link = link_system(draw)
    link["chains"][0]["callbacks"][0]["executor"] = "nowhere"
    for wrong, options, ask in ((document, (), native.bound_executors), (link, ("--link",), native.bound_link)):
        done = program(wrong, *options)
        assert done.returncode == 2
        with pytest.raises(ValueError) as refused:
            ask(wrong)
        assert str(refused.value) == done.stderr.strip()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (2**63, "chains[0].period_ns: the number is too large"),
        (-(2**80), "chains[0].period_ns: the number is too large"),
        (1.5, "chains[0].period_ns: numbers must be integers"),
        (object(), "chains[0].period_ns: a object is nothing that JSON knows"),
        ({1: 2}, "chains[0].period_ns: a name must be a string"),
        ("\ud800", "chains[0].period_ns: a string is no text"),
        ("soon", "chain 'c0': 'period_ns' must be an integer"),
        (True, "chain 'c0': 'period_ns' must be an integer"),
        (2**63 - 1, f"chain 'c0': period_ns is {2**63 - 1}, but must be at most 1000000000000000"),
    ],
)
def test_odd_values_are_refused_with_their_place(value: object, what: str) -> None:
    document = host_system(random.Random(3))
    document["chains"][0]["period_ns"] = value
    document["paths"] = []
    with pytest.raises(ValueError) as refused:
        native.bound_executors(document)
    assert str(refused.value) == what


def test_a_description_that_contains_itself_is_refused() -> None:
    document = host_system(random.Random(3))
    document["chains"][0]["callbacks"].append(document)
    with pytest.raises(ValueError, match="nested too deeply"):
        native.bound_executors(document)
    with pytest.raises(TypeError):
        native.bound_executors([document])  # type: ignore[arg-type]


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
    """No thread is made to give way here, so the other one gets the interpreter only if the analysis lets go of it."""
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
    stub = ast.parse((ROOT / "tools/tide/analysis/native.pyi").read_text(encoding="utf-8"))
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


def test_what_is_not_built_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "TIDE_BUILD_DIR": str(tmp_path), "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros"}
    example = ROOT / "examples/three_chains/system.toml"
    command = [sys.executable, "-m", "tide.main", "check", str(example)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert f"not built for this Python in {tmp_path}" in line and "run `make build`" in line
