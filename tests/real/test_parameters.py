# SPDX-License-Identifier: Apache-2.0
"""Parameters of a board, used by rclpy's parameter client: over UDP and a serial line, with losses, and through an
agent that may end and restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from rcl_interfaces.msg import ParameterEvent, ParameterType
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.qos import qos_profile_parameter_events

import links
from links import answered, in_full, rtps, serial_with_loss, udp, udp_with_loss
from tide_test_support import eventually
from tide_tools.programs.child import Child, json_line

LIMIT_S = 30.0


@dataclass(kw_only=True)
class World(links.World):
    events: list[ParameterEvent] = field(default_factory=list)
    boards: int = 0

    def __post_init__(self) -> None:
        self.host.subscribe(ParameterEvent, "/parameter_events", self.events.append, qos_profile_parameter_events)

    def start_server(self, *arguments: str) -> Child:
        self.boards += 1
        words = "parameter_peer", "--key", str(0xB0 + self.boards), *arguments
        return self.start_board(*words, log=f"board{self.boards}")

    def client(self) -> AsyncParameterClient:
        client = AsyncParameterClient(self.host.node, "peer")
        eventually(client.services_are_ready, "the six services")
        return client

    def await_events(self, client: AsyncParameterClient) -> int:
        """Changes a parameter until an event arrives, which shows that DDS has matched the agent's writer of the events
        with the subscription. Returns the number of changes."""
        changes = 0
        while not self.events:
            changes += 1
            assert set_to(client, gain=float(changes)) == [(True, "")]
        assert set_to(client, gain=0.5) == [(True, "")]
        last = lambda: self.events[-1].changed_parameters[0].value.double_value  # noqa: E731
        eventually(lambda: last() == 0.5, "the event of the last change")
        self.events.clear()
        return changes + 1


world = links.worlds(World, udp, *in_full(rtps, udp_with_loss, serial_with_loss))


def result(future: Any) -> Any:
    eventually(future.done, "an answer")
    return future.result()


def values(client: AsyncParameterClient, *names: str) -> list[Any]:
    found = result(client.get_parameters(list(names))).values
    members = {
        ParameterType.PARAMETER_NOT_SET: lambda _: None,
        ParameterType.PARAMETER_BOOL: lambda value: value.bool_value,
        ParameterType.PARAMETER_INTEGER: lambda value: value.integer_value,
        ParameterType.PARAMETER_DOUBLE: lambda value: value.double_value,
    }
    return [members[value.type](value) for value in found]


def set_to(client: AsyncParameterClient, **wanted: Any) -> list[tuple[bool, str]]:
    parameters = [Parameter(name, value=value) for name, value in wanted.items()]
    return [(one.successful, one.reason) for one in result(client.set_parameters(parameters)).results]


def seen(events: list[ParameterEvent]) -> list[tuple[str, str]]:
    lines = []
    for event in events:
        assert event.node == "/peer"
        lines += [("new", one.name) for one in event.new_parameters]
        lines += [("changed", one.name) for one in event.changed_parameters]
        lines += [("deleted", one.name) for one in event.deleted_parameters]
    return lines


def test_ros_reads_and_writes_them(world: World) -> None:
    board = world.start_server()
    client = world.client()
    assert values(client, "on", "count", "gain", "fixed", "none") == [False, 0, 0.5, 7, None]
    types = list(result(client.get_parameter_types(["gain", "on", "none", "fixed"])).types)
    assert types == [
        ParameterType.PARAMETER_DOUBLE,
        ParameterType.PARAMETER_BOOL,
        ParameterType.PARAMETER_NOT_SET,
        ParameterType.PARAMETER_INTEGER,
    ]
    probes = world.await_events(client)
    assert set_to(client, on=True, count=25, gain=2.25) == [(True, "")] * 3
    assert values(client, "on", "count", "gain") == [True, 25, 2.25]
    asked = board.wait_line(lambda line: json_line(line).get("asked") == "on", LIMIT_S, "asked")
    assert json_line(asked) == {"asked": "on", "before": 0, "after": 1}
    assert set_to(client, on=1, count=26, fixed=8) == [
        (False, "Type mismatch"),
        (False, "Out of range"),
        (False, "Read only parameter"),
    ]
    assert set_to(client, count=95) == [(False, "Rejected by server")]
    assert set_to(client, gain="text") == [(False, "Type not supported")]
    assert values(client, "on", "count", "gain", "fixed") == [True, 25, 2.25, 7]
    expected = [("changed", name) for name in ("on", "count", "gain")]
    eventually(lambda: seen(world.events) == expected, f"events {world.events}")
    board.process.terminate()
    end = board.wait_event("end", LIMIT_S)
    assert end["requests"] == 8 + probes and end["requests_lost"] == end["answers_lost"] == end["events_lost"] == 0, end


@pytest.mark.full
def test_ros_lists_and_describes_them(world: World) -> None:
    world.start_server()
    client = world.client()
    assert set(result(client.list_parameters([], 0)).result.names) == {"on", "count", "gain", "fixed"}
    count, fixed = result(client.describe_parameters(["count", "fixed"])).descriptors
    assert (count.name, count.type) == ("count", ParameterType.PARAMETER_INTEGER)
    assert (count.description, count.additional_constraints) == ("How many", "Steps of five")
    assert [(one.from_value, one.to_value, one.step) for one in count.integer_range] == [(0, 100, 5)]
    assert not count.read_only and fixed.read_only


@pytest.mark.full
def test_ros_makes_and_deletes_them(world: World) -> None:
    world.start_server()
    client = world.client()
    world.await_events(client)
    assert set_to(client, extra=3)[0][0]
    assert values(client, "extra") == [3]
    deleted = result(client.delete_parameters(["extra", "none"])).results
    assert [one.successful for one in deleted] == [True, False]
    assert values(client, "extra") == [None]
    eventually(lambda: seen(world.events) == [("new", "extra"), ("deleted", "extra")], "events")


@pytest.mark.full
def test_ros_changes_several_together(world: World) -> None:
    world.start_server()
    client = world.client()

    def together(**wanted: Any) -> bool:
        parameters = [Parameter(name, value=value) for name, value in wanted.items()]
        return bool(result(client.set_parameters_atomically(parameters)).result.successful)

    assert together(on=True, count=10)
    assert not together(on=False, count=11)
    assert not together(on=False, count=95), "the program refuses the second"
    assert values(client, "on", "count") == [True, 10]


@pytest.mark.full
def test_values_survive_a_restart_of_the_board(world: World) -> None:
    store = str(world.folder / "store")
    board = world.start_server("--store", store)
    assert set_to(world.client(), gain=-1.125, count=5) == [(True, "")] * 2
    board.process.kill()
    board.process.wait()
    world.start_server("--store", store)
    client = world.client()
    eventually(lambda: values(client, "gain", "count") == [-1.125, 0], "what was stored")


@pytest.mark.full
def test_the_agent_is_killed_and_comes_back(world: World) -> None:
    board = world.start_server()
    client = world.client()
    assert set_to(client, count=10) == [(True, "")]
    world.restart_agent()

    is_set = answered(
        lambda: client.set_parameters([Parameter("count", value=20)]),
        lambda response: bool(response.results[0].successful),
    )
    eventually(is_set, "a change through the new agent")
    assert values(client, "count") == [20]
    board.process.terminate()
    assert board.wait_event("end", LIMIT_S)["reconnects"] == 1
