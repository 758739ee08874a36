# SPDX-License-Identifier: Apache-2.0
"""What tide trace export writes for a recorded run: for Perfetto, read back with Perfetto's own library, and as CSV.

TIDE_SEED is the seed of the drawn recordings."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import random
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

from commands import tide
from tide_tools.system.load import load
from tide_tools.trace.export import read_recording, to_csv, to_perfetto
from tide_tools.trace.step import Step

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("TIDE_SEED", "1"))


run = partial(tide, COLUMNS="160")


def drawn(source: random.Random) -> list[Step]:
    """Random steps, including instances that overlap, steps that take no time, and arbitrary names."""
    steps = []
    for chain in ("brake", "länge", "a b"):
        for instance in range(source.randint(1, 300)):
            at_ns = release_ns = instance * 1000 + source.randint(0, 2**40)
            for place in source.sample(("base", "uart, to the host", "nodes", "arm"), 3):
                end_ns = at_ns + source.choice((0, 1, source.randint(0, 5000)))
                steps.append(Step(chain, instance, at_ns, end_ns, place, f"what {place}", release_ns))
                at_ns = end_ns
    return sorted(steps)


def slices_of(octets: bytes) -> list[tuple[str, str, str, int, int, int]]:
    """Place, chain, name, start, end and flow of each slice, from Perfetto's own reader. Checks that the slices of a
    track nest."""
    trace = perfetto.Trace.FromString(octets)
    tracks: dict[int, Any] = {}
    open_on: dict[int, list[Any]] = defaultdict(list)
    slices = []
    last_ns = 0
    for number, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1
        assert bool(packet.sequence_flags & perfetto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED) == (number == 0)
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in tracks
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            continue
        assert packet.timestamp >= last_ns
        last_ns = packet.timestamp
        event = packet.track_event
        if event.type == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
            assert not open_on[event.track_uuid], "slices of a track overlap"
            open_on[event.track_uuid].append(packet)
            continue
        assert event.type == perfetto.TrackEvent.TYPE_SLICE_END
        begin = open_on[event.track_uuid].pop()
        track = tracks[event.track_uuid]
        (flow,) = begin.track_event.flow_ids
        assert list(begin.track_event.categories) == [track.name]
        place = tracks[track.parent_uuid].name
        slices.append((place, track.name, begin.track_event.name, begin.timestamp, packet.timestamp, flow))
    assert not any(open_on.values())
    return slices


def test_perfetto_reads_back_every_step() -> None:
    for seed in range(SEED, SEED + 10):
        steps = drawn(random.Random(seed))
        slices = slices_of(to_perfetto(steps))
        told = sorted((place, chain, name, start_ns, end_ns) for place, chain, name, start_ns, end_ns, _ in slices)
        wanted = sorted((one.place, one.chain, f"{one.what} {one.instance}", one.start_ns, one.end_ns) for one in steps)
        assert told == wanted, f"TIDE_SEED={seed}"
        flows: dict[int, set[tuple[str, str]]] = defaultdict(set)
        for _, chain, name, _, _, flow in slices:
            flows[flow].add((chain, name.rpartition(" ")[2]))
        assert all(len(instances) == 1 for instances in flows.values()), f"TIDE_SEED={seed}"
        assert len(flows) == len({(one.chain, one.instance) for one in steps})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("recorded") / "out"
    status, output = run("simulate", ROOT / "examples/systems/arm_and_base.toml", "--runs", "3", "--out", out)
    assert status == 0, output
    return out


def test_a_run_is_recorded_from_board_to_board(recorded: Path) -> None:
    system = load(ROOT / "examples/systems/arm_and_base.toml")
    steps = read_recording(recorded)
    assert {one.chain for one in steps} == {chain.name for chain in system.chains}
    told = json.loads((recorded / "results.json").read_text(encoding="utf-8"))["observed"]
    nearest = max(told, key=lambda one: one["ratio"])
    latencies = defaultdict(list)
    for name in {one.chain for one in steps}:
        own = [one for one in steps if one.chain == name]
        for instance in {one.instance for one in own}:
            way = [one for one in own if one.instance == instance]
            assert all(before.end_ns <= after.start_ns for before, after in itertools.pairwise(way))
            latencies[name].append(way[-1].end_ns - way[0].release_ns)
            if name == "grip":
                places = [(one.place, one.what) for one in way]
                assert places == [
                    ("base", "object"),
                    ("uart_base, to the host", "message"),
                    ("manipulation", "grasp"),
                    ("uart_arm, to the board", "message"),
                    ("arm", "close"),
                ]
    assert max(latencies[nearest["chain"]]) == nearest["max_ns"]
    bounds = {one["chain"]: one["bound_ns"] for one in told if one["until"] is None}
    assert all(max(latencies[name]) <= bounds[name] for name in latencies)


def test_the_command_writes_a_trace_with_a_flow_over_boards(recorded: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    assert run("trace", "export", recorded, "--to", "perfetto", "--out", file) == (0, "")
    slices = slices_of(file.read_bytes())
    flow = next(flow for place, chain, _, _, _, flow in slices if (place, chain) == ("base", "grip"))
    ordered = sorted((start_ns, place) for place, _, _, start_ns, _, other in slices if other == flow)
    assert [place for _, place in ordered] == [
        *("base", "uart_base, to the host", "manipulation", "uart_arm, to the board", "arm")
    ]


def test_csv_has_a_line_for_each_step(recorded: Path, tmp_path: Path) -> None:
    status, output = run("trace", "export", recorded / "results.json", "--to", "csv")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(output)))
    told = [
        Step(
            *(row["chain"], int(row["instance"]), int(row["start_ns"]), int(row["end_ns"])),
            *(row["place"], row["what"], int(row["release_ns"])),
        )
        for row in rows
    ]
    assert told == read_recording(recorded)
    assert run("trace", "export", recorded, "--to", "csv", "--out", tmp_path / "x.csv")[0] == 0
    assert (tmp_path / "x.csv").read_text(encoding="utf-8") == output == to_csv(read_recording(recorded))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "has no recording of instances"),
        ('{"recording": []}', "has no recording of instances"),
        ('{"recording": [{"chain": "a"}]}', "is a recording of another version"),
    ],
)
def test_what_is_no_recording_is_one_line(text: str | None, what: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "results.json").write_text(text, encoding="utf-8")
    status, output = run("trace", "export", tmp_path, "--to", "csv")
    assert status == 2 and what in output and len(output.splitlines()) == 1


def test_a_trace_is_not_printed(recorded: Path) -> None:
    status, output = run("trace", "export", recorded, "--to", "perfetto")
    assert status == 2 and "give --out FILE" in output
