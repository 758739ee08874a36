# SPDX-License-Identifier: Apache-2.0
"""Results of the analysis: bounds, their parts and premises, and reasons for missing bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import starmap
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from tide_tools.analysis.sizing import Need, Use, Uses
from tide_tools.system.locate import Path
from tide_tools.system.model import System
from tide_tools.system.servers import described_executor_of, shared_of_group

if TYPE_CHECKING:
    from tide_tools.analysis.native import LinkChainAnswer, Shortfall


def _members(one: object, names: str) -> dict[str, Any]:
    """These attributes, for JSON."""
    return {name: getattr(one, name) for name in names.split()}


# ---- internal names ----
# Internal names in documents contain a character that user names cannot contain.


NUMBER, ITSELF = "#", "!"


def alternative_name(chain: str, number: int) -> str:
    """Name of the chain that represents one of a join's inputs."""
    return f"{chain}{NUMBER}by{number}"


def chain_of(stretch: str) -> str:
    """The described chain to which a name in a document belongs."""
    return stretch.partition(NUMBER)[0]


# ---- parts ----
# Labels of the parts of bounds.


LABELS = {
    "jitter": "release jitter of its timer",
    "propagation": "messages between executors",
    "execution": "its own callbacks",
    "line": "its own frames on the line",
    "host": "agent, DDS and host",
    "nodes": "its own callbacks and the messages between them",
    "away": "its path through other boards",
    "client_interference": "callbacks of",
    "line_interference": "frames of",
    "client_blocking": "a less urgent callback that has begun",
    "new_data": "a sample that came during a publish, until the next timer",
    "lock_blocking": "a less urgent callback that holds a lock",
    "lock_wait": "others that hold a lock",
    "line_blocking": "a less urgent frame that has begun",
    "control": "acknowledgments and probes",
    "window": "a full window of its stream",
    "interrupts": "interrupts and loads",
    "host_wait": "others on the host",
    "losses": "repair of lost frames",
    "precedence": "its own earlier callbacks",
    "interference": "callbacks of",
    "own": "its own other instances",
    "blocking": "less important callbacks that have begun",
    "groups": "runs that may not overlap its own",
    "preemption": "more urgent threads on its core",
    "last_callback": "its last callback",
}


class Part(NamedTuple):
    """A part of a bound. chain: the chain whose interference it is. executor: where it arises, if the bounded chain
    visits several executors."""

    kind: str
    value_ns: int
    chain: str | None = None
    executor: str | None = None


def label(part: Part) -> str:
    text = LABELS.get(part.kind, part.kind)
    text = f"{text} {part.chain}" if part.chain else text
    return f"{text}, on {part.executor}" if part.executor else text


# ---- reasons ----
# Reasons why chains have no bounds.


@dataclass(frozen=True)
class Root:
    """The first failure of the analysis. kind: overload, too_long, unsettled, effort, starvation, fair, global, pools
    or, over a line, link or busy. path: the entry of the description. part: the largest part of the value at which the
    analysis gave up."""

    kind: str
    path: Path
    what: str
    chain: str | None
    executor: str | None = None
    reached_ns: int | None = None
    limit_ns: int | None = None
    part: Part | None = None

    def reason(self, chain: str) -> str:
        if self.chain is None or self.chain == chain:
            return self.what
        return f"it depends on chain '{self.chain}', which has none: {self.what}"

    def to_json(self) -> dict[str, Any]:
        part = self.part and _members(self.part, "kind value_ns chain")
        return _members(self, "kind chain executor reached_ns limit_ns") | {"part": part}


def _ms(value_ns: int) -> str:
    return f"{value_ns / 1e6:.3f} ms"


def _percent(permille: int) -> str:
    return f"{permille / 10:.1f} %"


def _chain_path(system: System, name: str) -> Path:
    return ("chains", next(index for index, chain in enumerate(system.chains) if chain.name == name))


def _executor_path(system: System, name: str) -> Path:
    described = described_executor_of(name)
    return ("executors", next(index for index, one in enumerate(system.executors) if one.name == described))


def _most(part: Part | None) -> str:
    return f"; the largest part: {label(part)}, {_ms(part.value_ns)}" if part else ""


