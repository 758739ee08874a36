# SPDX-License-Identifier: Apache-2.0
"""Rarely used types between a board and rclpy: wide strings, bounded strings and sequences, default values of fields,
and a type with keys, defined in a .idl file. The board returns messages of rclpy unchanged, and its newly initialised
messages have the same values as those of rclpy."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from test_msgs.msg import BoundedSequences, Defaults, Strings, WStrings

import links
import own_types
from links import World
from ros import quality
from tide_test_support import eventually, probe
from tide_tools.programs.child import Child

world = links.worlds(World, links.udp, links.serial_with_loss)


@pytest.fixture
def board(world: World) -> Child:
    return world.start_board("types_peer")


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The class of the type with keys. No wheel contains it."""
    folder = tmp_path_factory.mktemp("types")
    own_types.make_package(Path(__file__).parents[1] / "compat/peers/robot_msgs", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("robot_msgs.msg").Reading


def filled(reading: Any) -> list[Any]:
    """A message of each type. The tested fields have other values than in a new message."""
    wide = WStrings(wstring_value="weit: ÄÖ 中文", array_of_wstrings=["", "é", "x" * 40])
    wide.bounded_sequence_of_wstrings = ["kurz", "日本"]
    wide.unbounded_sequence_of_wstrings = ["a", "", "ende"]
    texts = Strings(string_value="hello", bounded_string_value="b" * 22)
    full = BoundedSequences(
        bool_values=[True, False, True], int64_values=[-(2**63), 0, 2**63 - 1], string_values=["", "zwei", "3"]
    )
    defaults = Defaults(bool_value=False, uint8_value=1, float64_value=-2.5, int64_value=-1)
    return [defaults, wide, texts, full, reading(sensor_id=7, place="left arm", value=2.5, few=[-1, 2])]


def name_of(message: Any) -> str:
    return str(type(message).__name__)


def test_what_is_sent_comes_back(world: World, board: Child, reading: Any) -> None:
    """A message of each type is returned unchanged. It is repeated until both sides know each other. Then a newly
    initialised message is compared."""
    for message in filled(reading):
        name, new = name_of(message), type(message)()
        came = world.host.collect(type(message), f"/up/{name}", quality(True))
        publisher = world.host.publisher(type(message), f"/down/{name}", quality(True))
        probe(lambda: publisher.publish(message), lambda: came, f"{name} comes back")  # noqa: B023
        publisher.publish(new)
        eventually(lambda: came[-1] != message, f"a new {name} comes back")  # noqa: B023
        assert came == [message] * (len(came) - 1) + [new]
        board.require_alive()


def test_a_new_message_has_its_default_values(world: World, board: Child, reading: Any) -> None:
    came: dict[str, Any] = {}
    news = [type(one)() for one in filled(reading)]
    for new in news:
        name = name_of(new)
        world.host.subscribe(
            type(new), f"/new/{name}", lambda message, name=name: came.setdefault(name, message), quality(True)
        )

    def all_came() -> bool:
        board.say("again")
        return len(came) == len(news)

    eventually(all_came, "one of each")
    for new in news:
        assert came[name_of(new)] == new
    assert came["Defaults"].float32_value == pytest.approx(1.125)
    assert came["WStrings"].wstring_value_default1 == "Hello world!"
    assert came["Reading"].value == pytest.approx(1.5)


def test_each_message_of_a_type_with_keys_comes(world: World, board: Child, reading: Any) -> None:
    """Topics of ROS 2 Jazzy have no keys, so no message replaces an earlier one with the same key."""
    came = world.host.collect(reading, "/up/Reading", quality(True))
    publisher = world.host.publisher(reading, "/down/Reading", quality(True))

    def send(value: float) -> None:
        publisher.publish(reading(sensor_id=int(value) % 2, place="arm", value=value))

    def comes() -> bool:
        if not came:
            send(0.0)  # until writers know the readers of board and node
        return bool(came)

    eventually(comes, "the first reading")
    send(-1.0)
    eventually(lambda: came[-1].value < 0, "all that were under way")
    for value in range(1, 9):
        send(float(value))
    eventually(lambda: came[-1].value > 7, "the last reading")
    assert [(one.sensor_id, one.value) for one in came if one.value > 0] == [(v % 2, float(v)) for v in range(1, 9)]
