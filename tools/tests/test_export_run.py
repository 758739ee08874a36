# SPDX-License-Identifier: Apache-2.0
"""The folder of tide run exported: one instance of brake is one flow over board, line and node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
from typer.testing import CliRunner

from tide.export.run_folder import read_run
from tide.main import app

CHAINS = ("brake", "camera")
WAY = ["client", "uart, to the host", "nodes", "uart, to the board", "client"]


def frame(direction: str, object_id: int, index: int, start_ns: int, dropped: bool = False) -> str:
    """A DATA frame as tide-line logs it: framing, message header, submessage, ids, index."""
    digits = f"{index:05d}".encode()
    kind = 7 if direction == "a-to-b" else 9
    payload = bytes(4) + digits
    length = 4 + len(payload) + 4
    submessage = bytes([kind, 1]) + length.to_bytes(2, "little") + bytes(2) + object_id.to_bytes(2, "big") + payload
    message = bytes([0x81, 1, 0, 0]) + submessage
    plain = bytes([0x7E, 0, 0]) + len(message).to_bytes(2, "little") + message
    times = {"start_ns": start_ns, "end_ns": start_ns + 100, "dropped": dropped, "bytes": len(plain) + 2}
    return json.dumps({"direction": direction, "head": plain.hex(), **times})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two executors; in the one each chain has three instances, and a frame of the second brake was lost once."""
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch" / "client.log").write_text("")
    out = tmp_path / "tide"
    out.mkdir()
    roles = {"sample": ("read", "client"), "decide": ("think", "nodes"), "act": ("move", "client")}
    named = {role: {"name": name, "executor": executor} for role, (name, executor) in roles.items()}
    names = {"link": "uart", "lanes": {"client": 1, "nodes": 1}, "callbacks": dict.fromkeys(CHAINS, named)}
    (out / "names.json").write_text(json.dumps(names))
    client, nodes, frames = ["started"], ['{"event": "matched"}'], []
    for number, chain in enumerate(CHAINS):
        for index in range(3):
            at_ns = (index * 10 + number) * 1000
            sample = {"callback": "sample", "start_ns": at_ns + 5, "end_ns": at_ns + 50, "cpu_ns": 40}
            act = {"callback": "act", "start_ns": at_ns + 700, "end_ns": at_ns + 800, "cpu_ns": 90}
            told = {"chain": chain, "index": index, "release_ns": at_ns, "events": [sample, act]}
            client.append(json.dumps(told))
            nodes.append(json.dumps({"chain": chain, "answer": index, "start_ns": at_ns + 300, "end_ns": at_ns + 400}))
            frames.append(frame("a-to-b", 0x15 + 16 * number, index, at_ns + 100))
            frames.append(frame("b-to-a", 0x16 + 16 * number, index, at_ns + 500))
    nodes.append(json.dumps({"chain": "brake", "answer": 9, "start_ns": 1, "end_ns": 2}))  # never finished
    frames.append(frame("a-to-b", 0x15, 1, 10_060, dropped=True))
    for name, lines in (("client.log", client), ("echo.log", nodes), ("frames.jsonl", frames)):
        (out / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def test_an_instance_goes_from_board_over_line_and_node_back(folder: Path) -> None:
    steps = read_run(folder / "tide")
    assert {(one.chain, one.instance) for one in steps} == {(chain, index) for chain in CHAINS for index in range(3)}
    for chain in CHAINS:
        way = [one for one in steps if (one.chain, one.instance) == (chain, 2)]
        assert [one.place for one in way] == WAY, chain
        assert [one.what for one in way] == ["read", "message", "think", "message", "move"]
        assert {one.release_ns for one in way} == {20_000 + 1000 * CHAINS.index(chain)}
    lost = [one for one in steps if one.what == "lost message"]
    assert [(one.chain, one.instance, one.start_ns) for one in lost] == [("brake", 1, 10_060)]


def test_perfetto_has_one_flow_for_one_brake(folder: Path) -> None:
    out = folder / "run.pftrace"
    result = CliRunner().invoke(app, ["export", str(folder / "tide"), "--to", "perfetto", "--out", str(out)])
    assert (result.exit_code, result.output) == (0, "")
    trace = perfetto.Trace.FromString(out.read_bytes())
    tracks = {
        one.track_descriptor.uuid: one.track_descriptor for one in trace.packet if one.HasField("track_descriptor")
    }
    flows: dict[int, list[tuple[str, str]]] = {}
    for packet in trace.packet:
        for flow in packet.track_event.flow_ids:
            track = tracks[packet.track_event.track_uuid]
            flows.setdefault(flow, []).append((track.name, tracks[track.parent_uuid].name))
    assert len(flows) == 6
    assert [("brake", place) for place in WAY] in flows.values()


def test_one_of_several_executors_has_to_be_named(folder: Path) -> None:
    result = CliRunner().invoke(app, ["export", str(folder), "--to", "csv"])
    assert result.exit_code == 2
    assert "has runs of 2 executors; give one" in result.output and str(folder / "tide") in result.output