def host_root(system: System, why: Shortfall) -> Root:
    chain, executor = chain_of(why.chain), why.executor
    kind, value_ns, other = why.part
    part = Part(kind, value_ns, other and chain_of(other)) if kind else None
    if why.kind == "overload":
        return _overload(system, why, chain)
    several = len({one.executor for one in system.path(system.chain(chain))}) > 1
    where = f" on executor '{executor}'" if several else ""
    limit = f"{_ms(why.limit_ns)}, ten times the longer of its deadline and its period"
    if why.kind == "unsettled":
        what = (
            f"its delays grow through several executors that wait for each other: {_ms(why.reached_ns)}"
            f" behind executor '{executor}', and the bounds did not settle below {limit}"
        )
    elif why.kind == "effort":
        what = f"the analysis{where} did not settle and was given up at {_ms(why.reached_ns)} of {limit}"
    else:
        what = f"its bound comes to {_ms(why.reached_ns)} or more{where}, beyond {limit}"
    path = _chain_path(system, chain)
    return Root(why.kind, path, what + _most(part), chain, executor, why.reached_ns, why.limit_ns, part)


def _overload(system: System, why: Shortfall, chain: str) -> Root:
    executor = system.executor(why.executor)
    index = _executor_path(system, why.executor)
    given = f"gives {_percent(why.given_permille)}"
    remedy = "lengthen period_ms or shorten execution_ms"
    if executor.budget_ms:
        index = (*index, "budget_ms")
        given = f"has a budget of {_percent(why.given_permille)}"
        remedy = f"raise budget_ms, {remedy}"
    elif executor.core is not None:
        given = f"is left {_percent(why.given_permille)}"
        remedy = f"give it another core, {remedy}"
    else:
        remedy = f"add lanes, {remedy}"
    shared = any(one.branches_from for one in system.chains)
    twice = " (what chains share counts for each)" if shared else ""
    what = (
        f"executor '{executor.name}' {given} of a core, and chain '{chain}' with all that may go before it asks for "
        f"{_percent(why.asked_permille)}{twice}; {remedy}"
    )
    return Root("overload", index, what, None, executor.name)


def starvation_root(system: System, executor: str, group: str) -> Root:
    shared = shared_of_group(group)
    if shared:
        what = (
            f"rclcpp's MultiThreadedExecutor may leave messages to {shared}, which several chains send, waiting "
            "(ros2/rclcpp#2360, #2645, #2702); give the executor one lane"
        )
        return Root("starvation", _executor_path(system, executor), what, None, executor)
    number = next(index for index, one in enumerate(system.groups) if one.name == group)
    what = (
        f"rclcpp's MultiThreadedExecutor may leave a callback of the exclusive group '{group}' waiting for ever "
        "(ros2/rclcpp#2360, #2645, #2702); give the executor one lane or the callbacks groups of their own, or use "
        "EventsCBGExecutor"
    )
    return Root("starvation", ("groups", number), what, None, executor)


def fair_root(system: System, executor: str) -> Root:
    path = _executor_path(system, executor)
    what = (
        f"the threads of executor '{described_executor_of(executor)}' have SCHED_OTHER, which limits no delay; give "
        'them SCHED_FIFO and a core each, and write scheduling = "fifo", or SCHED_DEADLINE, and write "deadline"'
    )
    return Root("fair", path, what, None, executor)


def global_root(system: System, executor: str) -> Root:
    """The reason for an executor, or a thread of callback_isolated, that has a priority but no core."""
    group = next((n for n, one in enumerate(system.groups) if executor.endswith(f":{one.name}")), None)
    own = group is not None and system.groups[group].thread_priority is not None
    path = ("groups", group) if group is not None and own else _executor_path(system, executor)
    what = (
        f"the thread of '{executor}' has a priority and shares several cores with others, for which there is no bound; "
        "pin it: add core = N"
    )
    return Root("global", (*path, "thread_priority"), what, None, executor)


