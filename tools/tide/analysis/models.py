# SPDX-License-Identifier: Apache-2.0
"""Which executor a bound supposes on the host, in words. A bound may be proved for more orders than that of the policy
that was asked for: then the order that it is proved for is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tide.analysis.lower import ClientExecutor, HostPolicy, executor_of_board, shared_exclusive_groups
from tide.analysis.unbounded import levels_of
from tide.system.model import System
from tide.system.places import Executor
from tide.system.servers import service_of_group

TEXTS = {
    "any_order": "a free lane takes some callback that is ready, in whatever order",
    "default": "ready sets: each callback once in a set, timers whenever they expire (tide's ready-set policy; the "
    "wait sets of rclcpp on one thread run a timer no more often; not events executors)",
    "wait_set": "wait sets with cached timers: each callback once in a set, timers too (rclcpp 28 of Jazzy, "
    "SingleThreadedExecutor; not its EventsExecutor, and not tide's ready-set policy)",
    "priority": "a free lane always takes the most important callback that is ready (tide's priorities, also in "
    "tide_ros; not rclcpp or rclpy)",
}
CLIENT_TEXTS: dict[ClientExecutor, str] = {
    "tide": "one lane: the most urgent callback first, and one that has begun is not preempted",
    "lanes": "a lane for each priority: the more urgent preempts",
    "batch": "rclc's rounds: what is ready is taken at once and run in whatever order; publishing never waits",
    "batch_stock": "rclc's rounds in whatever order; a reliable publish waits until it is confirmed",
    "batch_blocking": "rclc's rounds in whatever order; each publish waits until it has left, a reliable "
    "one until it is confirmed",
}
# From the one that holds for all to the one that holds for fewest.
_ORDER = ("any_order", "default", "wait_set", "priority")
STARVATION = "stock rclcpp may starve such a group (ros2/rclcpp#2360, #2645, #2702)"


@dataclass(frozen=True)
class Model:
    """What the bounds suppose of an executor of the host."""

    executor: str
    model: str
    text: str

    def to_json(self) -> dict[str, str]:
        return {"executor": self.executor, "model": self.model, "text": self.text}


def host_models(system: System, policy: HostPolicy, proved: Mapping[str, Iterable[str]]) -> tuple[Model, ...]:
    """proved: by executor the policies that the bounds used there are proved for."""
    excluding = shared_exclusive_groups(system)
    models = []
    for executor in system.executors:
        if executor.name not in proved:
            continue
        model = max(proved[executor.name], key=_ORDER.index, default="any_order")
        text = TEXTS[model]
        group = excluding.get(executor.name)
        if group is not None and policy != "rclcpp":
            text += _come_back(group, f"a lane passes over what group '{group}' excludes and comes back to it")
        models.append(Model(executor.name, model, text))
    return tuple(models)


def line_models(system: System, asked: ClientExecutor | None) -> tuple[Model, ...]:
    """Of the boards' executors, which are what was asked for whatever the description says, and of the host's."""
    used = {callback.executor for chain in system.chains for callback in chain.callbacks}
    models = []
    for executor in system.executors:
        if executor.where == "mcu" and executor.name in used:
            client = asked or executor_of_board(executor)
            models.append(Model(executor.name, client, CLIENT_TEXTS[client] + _other_lanes(system, executor, client)))
        if executor.where != "host" or executor.name not in used:
            continue
        models.append(Model(executor.name, "any_order", TEXTS["any_order"] + _excluding(system, executor)))
    return tuple(models)


def _other_lanes(system: System, executor: Executor, client: ClientExecutor) -> str:
    """What is bounded and what is described may differ: the user asked so."""
    needed = levels_of(system, executor.name) if client == "lanes" else 1
    fits = executor.lanes >= needed if client == "lanes" else executor.lanes == 1
    return "" if fits else f"; the description has lanes = {executor.lanes}, for which these bounds do not hold"


def _excluding(system: System, executor: Executor) -> str:
    group = shared_exclusive_groups(system).get(executor.name)
    return "" if group is None else _come_back(group, f"what group '{group}' excludes is come back to")


def _come_back(group: str, text: str) -> str:
    if service := service_of_group(group):
        return f"; requests of service '{service}' are taken one at a time, and lanes pass over those that wait"
    return f"; {text}: {STARVATION}"
