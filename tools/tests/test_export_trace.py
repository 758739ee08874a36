# SPDX-License-Identifier: Apache-2.0
"""Traces of programs are read whole, truncated and damaged, and are exported. MCAP files are read back with MCAP's own
library.

TIDE_SEED is the seed for the damage."""

from __future__ import annotations

import io
import json
import os
import random
from functools import partial
from pathlib import Path

import pytest
from mcap.reader import make_reader

import trace_boards
from commands import done, tide
from tide_tools.system.load import load
from tide_tools.trace.export import to_mcap, topic_of
from tide_tools.trace.format import DEADLINE, END, RELEASE, START, WIRE_END, WIRE_START, Step, parse_trace, steps_of
from trace_boards import Row

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("TIDE_SEED", "1"))
block = partial(trace_boards.block, place=1, source=2)


def instance_rows(instance: int) -> list[Row]:
    at_ns, priority = instance * 1000, 5 * 256 + 1
    return [
        (at_ns, 0, priority, RELEASE, 0),
        (at_ns + 10, 0, priority, START, 0),
        (at_ns + 60, instance, priority, END, 0),
    ]


def wire_rows(instance: int) -> list[Row]:
    at_ns = instance * 1000 + 70
    return [(at_ns, instance, 5 * 256, WIRE_START, 0), (at_ns + 200, instance, 5 * 256, WIRE_END, 0)]


def wanted(instance: int, chain: str = "level 5") -> list[Step]:
    at_ns = instance * 1000
    return [
        Step(chain, instance, at_ns + 10, at_ns + 60, "place 1, lane 2", "callback 1", at_ns),
        Step(chain, instance, at_ns + 70, at_ns + 270, "place 1, link 3", "frame", at_ns),
    ]


def written(count: int) -> list[bytes]:
    blocks = []
    for instance in range(count):
        blocks += [block(instance_rows(instance), instance), block(wire_rows(instance), instance, source=3)]
    return blocks


def test_every_record_of_every_block_is_read() -> None:
    trace = parse_trace(b"".join(written(50)))
    assert trace.problems() == []
    assert len(trace.records) == 250
    assert steps_of(trace, {}) == [step for instance in range(50) for step in wanted(instance)]


def test_whatever_is_damaged_costs_its_own_block_alone() -> None:
    for seed in range(SEED, SEED + 50):
        source = random.Random(seed)
        blocks = written(20)
        hit = source.randrange(len(blocks))
        octets = bytearray(blocks[hit])
        octets[source.randrange(len(octets))] ^= 1 << source.randrange(8)
        trace = parse_trace(b"".join([*blocks[:hit], bytes(octets), *blocks[hit + 1 :]]))
        kept = len(trace.records)
        assert kept == 100 - (3 if hit % 2 == 0 else 2), f"TIDE_SEED={seed}"
        assert trace.damaged_bytes == len(octets), f"TIDE_SEED={seed}"


def test_a_file_that_is_cut_anywhere_keeps_what_is_whole() -> None:
    octets = b"".join(written(3))
    ends = [sum(map(len, written(3)[:count])) for count in range(7)]
    for length in range(len(octets)):
        trace = parse_trace(octets[:length])
        assert length - trace.damaged_bytes == max(end for end in ends if end <= length), length


def test_what_is_missing_is_told() -> None:
    blocks = [block(instance_rows(0), 0), block(instance_rows(3), 3, dropped=7), block([], 4, version=9)]
    trace = parse_trace(b"".join(blocks))
    assert trace.problems() == [
        "2 blocks are missing",
        "blocks of version 9 are left out; this reader knows 1",
        "7 records were dropped at full rings; make the rings larger",
    ]


def test_a_start_without_an_end_is_no_step() -> None:
    rows = [*instance_rows(0)[:2], *instance_rows(1)]
    assert steps_of(parse_trace(block(rows)), {}) == wanted(1)[:1]