def link_root(system: System, told: LinkChainAnswer) -> Root:
    root = told.root or told.chain
    chain = chain_of(root)
    shares = (Part(kind, value_ns, other and chain_of(other)) for kind, value_ns, other in told.reached_parts)
    before = f"it needs a bound of chain '{root}', which has none: "
    what = (told.reason or "").removeprefix(before)
    kind = "busy" if what.startswith("more urgent chains keep") else "link"
    # For an overload, the largest part of a window of one period does not explain the cause.
    part = max(shares, key=lambda one: one.value_ns, default=None) if kind == "link" else None
    what += _most(part)
    reached_ns, limit_ns = (told.reached_ns, told.limit_ns) if told.reached_ns else (None, None)
    path = _chain_path(system, chain)
    if system.chain(chain).deadline_ns > system.chain(chain).period_ns and reached_ns is not None:
        path = (*path, "deadline_ms")
    return Root(kind, path, what, chain, None, reached_ns, limit_ns, part)


# ---- bounds ----


class Assumption(NamedTuple):
    """An assumption of bounds. id: selects how a run checks it. values: its limits. places: the boards or links that it
    names; if empty, tide_tools.analysis.premises says what it is about."""

    id: str
    text: str
    values: dict[str, int] = {}  # noqa: RUF012
    places: tuple[str, ...] = ()


# A part as the analysis returns it: kind, time, interfering chain, executor.
Share = tuple[str, int, str | None] | tuple[str, int, str | None, str | None]


@dataclass(frozen=True)
class Model:
    """What the bounds assume about an executor: the order in which it takes callbacks."""

    executor: str
    model: str
    text: str


class Likely(NamedTuple):
    """A bound that an instance keeps with a probability of at least 1 - late (docs/analysis/link.md, Measured delays).
    share: the quantile of the delays from which the bound is computed. messages: number of messages that must not take
    longer than this quantile; 0: none can, because it is the longest delay. instances: number of instances that send
    these messages, including the instance itself."""

    share: Decimal
    bound_ns: int
    messages: int
    instances: int
    late: Decimal

    def to_json(self) -> dict[str, Any]:
        return self._asdict() | {"share": float(self.share), "late": float(self.late)}


@dataclass(frozen=True)
class PathBound:
    """The bounds of a path, in nanoseconds. reason: why it has none; None: it has bounds. likely: true if a chain of
    the path has only a probability, because of measured delays; the bounds are those for the longest delays."""

    name: str
    chains: tuple[str, ...]
    reaction_ns: int | None
    reaction_limit_ns: int | None
    age_ns: int | None
    age_limit_ns: int | None
    reason: str | None = None
    likely: bool = False

    @property
    def is_limited(self) -> bool:
        return self.reaction_limit_ns is not None or self.age_limit_ns is not None

    @property
    def met(self) -> bool:
        """True if it is guaranteed that the path keeps its limits."""
        return self.is_within and not self.likely

    @property
    def is_within(self) -> bool:
        """True if the path has bounds, and these are within its limits; a path need not have limits (is_limited)."""
        if self.reason is not None:
            return False
        pairs = ((self.reaction_ns, self.reaction_limit_ns), (self.age_ns, self.age_limit_ns))
        return all(limit is None or (bound is not None and bound <= limit) for bound, limit in pairs)

    @property
    def slack(self) -> float:
        """The smallest slack as a share of its limit; infinite if the path has no limits, minus infinity if it has no
        bounds."""
        if self.reason is not None:
            return -inf
        pairs = ((self.reaction_ns, self.reaction_limit_ns), (self.age_ns, self.age_limit_ns))
        shares = ((limit - bound) / limit for bound, limit in pairs if limit is not None and bound is not None)
        return min(shares, default=inf)

    def to_json(self) -> dict[str, Any]:
        names = "name chains reaction_ns reaction_limit_ns age_ns age_limit_ns"
        met = self.met if self.is_limited or not self.met else None
        return {**_members(self, names), "met": met, "reason": self.reason}


def _part_json(kind: str, value_ns: int, chain: str | None, executor: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "value_ns": value_ns, "chain": chain, "executor": executor}


