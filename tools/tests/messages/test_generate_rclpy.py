# SPDX-License-Identifier: Apache-2.0
"""The generated C code of every common type is compared with rclpy's serialisation. The environment variable
TIDE_FUZZ_EXAMPLES sets the number of messages of each type (default 4), and TIDE_FUZZ_RECORDS the total number of
mutated messages (default 10000)."""

from __future__ import annotations

import os
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from messages.harness import Harness, MessageType
from messages.values import random_message

EXAMPLES = int(os.environ.get("TIDE_FUZZ_EXAMPLES", "4"))
RECORDS = int(os.environ.get("TIDE_FUZZ_RECORDS", "10000"))
LITTLE, BIG = b"\x00\x01\x00\x00", b"\x00\x00\x00\x00"


def test_all_common_packages_are_covered(harness: Harness) -> None:
    from tide_tools.generate.source import COMMON_PACKAGES

    assert {t.package for t in harness.types} == set(COMMON_PACKAGES)
    assert len(harness.types) > 170


def check_type(harness: Harness, kind: MessageType, message: Any) -> None:
    """Converts a message from rclpy to C and back, in both byte orders."""
    python = kind.python
    body = serialize_message(message)[4:]
    again = harness.round_trip(kind, body)
    assert isinstance(again, bytes), f"{kind}: status {again}"
    assert deserialize_message(LITTLE + again, python) == message, kind
    # rclpy leaves padding and the octets after the message as they are in its buffer; generated C makes them zero.
    assert all(ours in (theirs, 0) for ours, theirs in zip(again, body, strict=False)), kind
    assert len(again) <= len(body), kind
    big = harness.round_trip(kind, body, out_big_endian=True)
    assert isinstance(big, bytes), f"{kind}: status {big}"
    assert deserialize_message(BIG + big, python) == message, kind
    assert harness.round_trip(kind, big, big_endian=True) == again, kind


def test_default_messages(harness: Harness) -> None:
    for kind in harness.types:
        check_type(harness, kind, kind.python())


# A smaller seed does not give a simpler message, so a failure is not shrunk.
@settings(
    max_examples=EXAMPLES,
    database=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_random_messages(harness: Harness, data: st.DataObject) -> None:
    for kind in harness.types:
        seed = data.draw(st.integers(0, 2**32 - 1), label=str(kind))
        check_type(harness, kind, random_message(kind.python, random.Random(seed)))


def test_members_have_the_names_of_rclpy(harness: Harness) -> None:
    for kind in harness.types:
        names = [name for name, _ in kind.fields if name != "structure_needs_at_least_one_member"]
        assert names == list(kind.python.get_fields_and_field_types()), kind
        assert kind.dds_name == f"{kind.package}::{kind.kind}::dds_::{kind.name}_"


def _mutated(body: bytes, source: random.Random) -> bytes:
    """The message truncated, with a few changed bytes, or with a wrong count."""
    data = bytearray(body)
    for _ in range(source.randint(0, 3)):
        data[source.randrange(len(data))] = source.choice((0, 1, 127, 128, 255, source.randrange(256)))
    if source.random() < 0.4 and len(data) >= 4:
        at = source.randrange(len(data) // 4) * 4
        data[at : at + 4] = struct.pack("<I", source.choice((0, 1, 2**31, 2**32 - 1, source.randrange(70))))
    if source.random() < 0.4:
        del data[source.randint(0, len(data)) :]
    return bytes(data)


def test_mutated_bytes_never_break_memory(harness: Harness, sanitized: Path) -> None:
    seed = int(os.environ.get("TIDE_FUZZ_SEED", random.SystemRandom().randrange(2**32)))
    source = random.Random(seed)
    records = []
    each = max(1, RECORDS // len(harness.types))
    for kind in harness.types:
        for number in range(each):
            if number % 16 == 0:
                body = serialize_message(random_message(kind.python, source, excess=number and 2))[4:]
            bytes_ = _mutated(body, source) if number % 8 else body
            records.append(struct.pack("=IIB", kind.index, len(bytes_), source.random() < 0.1 and number > 0) + bytes_)
    done = subprocess.run([str(sanitized)], input=b"".join(records), capture_output=True, check=False)
    assert done.returncode == 0, f"TIDE_FUZZ_SEED={seed}\n{done.stderr.decode()[-3000:]}"
    read, decoded = map(int, done.stdout.split())
    assert read == len(records)
    assert len(harness.types) <= decoded < read  # some records are accepted and some are refused


def test_too_small_memory_is_a_capacity_error(harness: Harness) -> None:
    by_name = {str(t): t for t in harness.types}
    capacity_message = -23
    text = by_name["std_msgs/msg/String"]
    assert isinstance(harness.round_trip(text, serialize_message(text.python(data="x" * 63))[4:]), bytes)
    assert harness.round_trip(text, serialize_message(text.python(data="x" * 64))[4:]) == capacity_message
    numbers = by_name["std_msgs/msg/Float64MultiArray"]
    assert isinstance(harness.round_trip(numbers, serialize_message(numbers.python(data=[0.5] * 16))[4:]), bytes)
    assert harness.round_trip(numbers, serialize_message(numbers.python(data=[0.5] * 17))[4:]) == capacity_message


def test_announced_sizes_are_exact_for_bounded_messages(harness: Harness) -> None:
    by_name = {str(t): t for t in harness.types}
    for name, size in {
        "std_msgs/msg/Int32": 4,
        "std_msgs/msg/Empty": 1,
        "geometry_msgs/msg/Twist": 48,
        "builtin_interfaces/msg/Time": 8,
        "sensor_msgs/msg/JoyFeedback": 8,
    }.items():
        assert (by_name[name].maximum_bytes, by_name[name].stored_bytes) == (size, size), name
    assert by_name["std_msgs/msg/String"].maximum_bytes == 0
    assert by_name["std_msgs/msg/String"].stored_bytes == 4 + 64


@pytest.mark.parametrize("name", ["std_msgs/msg/String", "sensor_msgs/msg/Imu"])
def test_every_truncation_is_refused(harness: Harness, name: str) -> None:
    kind = next(t for t in harness.types if str(t) == name)
    body = serialize_message(random_message(kind.python, random.Random(1)))[4:]
    for length in range(len(body)):
        assert harness.round_trip(kind, body[:length]) == -5, length
