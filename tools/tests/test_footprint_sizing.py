# SPDX-License-Identifier: Apache-2.0
"""What `tide footprint` derives from a description without a compiler, and its bound for the stack.
tests/firmware/test_footprint_command.py tests the command itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from descriptions import board, described, host, line
from descriptions import chain as chain_of
from tide_tools.analysis.sizing import client_of, only_board, options, pools
from tide_tools.errors import UsageError
from tide_tools.footprint.program import header, program
from tide_tools.footprint.stack import bound, read
from tide_tools.system.levels import levels
from tide_tools.system.load import load, parse

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SYSTEM = ROOT / "tools/tests/data/systems/three_chains.toml"


def test_pools_hold_what_the_description_names() -> None:
    sizes = pools(client_of(load(SYSTEM)))
    assert sizes["TIDE_TIMERS"] == sizes["TIDE_PUBLISHERS"] == sizes["TIDE_SUBSCRIPTIONS"] == 3
    assert sizes["TIDE_STREAMS"] == 3 + 1  # a reliable stream for each of three levels, and one for level 0
    assert sizes["TIDE_NAME_BYTES"] >= len("rt/battery/request") + 1
    assert sizes["TIDE_REASSEMBLIES"] == 0
    assert all(sizes[name] % 4 == 0 for name in sizes if name.endswith("_NODE_BYTES"))
    assert sizes["TIDE_SMALL_NODE_BYTES"] < sizes["TIDE_LARGE_NODE_BYTES"]


@pytest.mark.parametrize(("reliability", "levels"), [("reliable", 2), ("best_effort", 1)])
def test_streams_that_arrive_need_one_for_their_acknowledgments(reliability: str, levels: int) -> None:
    up = chain_of("up", 1, ("m", 1), ("h", 1), reliability=reliability)
    down = chain_of("down", 2, ("h", 1), ("m", 1), reliability=reliability)
    client = client_of(parse(described(board("m"), host("h"), line("l", escaped_bytes=0), up, down)))
    assert pools(client)["TIDE_STREAMS"] == levels + 1


def test_of_several_boards_one_is_built() -> None:
    system = load(EXAMPLES / "systems/arm_and_base.toml")
    base, arm = (client_of(only_board(system, name)) for name in ("base", "arm"))
    assert (base.executors, arm.executors) == (("base",), ("arm",))
    assert (base.lanes, arm.lanes) == (1, 3)
    told = [
        [pools(client)[f"TIDE_{kind}"] for kind in ("TIMERS", "PUBLISHERS", "SUBSCRIPTIONS")] for client in (base, arm)
    ]
    assert told == [[3, 3, 1], [2, 2, 2]]
    with pytest.raises(UsageError, match="has 2 boards; say which by --board: base, arm"):
        only_board(system, None)
    with pytest.raises(UsageError, match="there is no board 'nav'; use one of: base, arm"):
        only_board(system, "nav")
    assert only_board(load(SYSTEM), None) == load(SYSTEM)


def test_long_messages_need_fragments_and_places_for_them() -> None:
    text = SYSTEM.read_text(encoding="utf-8")
    answers_long = parse(text.replace("payload_bytes = 10 ", "payload_bytes = 3000 ").replace("500", "5000"))
    client = client_of(answers_long)
    assert pools(client)["TIDE_REASSEMBLIES"] == 3
    assert pools(client)["TIDE_REASSEMBLY_BYTES"] >= 3004
    assert "TIDE_FRAGMENTS=1" in options(client)
    assert "TIDE_FRAGMENTS=1" not in options(client_of(parse(text)))


def test_options_leave_reliable_streams_out_only_where_nothing_is_reliable() -> None:
    text = SYSTEM.read_text(encoding="utf-8")
    assert "TIDE_RELIABLE_STREAMS=0" not in options(client_of(parse(text)))
    one_left = text.replace('"reliable"', '"best_effort"', 2)
    assert "TIDE_RELIABLE_STREAMS=0" not in options(client_of(parse(one_left)))
    none_left = client_of(parse(text.replace('"reliable"', '"best_effort"')))
    assert "TIDE_RELIABLE_STREAMS=0" in options(none_left)
    assert pools(none_left)["TIDE_STREAMS"] == 3 + 1


def test_lanes_stay_where_an_executor_has_several() -> None:
    text = SYSTEM.read_text(encoding="utf-8").replace('where = "mcu"', 'where = "mcu"\nlanes = 3')
    client = client_of(parse(text))
    assert pools(client)["TIDE_EXECUTOR_LANES"] == 3
    assert "TIDE_LANES=1" in options(client)


def test_program_uses_every_handle_and_header_every_pool() -> None:
    client = client_of(load(SYSTEM))
    text = program(client)
    for topic in ("brake/request", "steer/answer", "battery/answer"):
        assert f'"{topic}"' in text
    assert text.count("tide_rclc_chain_add_") == 9
    assert all(f"#define {name} {value}\n" in header(client, "x") for name, value in pools(client).items())


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("systems/**/*.toml")), ids=lambda file: file.stem)
def test_every_publisher_of_an_example_has_the_chain_of_its_callback(file: Path) -> None:
    """The chain that takes a topic may have no callback on the board. The command once ended with a KeyError for it."""
    system = load(file)
    for one in system.boards():
        client = client_of(only_board(system, one.name))
        text = program(client)
        assert text.count("tide_rclc_chain_add_publisher(") == len(client.publications)
        for index, end in enumerate(client.publications):
            owner = next(n for n, chain in enumerate(client.chains) if end.callback in chain.callbacks)
            assert f"tide_rclc_chain_add_publisher(&chains[{owner}], &publishers[{index}])" in text


SOURCE = """struct link { int (*start)(int); };
static int start_now(int x) { return x; }
static struct link line = {.start = start_now};
void deep(struct timer *timer) { timer_of(timer)->start(timer_of(timer)->x); }
"""


def graph_of(folder: Path, *lines: str) -> Path:
    source = folder / "unit.c"
    source.write_text(SOURCE, encoding="utf-8")
    file = folder / "unit.ci"
    file.write_text("\n".join(lines).replace("UNIT", str(source)), encoding="utf-8")
    return file


def node(name: str, size: int) -> str:
    return f'node: {{ title: "{name}" label: "{name}\\nUNIT:1:1\\n{size} bytes (static)" }}'


def edge(caller: str, callee: str, place: str = "UNIT:1:1") -> str:
    return f'edge: {{ sourcename: "{caller}" targetname: "{callee}" label: "{place}" }}'


def test_bound_is_the_deepest_path(tmp_path: Path) -> None:
    nodes = [node(name, size) for name, size in (("main", 8), ("flat", 100), ("deep", 40), ("leaf.isra.0", 70))]
    edges = [edge("main", "flat"), edge("main", "deep"), edge("deep", "leaf")]
    found = bound(read([graph_of(tmp_path, *nodes, *edges)], []), "main")
    assert (found.bytes, found.deepest) == (118, ("main", "deep", "leaf"))


def test_static_functions_of_one_name_are_several(tmp_path: Path) -> None:
    nodes = [node(name, size) for name, size in (("main", 8), ("a.c:begin", 10), ("b.c:begin", 20), ("leaf", 50))]
    edges = [edge("main", "a.c:begin"), edge("b.c:begin", "leaf")]
    assert bound(read([graph_of(tmp_path, *nodes, *edges)], []), "main").bytes == 18


def test_a_circle_counts_each_function_once(tmp_path: Path) -> None:
    nodes = [node(name, size) for name, size in (("main", 8), ("a", 10), ("b", 20), ("leaf", 5))]
    edges = [edge("main", "a"), edge("a", "b"), edge("b", "a"), edge("b", "leaf")]
    assert bound(read([graph_of(tmp_path, *nodes, *edges)], []), "main").bytes == 43


def test_a_pointer_goes_where_its_member_was_set(tmp_path: Path) -> None:
    nodes = [node("deep", 8), node("start_now", 32), node("timer_of", 500)]
    file = graph_of(tmp_path, *nodes, edge("deep", "__indirect_call", "UNIT:4:34"))
    graph = read([file], [tmp_path / "unit.c"])
    assert bound(graph, "deep").bytes == 40, "the last name of the expression is called, not the first"
    assert not graph.unresolved


def test_a_pointer_that_nothing_is_known_about_is_told(tmp_path: Path) -> None:
    file = graph_of(tmp_path, node("deep", 8), edge("deep", "__indirect_call", "UNIT:4:34"))
    graph = read([file], [])
    assert graph.unresolved == {"start"}


@pytest.mark.parametrize("name", ["three_chains"])
def test_examples_can_be_sized(name: str) -> None:
    assert client_of(load(EXAMPLES / name / "system.toml")).executors


def test_the_header_has_what_a_chain_is_told() -> None:
    system = load(ROOT / "examples/three_chains/system.toml")
    text, known = header(client_of(system), "x"), levels(system, "client")
    for chain in system.chains:
        assert f"#define CHAIN_{chain.name.upper()}_PERIOD_NS INT64_C({chain.period_ns})\n" in text
        assert f"#define CHAIN_{chain.name.upper()}_DEADLINE_NS INT64_C({chain.deadline_ns})\n" in text
        assert f"#define CHAIN_{chain.name.upper()}_LEVEL {known[chain.name]}u\n" in text
