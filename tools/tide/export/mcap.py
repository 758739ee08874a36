# SPDX-License-Identifier: Apache-2.0
"""A recording as MCAP, for Foxglove: a topic for each chain and place, a JSON message for each step, at its start."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields

from mcap.writer import Writer

from tide.export.recording import Step

_TYPES = {"int": "integer", "str": "string"}
_PLAIN = str.maketrans(dict.fromkeys(" ,/", "_"))


def topic_of(step: Step) -> str:
    return f"/chains/{step.chain.translate(_PLAIN)}/{step.place.translate(_PLAIN)}"


def to_mcap(steps: Sequence[Step]) -> bytes:
    """Times of MCAP are unsigned: a clock that begins below 0 is moved to begin there, in log_time alone."""
    octets = io.BytesIO()
    writer = Writer(octets)
    writer.start(profile="", library="tide")
    kinds = {one.name: {"type": _TYPES[str(one.type)]} for one in fields(Step)}
    kinds["latency_ns"] = {"type": "integer"}
    described = json.dumps({"title": "tide.Step", "type": "object", "properties": kinds})
    schema = writer.register_schema("tide.Step", "jsonschema", described.encode())
    channels: dict[str, int] = {}
    first_ns = min(0, min((one.start_ns for one in steps), default=0))
    for one in sorted(steps, key=lambda step: (step.start_ns, step)):
        topic = topic_of(one)
        if topic not in channels:
            channels[topic] = writer.register_channel(topic, "json", schema)
        data = json.dumps({**asdict(one), "latency_ns": one.end_ns - one.release_ns}).encode()
        time_ns = one.start_ns - first_ns
        writer.add_message(channels[topic], time_ns, data, time_ns, sequence=one.instance)
    writer.finish()  # type: ignore[no-untyped-call]
    return octets.getvalue()
