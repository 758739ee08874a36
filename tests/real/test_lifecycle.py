# SPDX-License-Identifier: Apache-2.0
"""The lifecycle node of a board, used by a lifecycle manager of ROS 2."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from lifecycle_msgs.msg import State, Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState

import links
from links import answered, in_full, rtps, serial_with_loss, udp, udp_with_loss
from ros import Host, quality
from tide_test_support import eventually
from tide_tools.programs.child import Child

LIMIT_S = 30.0
SERVICES = {
    "change_state": ChangeState,
    "get_state": GetState,
    "get_available_states": GetAvailableStates,
    "get_available_transitions": GetAvailableTransitions,
    "get_transition_graph": GetAvailableTransitions,
}


@dataclass(kw_only=True)
class Manager(links.World):
    board: Child = field(init=False)
    clients: dict[str, Any] = field(init=False)
    events: list[TransitionEvent] = field(default_factory=list)

    def ask(self, service: str, **members: Any) -> Any:
        future = self.clients[service].call_async(SERVICES[service].Request(**members))
        eventually(future.done, f"an answer of {service}\n{self.board.tail()}")
        return future.result()

    def change(self, transition: int, label: str = "") -> bool:
        return bool(self.ask("change_state", transition=Transition(id=transition, label=label)).success)

    def state(self) -> tuple[int, str]:
        state = self.ask("get_state").current_state
        return state.id, state.label

    def transitions(self, service: str) -> list[tuple[int, str, str, str]]:
        return [
            (one.transition.id, one.transition.label, one.start_state.label, one.goal_state.label)
            for one in self.ask(service).available_transitions
        ]


world = links.worlds(Manager, udp, *in_full(rtps, udp_with_loss, serial_with_loss))


@pytest.fixture
def manager(world: Manager) -> Manager:
    world.board = world.start_board("lifecycle_peer")
    world.clients = {name: world.host.client(kind, f"/robot/peer/{name}") for name, kind in SERVICES.items()}
    watch(world.host, world)
    return world


def watch(node: Host, manager: Manager) -> None:
    topic = "/robot/peer/transition_event"
    node.subscribe(TransitionEvent, topic, manager.events.append, quality(reliable=True))
    eventually(lambda: node.node.count_publishers(topic) > 0, "the events")
    for name, client in manager.clients.items():
        eventually(client.service_is_ready, f"service {name}")
    # When an event has arrived, the agent's writer of the events has found the subscription.
    while not manager.events:
        assert manager.change(Transition.TRANSITION_CONFIGURE) and manager.change(Transition.TRANSITION_CLEANUP)
        for callback in ("configure", "cleanup"):
            assert manager.board.wait_json("called", LIMIT_S, "called") == {"called": callback}
    eventually(lambda: manager.events[-1].goal_state.label == "unconfigured", "the events of a probe")
    manager.events.clear()


def test_a_manager_takes_it_through_its_states(manager: Manager) -> None:
    assert manager.state() == (State.PRIMARY_STATE_UNCONFIGURED, "unconfigured")
    assert manager.change(Transition.TRANSITION_CONFIGURE)
    assert not manager.change(Transition.TRANSITION_ACTIVATE), "the board refuses the first"
    assert manager.state() == (State.PRIMARY_STATE_INACTIVE, "inactive")
    assert manager.change(0, "activate")
    assert manager.state() == (State.PRIMARY_STATE_ACTIVE, "active")
    assert not manager.change(Transition.TRANSITION_CLEANUP), "not from here"
    assert manager.change(Transition.TRANSITION_DEACTIVATE)
    assert manager.change(Transition.TRANSITION_CLEANUP)
    assert manager.change(Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)
    assert manager.state() == (State.PRIMARY_STATE_FINALIZED, "finalized")
    eventually(lambda: len(manager.events) >= 12, f"12 events: {manager.events}")
    goals = [event.goal_state.label for event in manager.events]
    assert goals == [
        *("configuring", "inactive", "activating", "inactive", "activating", "active"),
        *("deactivating", "inactive", "cleaningup", "unconfigured", "shuttingdown", "finalized"),
    ]
    called = [manager.board.wait_json("called", LIMIT_S, "called")["called"] for _ in range(5)]
    assert called == ["configure", "activate", "activate", "deactivate", "cleanup"]


@pytest.mark.full
def test_states_and_transitions_are_listed(manager: Manager) -> None:
    states = {one.label: one.id for one in manager.ask("get_available_states").available_states}
    assert len(states) == 11 and states["errorprocessing"] == State.TRANSITION_STATE_ERRORPROCESSING
    assert manager.transitions("get_available_transitions") == [
        (Transition.TRANSITION_CONFIGURE, "configure", "unconfigured", "configuring"),
        (Transition.TRANSITION_UNCONFIGURED_SHUTDOWN, "shutdown", "unconfigured", "shuttingdown"),
    ]
    graph = manager.transitions("get_transition_graph")
    assert len(graph) == 25
    assert (Transition.TRANSITION_ON_ACTIVATE_FAILURE, "transition_failure", "activating", "inactive") in graph


@pytest.mark.full
def test_the_agent_is_killed_and_comes_back(manager: Manager) -> None:
    """The board keeps its state while the agent is away, and a new manager continues from this state."""
    assert manager.change(Transition.TRANSITION_CONFIGURE)
    manager.restart_agent()

    is_told = answered(
        lambda: manager.clients["get_state"].call_async(GetState.Request()),
        lambda response: bool(response.current_state.id == State.PRIMARY_STATE_INACTIVE),
    )
    eventually(is_told, "the state, through the new agent")
    eventually(manager.clients["change_state"].service_is_ready, "the service is back")
    assert manager.change(Transition.TRANSITION_CLEANUP)
    assert manager.state() == (State.PRIMARY_STATE_UNCONFIGURED, "unconfigured")