@dataclass(frozen=True)
class ChainBound:
    """The bound of one chain, which holds whether or not the deadline is met. bound_ns: None if the chain has no bound;
    `root` is then the first failure. bound_ns and deadline_ns count from the nominal expiry of the chain's timer;
    from_event_ns counts from a change at the chain's input. For a chain that begins with an event, both count from the
    event. holds_for: the policies for which the bound is proved (tide_tools.analysis.lower)."""

    name: str
    priority: int
    bound_ns: int | None
    deadline_ns: int
    met: bool
    lateness_ns: int = 0
    hidden: bool = False
    root: Root | None = None
    holds_for: tuple[str, ...] = ()
    find_parts: Callable[[], Sequence[Share]] = field(default=tuple, repr=False, compare=False)
    find_depends_on: Callable[[], tuple[str, ...]] = field(default=tuple, repr=False, compare=False)
    find_sections: Callable[[], tuple[tuple[str, int | None], ...]] = field(default=tuple, repr=False, compare=False)
    from_event_ns: int | None = None
    deadline_from: str = "tick"
    begins_with_event: bool = False
    # By share of the delays; only for a chain whose messages cross a link with measured delays, so that nothing is
    # guaranteed.
    likely: tuple[Likely, ...] = ()
    sufficient: Decimal | None = None  # the probability that suffices

    @cached_property
    def best(self) -> Likely | None:
        """The greatest probability with which the deadline is met; None: no probability is known, or the chain needs
        none."""
        if not self.likely or self.bound_ns is None:
            return None
        every = (*self.likely, Likely(Decimal(1), self.bound_ns, 0, 1, Decimal(0)))
        met = [one for one in every if one.bound_ns <= self.deadline_ns and one.late < 1]
        return min(met, key=lambda one: (one.late, one.bound_ns), default=None)

    @property
    def suffices(self) -> bool:
        """True if the deadline is guaranteed, or met with the probability that suffices."""
        best = self.best
        return self.met or (best is not None and self.sufficient is not None and 1 - best.late >= self.sufficient)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts, which add up to the bound. They are computed only on request, because 100 chains over a line have
        10,000 parts."""
        return tuple(starmap(Part, self.find_parts()))

    @cached_property
    def sections(self) -> tuple[tuple[str, int | None], ...]:
        """For a chain over several boards: each board with the bound until the chain leaves it; the last one is the
        bound of the chain."""
        return self.find_sections()

    @cached_property
    def depends_on(self) -> tuple[str, ...]:
        return self.find_depends_on()

    @property
    def reason(self) -> str | None:
        return None if self.root is None else self.root.reason(self.name)

    @property
    def slack_ns(self) -> int | None:
        return None if self.bound_ns is None else self.deadline_ns - self.bound_ns

    def to_json(self) -> dict[str, Any]:
        names = "name priority bound_ns deadline_ns from_event_ns deadline_from met"
        more = "lateness_ns hidden depends_on reason holds_for slack_ns"
        return {
            **_members(self, names),
            "parts": [_part_json(*share) for share in self.find_parts()],
            **_members(self, more),
            "root": self.root and self.root.to_json(),
            "likely": [one.to_json() for one in self.likely],
            "best": self.best and self.best.to_json(),
        }


@dataclass(frozen=True)
class Bounds:
    """The bounds of a system's chains, most urgent first, for one value of --executor. models: what the bounds assume
    about each executor."""

    system: str
    executor: str
    met: bool
    chains: tuple[ChainBound, ...]
    assumptions: tuple[Assumption, ...] = field(default=())
    models: tuple[Model, ...] = field(default=())
    paths: tuple[PathBound, ...] = field(default=())
    # Name of a chain or of an alternative of it, a board, and what the chain uses there.
    uses: tuple[tuple[str, str, Use], ...] = field(default=())
    uses_of_chains: Uses = field(default_factory=dict)
    needs: tuple[Need, ...] = field(default=())  # one entry for each board with a link

    def chain(self, name: str) -> ChainBound:
        return next(chain for chain in self.chains if chain.name == name)

    @property
    def suffices(self) -> bool:
        """True if each deadline is guaranteed, or met with the probability that suffices."""
        return all(one.suffices for one in self.chains) and all(one.is_within for one in self.paths)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "system": self.system,
            "executor": self.executor,
            "met": self.met,
            "chains": [bound.to_json() for bound in self.chains],
            "paths": [path.to_json() for path in self.paths],
            "models": [vars(model) for model in self.models],
            "assumptions": [one._asdict() for one in self.assumptions],
        }
