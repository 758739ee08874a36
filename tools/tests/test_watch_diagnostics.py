# SPDX-License-Identifier: Apache-2.0
"""How tide watch reads /diagnostics, compared with the output of rclpy."""

from __future__ import annotations

import random
import struct

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import serialize_message

from tide_test_support import each_seed
from tide_tools.watch.agents import Array, Status, read_array

_LETTERS = "abc DEF:/0123456789äß水🤖"


def _text(source: random.Random) -> str:
    return "".join(source.choices(_LETTERS, k=source.randrange(20)))


def _drawn(source: random.Random) -> tuple[DiagnosticArray, Array]:
    told, expected = DiagnosticArray(), []
    told.header.stamp.sec, told.header.stamp.nanosec = source.randrange(-(2**31), 2**31), source.randrange(10**9)
    told.header.frame_id = _text(source)
    for _ in range(source.randrange(6)):
        one = Status(_text(source), source.randrange(4), _text(source), _text(source), {})
        one.values = {f"{_text(source)} {number}": _text(source) for number in range(source.randrange(5))}
        values = [KeyValue(key=key, value=value) for key, value in one.values.items()]
        told.status.append(
            DiagnosticStatus(
                level=bytes([one.level]), name=one.name, message=one.message, hardware_id=one.hardware_id, values=values
            )
        )
        expected.append(one)
    return told, Array(told.header.stamp.sec * 1_000_000_000 + told.header.stamp.nanosec, expected)


@each_seed(range(50))
def test_arrays_are_read_as_rclpy_writes_them(seed: int) -> None:
    told, expected = _drawn(random.Random(seed))
    data = serialize_message(told)
    assert read_array(data) == expected, f"seed {seed}"


@each_seed(range(10))
def test_a_part_of_an_array_is_none(seed: int) -> None:
    told, expected = _drawn(random.Random(seed))
    data = serialize_message(told)
    found = [read_array(data[:length]) for length in range(len(data))]
    assert all(one in (None, expected) for one in found), f"seed {seed}"  # the end of the message may be padding
    assert found[0] is None and found[len(data) // 2] is None


def test_big_endian_arrays_are_read() -> None:
    data = b"\0\0\0\0" + struct.pack(">iI", -2, 5) + struct.pack(">I", 1) + b"\0\0\0\0" + struct.pack(">I", 1)
    data += b"\2\0\0\0" + struct.pack(">I", 2) + b"a\0\0\0" + struct.pack(">I", 1) + b"\0\0\0\0"
    data += struct.pack(">I", 1) + b"\0\0\0\0" + struct.pack(">I", 0)
    assert read_array(data) == Array(-1_999_999_995, [Status("a", 2, "", "", {})])


def test_counts_that_no_array_has_end_at_once() -> None:
    data = b"\0\1\0\0" + struct.pack("<iI", 1, 0) + struct.pack("<I", 1) + b"\0\0\0\0" + struct.pack("<I", 2**32 - 1)
    assert read_array(data) is None
    assert read_array(data + b"\0" * 64) is None