def test_what_a_watch_saw_late_or_missing_is_a_step_of_its_instance() -> None:
    late, missing = (60, 0, 5 * 256 + 1, DEADLINE, 0), (1000, 0, 5 * 256 + 1, DEADLINE, 1)
    found = steps_of(parse_trace(block([*instance_rows(0), late, missing])), {5: "brake"})
    assert [
        (one.what, one.instance, one.start_ns, one.end_ns - one.release_ns) for one in found if one.start_ns >= 60
    ] == [("late", 0, 60, 60), ("missing", 0, 1000, 1000)]


def test_mcap_reads_back_every_step() -> None:
    steps = [Step("a b", 3, -50, 20, "uart, up", "frame", -60), *wanted(0), *wanted(1)]
    reader = make_reader(io.BytesIO(to_mcap(steps)))
    read = []
    for schema, channel, message in reader.iter_messages():
        assert schema is not None and (schema.name, schema.encoding) == ("tide.Step", "jsonschema")
        told = json.loads(message.data)
        assert message.log_time == told["start_ns"] + 50 and message.sequence == told["instance"]
        assert told.pop("latency_ns") == told["end_ns"] - told["release_ns"]
        read.append(Step(**told))
        assert channel.topic == topic_of(read[-1])
        assert set(json.loads(schema.data)["properties"]) == {*told, "latency_ns"}
    assert sorted(read) == sorted(steps)


def test_the_command_exports_a_damaged_trace(tmp_path: Path) -> None:
    file, out = tmp_path / "board.trace", tmp_path / "board.mcap"
    file.write_bytes(b"".join(written(4)) + b"rest")
    result = done("trace", "export", file, "--to", "mcap", "--out", out)
    assert result.splitlines() == [f"{file}: 4 bytes are damaged or cut off and left out"]
    assert len(list(make_reader(io.BytesIO(out.read_bytes())).iter_messages())) == 8


def test_a_description_names_the_chains(tmp_path: Path) -> None:
    description = ROOT / "examples/three_chains/system.toml"
    chain = load(description).chains[0]
    file = tmp_path / "board.trace"
    file.write_bytes(block([(1, 4, chain.priority * 256, START, 0), (9, 4, chain.priority * 256, END, 0)]))
    result = done("trace", "export", file, "--to", "csv", "--system", description)
    assert result.splitlines()[1:] == [f'{chain.name},4,1,9,"place 1, lane 2",callback 0,1']


@pytest.mark.parametrize(("octets", "what"), [(b"TDTR", "no complete trace record"), (b"TDTRTDTR" * 40, "no complete")])
def test_a_trace_without_a_whole_record_is_one_line(octets: bytes, what: str, tmp_path: Path) -> None:
    file = tmp_path / "board.trace"
    file.write_bytes(octets)
    status, result = tide("trace", "export", file, "--to", "csv")
    assert status == 2 and what in result and len(result.splitlines()) == 1


def test_a_start_before_missing_blocks_and_an_end_behind_them_are_no_step() -> None:
    first, second = instance_rows(0), instance_rows(1)
    blocks = [block(first[:2], 0), block(second[2:], 2), block(instance_rows(2), 3)]
    assert steps_of(parse_trace(b"".join(blocks)), {}) == wanted(2)[:1]
    without = [block(first[:2], 0), block(first[2:], 1), block(instance_rows(2), 2)]
    assert steps_of(parse_trace(b"".join(without)), {}) == [*wanted(0)[:1], *wanted(2)[:1]]


def test_blocks_of_a_link_are_put_in_their_order() -> None:
    blocks = written(6)
    mixed = [blocks[place] for place in (4, 1, 0, 3, 2, 5)]
    assert steps_of(parse_trace(b"".join(mixed), -1), {}) == steps_of(parse_trace(b"".join(blocks[:6])), {})
    late = [block(instance_rows(number), number) for number in (7, 9)]
    assert [parse_trace(b"".join(late), begin).missing_blocks for begin in (-1, 0, 7)] == [1, 8, 1]
