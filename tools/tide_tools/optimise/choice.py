# SPDX-License-Identifier: Apache-2.0
"""The values of a system that may change without a change of its function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from tide_tools.analysis.lower import levels_of
from tide_tools.analysis.sizing import down_bytes, up_bytes
from tide_tools.programs.child import workers
from tide_tools.system.edit import edited
from tide_tools.system.levels import check_levels
from tide_tools.system.locate import Path
from tide_tools.system.model import Callback, Chain, Publication, System, nanoseconds
from tide_tools.system.places import Executor, Line
from tide_tools.system.servers import described_executor_of, executors_by_core, with_threads


@dataclass(frozen=True)
class Choice:
    """One choice of the values that may change, in the order of the description: priorities by chain, lanes by
    executor, quanta by link, executors by chain and callback, budgets of a lane by executor (0: no budget), and
    policies by board."""

    priorities: tuple[int, ...]
    lanes: tuple[int, ...]
    quanta: tuple[int, ...]
    places: tuple[tuple[str, ...], ...]
    budgets_ns: tuple[int, ...]
    policies: tuple[str, ...]


def present(system: System) -> Choice:
    return Choice(
        tuple(chain.priority for chain in system.chains),
        tuple(executor.lanes for executor in system.executors),
        tuple(link.quantum_bytes for link in system.links),
        tuple(tuple(callback.executor for callback in chain.callbacks) for chain in system.chains),
        tuple(nanoseconds(executor.budget_ms) for executor in system.executors),
        tuple(cores[0].policy or "tide" for cores in boards_of(system).values()),
    )


def boards_of(system: System) -> dict[str, list[Executor]]:
    """The executors of each board, one for each core; all executors of a board have the same policy."""
    boards: dict[str, list[Executor]] = {}
    for executor in system.executors:
        if executor.where == "mcu":
            boards.setdefault(executor.board or executor.name, []).append(executor)
    return boards


def applied(system: System, choice: Choice) -> System:
    chains = tuple(
        chain.model_copy(
            update={
                "priority": priority,
                "callbacks": tuple(
                    callback.model_copy(update={"executor": place})
                    for callback, place in zip(chain.callbacks, places, strict=True)
                ),
            }
        )
        for chain, priority, places in zip(system.chains, choice.priorities, choice.places, strict=True)
    )
    policies = _policies(system, choice)
    executors = tuple(
        executor.model_copy(
            update={"lanes": lanes, "budget_ms": Decimal(budget_ns) / 1_000_000}
            | ({"policy": policies[executor.name]} if executor.name in policies and executor.policy is not None else {})
        )
        for executor, lanes, budget_ns in zip(system.executors, choice.lanes, choice.budgets_ns, strict=True)
    )
    links = tuple(
        link.model_copy(update={"quantum_bytes": quantum})
        for link, quantum in zip(system.links, choice.quanta, strict=True)
    )
    return system.model_copy(update={"chains": chains, "executors": executors, "links": links})


def _policies(system: System, choice: Choice) -> dict[str, str]:
    """The policy that the choice gives each executor of a board."""
    boards = zip(boards_of(system).values(), choice.policies, strict=True)
    return {core.name: policy for cores, policy in boards for core in cores}


def is_ordered(system: System, choice: Choice) -> bool:
    """True if all chains that meet on an executor have different priorities."""
    if len(set(choice.priorities)) == len(choice.priorities):
        return True
    return not any(check_levels(applied(system, choice)))


def only(system: System, names: Collection[str]) -> System:
    """The system with only the named chains. A chain that branches from an omitted chain begins with copies of the
    shared callbacks; if names would then be duplicates, the copies get the name of the omitted chain as a prefix."""
    chains = []
    for chain in system.chains:
        if chain.name not in names:
            continue
        if chain.branches_from is not None and chain.branches_from[0] not in names:
            own = {callback.name for callback in chain.callbacks}
            path = system.path(chain)
            count = len(path) - len(chain.callbacks)
            shared = [_sending_alone(*pair) for pair in pairwise(path[: count + 1])]
            renamed = [
                callback.model_copy(update={"name": f"{chain.branches_from[0]}_{callback.name}"})
                if callback.name in own
                else callback
                for callback in shared
            ]
            chain = chain.model_copy(
                update={"branches_from": None, "joins": (), "callbacks": (*renamed, *chain.callbacks)}
            )
        if any(name not in names for name, _ in chain.joins):
            chain = chain.model_copy(update={"joins": tuple(one for one in chain.joins if one[0] in names)})
        chains.append(chain)
    return system.with_chains(tuple(chains))


def _sending_alone(callback: Callback, after: Callback) -> Callback:
    """A copy of the callback that publishes only the message for `after`, in every run."""
    sent = callback.sends_to(after)
    if not isinstance(sent, Publication) or not callback.publishes_apart:
        return callback
    return callback.model_copy(update={"publishes": (sent.model_copy(update={"every": 1, "distance_ms": None}),)})


def cores_of(system: System, choice: Choice) -> float:
    """Number of processors that the host's executors use. A lane or thread counts as one processor, or as the share of
    one that its budget is."""
    every = with_threads(system)
    threads = Counter(described_executor_of(one.name) for one in every.executors if one.core is None)
    return len(executors_by_core(every)) + sum(
        max(lanes, threads[executor.name] - 1) * _share(executor, budget_ns)
        for executor, lanes, budget_ns in zip(system.executors, choice.lanes, choice.budgets_ns, strict=True)
        if executor.where == "host" and executor.core is None
    )


def _is_pinned(executor: Executor) -> bool:
    return executor.policy == "callback_isolated" or executor.core is not None


def _share(executor: Executor, budget_ns: int) -> float:
    return budget_ns / nanoseconds(executor.budget_period_ms) if budget_ns else 1.0


# ---- moves ----
# Choices that differ from a given one in one value.


Value = TypeVar("Value")
QUANTA = (0, 64, 128, 256)
# Executors of the host that have one thread, or whose groups determine their threads.
_OWN_THREADS = ("single_threaded", "events", "callback_isolated")
BUDGET_STEPS = (8, 32)  # budgets change in steps of these fractions (1/8, 1/32) of a lane's period


class Moves:
    """The allowed changes of a choice. cores: number of the host's processors, which limits the lanes and budgets of
    all its executors together. None: that of this machine or, if the description uses more, because it may be for
    another machine, that of the description."""

    def __init__(
        self,
        system: System,
        keep_lanes: bool = False,
        keep_places: bool = False,
        cores: float | None = None,
        keep_order: bool = False,
        keep_policies: bool = False,
    ) -> None:
        self._system = system
        self._keep_lanes = keep_lanes
        self._keep_places = keep_places
        self._keep_policies = keep_policies
        # Executors on one core of a board preempt each other in the order of their chains, so the order must stay.
        self.keep_order = keep_order or any(one.core is not None for one in system.boards())
        self._cores = cores
        self._lanes_now = present(system).lanes
        self._limit = max(workers(), cores_of(system, present(system))) if cores is None else cores

    def around(self, choice: Choice) -> list[Choice]:
        """All choices that differ in one value, or in the order of chains unless the order must be kept."""
        return [*([] if self.keep_order else self._allowed(choice, self._exchanges(choice))), *self.values(choice)]

    def values(self, choice: Choice) -> list[Choice]:
        """Moves that keep the order of the chains."""
        kinds = (
            self._lanes(choice),
            self._quanta(choice),
            self._places(choice),
            self._budgets(choice),
            self._policies(choice),
        )
        return [other for kind in kinds for other in self._allowed(choice, kind)]

    def _allowed(self, choice: Choice, others: Iterable[Choice]) -> list[Choice]:
        return [
            other
            for other in others
            if (self.fits(other) or self._less(choice, other)) and self._has_work(other) and self.is_ordered(other)
        ]

    def is_ordered(self, choice: Choice) -> bool:
        return is_ordered(self._system, choice)

    def _has_work(self, choice: Choice) -> bool:
        """True if no executor has more lanes than callbacks; executors with the described number of lanes are
        exempt."""
        count = Counter(place for places in choice.places for place in places)
        names = [executor.name for executor in self._system.executors]
        entries = zip(names, choice.lanes, self._lanes_now, strict=True)
        return all(lanes <= max(count[name], now) for name, lanes, now in entries)

    def fits(self, choice: Choice) -> bool:
        return cores_of(self._system, choice) <= self._limit + 1e-9

    def _less(self, choice: Choice, other: Choice) -> bool:
        """True if `other` needs fewer processors than `choice`. Such a move is allowed even if `other` still needs too
        many."""
        return cores_of(self._system, other) < cores_of(self._system, choice)

    def _exchanges(self, choice: Choice) -> Iterator[Choice]:
        for left in range(len(choice.priorities)):
            for right in range(left):
                priorities = list(choice.priorities)
                priorities[left], priorities[right] = priorities[right], priorities[left]
                yield replace(choice, priorities=tuple(priorities))

    def _lanes(self, choice: Choice) -> Iterator[Choice]:
        """Moves that change the number of lanes of one of tide's executors: on a board to one lane, or to one for each
        priority; on the host by one."""
        policies = _policies(self._system, choice)
        for index, lanes in enumerate([] if self._keep_lanes else choice.lanes):
            executor = self._system.executors[index]
            on_mcu = executor.where == "mcu"
            has_own = executor.policy in _OWN_THREADS or executor.thread_priority is not None
            if policies.get(executor.name, "tide") != "tide" or has_own:
                continue
            for option in (1, levels_of(self._system, executor.name)) if on_mcu else (lanes - 1, lanes + 1):
                if option >= 1 and option != lanes:
                    yield replace(choice, lanes=_with(choice.lanes, index, option))

    def _quanta(self, choice: Choice) -> Iterator[Choice]:
        """Moves that change the quantum of a link. Best-effort messages must still fit into one frame, because only
        reliable messages can be fragmented."""
        if any(chain.reliability != "reliable" for chain in self._system.chains):
            return
        for index, quantum in enumerate(choice.quanta):
            link = self._system.links[index]
            for option in QUANTA:
                if isinstance(link, Line) and option != quantum and self._fragments(link, option):
                    yield replace(choice, quanta=_with(choice.quanta, index, option))

    def _fragments(self, link: Line, quantum: int) -> bool:
        """True if no message has more than 15 frames with this quantum; for more frames there is no bound."""
        largest = max(
            (
                max(sent.payload_bytes or 0, up_bytes(one, None), down_bytes(one, None))
                for chain in self._system.chains
                for one in chain.callbacks
                for sent in (*one.publishes, one.requests, one.replies)
                if sent is not None
            ),
            default=0,
        )  # fmt: skip
        return quantum == 0 or (quantum <= link.mtu_bytes and largest + 8 <= 15 * (quantum - 8))

    def _places(self, choice: Choice) -> Iterator[Choice]:
        """Moves that put a callback, or all callbacks of a chain from one on, on another executor of the host."""
        if self._keep_places:
            return
        # each thread of callback_isolated occupies a processor, and its callbacks stay where they are; so do those of a
        # pinned thread
        isolated = [one.name for one in self._system.executors if _is_pinned(one)]
        hosts = [one.name for one in self._system.executors if one.where == "host" and one.name not in isolated]
        for index, chain in enumerate(self._system.chains):
            places = choice.places[index]
            for position, callback in enumerate(chain.callbacks):
                for host in hosts if self._movable(chain, callback) else []:
                    if host == places[position]:
                        continue
                    yield replace(choice, places=_with(choice.places, index, _with(places, position, host)))
                    rest = chain.callbacks[position:]
                    if len(rest) > 1 and all(self._movable(chain, one) for one in rest):
                        moved = (*places[:position], *(host for _ in rest))
                        yield replace(choice, places=_with(choice.places, index, moved))

    def _movable(self, chain: Chain, callback: Callback) -> bool:
        """True for a callback of the host that may be put on another executor. This excludes callbacks of an exclusive
        group, and callbacks from which another chain branches or which another chain joins."""
        this = (chain.name, callback.name)
        branched = any(this in (other.branches_from, *other.joins) for other in self._system.chains)
        exclusive = any(group.name == callback.group and group.kind == "exclusive" for group in self._system.groups)
        executor = self._system.executor(callback.executor)
        return executor.where == "host" and not _is_pinned(executor) and not exclusive and not branched

    def _budgets(self, choice: Choice) -> Iterator[Choice]:
        """Moves that raise or lower a budget by one step, or lower one budget and raise another by a step. Only if the
        user has given the number of cores may a move need more processors than before."""
        with_budget = [index for index, budget_ns in enumerate(choice.budgets_ns) if budget_ns]
        for part in BUDGET_STEPS:
            for index in with_budget:
                for sign in (1, -1):
                    changed = self._changed(choice, index, sign, part)
                    if changed is None:
                        continue
                    if self._cores is not None or sign < 0:
                        yield changed
                    for other in with_budget:
                        both = self._changed(changed, other, -sign, part) if other != index else None
                        if both is not None and (self._cores is not None or not self._more(both, choice)):
                            yield both

    def _policies(self, choice: Choice) -> Iterator[Choice]:
        """Moves that replace rclc's executor on a board by tide's."""
        for index, policy in enumerate(choice.policies):
            if policy != "tide" and not self._keep_policies:
                yield replace(choice, policies=_with(choice.policies, index, "tide"))

    def _more(self, choice: Choice, before: Choice) -> bool:
        return cores_of(self._system, choice) > cores_of(self._system, before) + 1e-9

    def _changed(self, choice: Choice, index: int, sign: int, part: int) -> Choice | None:
        period_ns = nanoseconds(self._system.executors[index].budget_period_ms)
        budget_ns = choice.budgets_ns[index] + sign * (period_ns // part)
        if not 0 < budget_ns <= period_ns:
            return None
        return replace(choice, budgets_ns=_with(choice.budgets_ns, index, budget_ns))


def _with(values: tuple[Value, ...], index: int, value: Value) -> tuple[Value, ...]:
    return (*values[:index], value, *values[index + 1 :])


# ---- the description with a choice ----
# The text of the description with the chosen values, in which comments and order are kept.


def rewritten(text: str, system: System, choice: Choice) -> str:
    """Returns `text`, which describes `system`, with the values of `choice`. A missing key is added after the name of
    its entry."""
    before = present(system)
    edits: list[tuple[Path, str, int | str]] = []
    for index, value in enumerate(choice.priorities):
        if value != before.priorities[index]:
            edits.append((("chains", index), "priority", value))
    for index, value in enumerate(choice.lanes):
        if value != before.lanes[index]:
            edits.append((("executors", index), "lanes", value))
    for index, value in enumerate(choice.quanta):
        if value != before.quanta[index]:
            edits.append((("links", index), "quantum_bytes", value))
    for index, places in enumerate(choice.places):
        for position, place in enumerate(places):
            if place != before.places[index][position]:
                edits.append((("chains", index, "callbacks", position), "executor", f'"{place}"'))
    for index, value in enumerate(choice.budgets_ns):
        if value != before.budgets_ns[index]:
            edits.append((("executors", index), "budget_ms", f"{Decimal(value) / 1_000_000:f}"))
    policies, old = _policies(system, choice), _policies(system, before)
    for index, executor in enumerate(system.executors):
        if executor.name in policies and policies[executor.name] != old[executor.name]:
            edits.append((("executors", index), "policy", f'"{policies[executor.name]}"'))
    return edited(text, ((entry, key, str(value), "name") for entry, key, value in edits))
