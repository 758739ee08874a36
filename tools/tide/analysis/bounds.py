# SPDX-License-Identifier: Apache-2.0
"""Bounds of a system, computed by the analysis in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from tide.analysis import boards, bursts, trees
from tide.analysis.ask import AnalysisError, ask_executors, ask_link
from tide.analysis.joins import latest, without_joins
from tide.analysis.locks import waits_of
from tide.analysis.lower import (
    ClientExecutor,
    HostPolicy,
    NoBoundError,
    described_executor,
    executor_of_board,
    hop_before,
    host_document,
    is_on_host,
    link_document,
    own_priorities,
    refuse_link,
    shared_exclusive_groups,
    stretches_of,
)
from tide.analysis.models import Model, host_models, line_models
from tide.analysis.names import chain_of
from tide.analysis.parts import Part
from tide.analysis.paths import PathBound, path_bounds
from tide.analysis.premises import of_every_bound
from tide.analysis.reasons import Root, host_root, link_root, starvation_root
from tide.analysis.sections import HOST, all_of
from tide.analysis.sizing import Need, Use, Uses, need_of
from tide.analysis.trees import has_trees, latest_ways, named
from tide.system.levels import too_many_levels
from tide.system.locate import Path
from tide.system.model import Chain, System
from tide.system.places import SerialLink
from tide.system.servers import servers_of, with_servers

if TYPE_CHECKING:
    from tide.analysis.native import ChainAnswer, ExecutorsAnswer, LinkAnswer, LinkChainAnswer

CLIENT_EXECUTORS: tuple[ClientExecutor, ...] = ("tide", "lanes", "batch", "batch_stock", "batch_blocking")
HOST_POLICIES: tuple[HostPolicy, ...] = ("default", "priority", "rclcpp", "any_order")


class Assumption(NamedTuple):
    """What bounds take for granted: `id` tells a run which of its counters answers it, `values` are the limits. places:
    the boards or links that it names; empty: tide.analysis.premises knows what it is about."""

    id: str
    text: str
    values: dict[str, int] = {}  # noqa: RUF012
    places: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


# A part, as the analysis tells it: kind, time, the chain whose it is, the executor where it is.
Share = tuple[str, int, str | None] | tuple[str, int, str | None, str | None]


@dataclass(frozen=True)
class ChainBound:
    """The bound of one chain. It holds whether or not the deadline is met. None: there is none, and `root` says what
    fails first. bound_ns and deadline_ns count from the nominal expiry of its timer, from_event_ns from a change at its
    input, or from the event that begins it. holds_for: the policies of the executors that it is proved for
    (tide.analysis.models)."""

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

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """They add up to the bound. Made when they are asked for: 100 chains over a line have 10,000."""
        return tuple(starmap(Part, self.find_parts()))

    @cached_property
    def sections(self) -> tuple[tuple[str, int | None], ...]:
        """Of a chain over several boards: by board the bound until it leaves it; the last is that of the chain."""
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


@dataclass(frozen=True)
class Bounds:
    """All chains of a system under one executor, most urgent first. models: what is supposed of executors
    of the host."""

    system: str
    executor: str
    met: bool
    chains: tuple[ChainBound, ...]
    assumptions: tuple[Assumption, ...] = field(default=())
    models: tuple[Model, ...] = field(default=())
    paths: tuple[PathBound, ...] = field(default=())
    uses: tuple[tuple[str, str, Use], ...] = field(default=())  # by chain or way of one, and board
    uses_of_chains: Uses = field(default_factory=dict)
    needs: tuple[Need, ...] = field(default=())  # by board that has a link

    def chain(self, name: str) -> ChainBound | None:
        return next((chain for chain in self.chains if chain.name == name), None)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "system": self.system,
            "executor": self.executor,
            "met": self.met,
            "chains": [
                {
                    "name": bound.name,
                    "priority": bound.priority,
                    "bound_ns": bound.bound_ns,
                    "deadline_ns": bound.deadline_ns,
                    "from_event_ns": bound.from_event_ns,
                    "deadline_from": bound.deadline_from,
                    "met": bound.met,
                    "parts": [_part_json(*share) for share in bound.find_parts()],
                    "lateness_ns": bound.lateness_ns,
                    "hidden": bound.hidden,
                    "depends_on": bound.depends_on,
                    "reason": bound.reason,
                    "root": bound.root and bound.root.to_json(),
                    "holds_for": bound.holds_for,
                    "slack_ns": bound.slack_ns,
                }
                for bound in self.chains
            ],
            "paths": [path.to_json() for path in self.paths],
            "models": [model.to_json() for model in self.models],
            "assumptions": [one.to_json() for one in self.assumptions],
        }


def _part_json(kind: str, value_ns: int, chain: str | None, executor: str | None = None) -> dict[str, Any]:
    return {"kind": kind, "value_ns": value_ns, "chain": chain, "executor": executor}


def bounds_of(system: System, executor: str | None = None, losses: int = 0) -> Bounds:
    """NoBoundError or AnalysisError when there is no analysis for it. executor: of the client, or the policy of the
    host's executors where no chain touches the microcontroller; None: that of the description (tide, or lanes), or
    default."""
    bounds = _with_pools(system, _bounds_of_chains(with_servers(system), executor, losses))
    if not is_on_host(system):
        bounds = replace(bounds, assumptions=(*bounds.assumptions, *_hops(system)))
    bounds = _with_paths(system, _with_locks(system, _with_servers(system, bounds)))
    always = (*_queues(system, bounds.chains), *(Assumption(*one) for one in of_every_bound(system)))
    chains = tuple(
        _from_event(system.chain(one.name), system.timer_of(system.chain(one.name)), one) for one in bounds.chains
    )
    return replace(bounds, chains=chains, assumptions=(*bounds.assumptions, *always))


def _queues(system: System, chains: Sequence[ChainBound]) -> Iterator[Assumption]:
    """What executors of the host must keep: instances of a chain that are under way at once, by its bound."""
    waiting: dict[str, int] = {}
    for bound in chains:
        chain = system.chain(bound.name)
        if bound.bound_ns is not None and any(
            one.kind == "subscription" and system.where(one) == "host" for one in chain.callbacks
        ):
            waiting[bound.name] = max(-(-bound.bound_ns // chain.period_ns), 1)
    if waiting:
        several = ", ".join(f"{name} {count}" for name, count in waiting.items() if count > 1)
        text = f"subscriptions of the host keep {'at least these messages' if several else 'one message at least'}"
        yield Assumption("depth", text + (f" (QoS depth): {several}, others 1" if several else " (QoS depth)"), waiting)
    late = [
        one.name
        for one in chains
        if one.bound_ns is not None
        and one.bound_ns > system.chain(one.name).period_ns
        and system.where(system.path(system.chain(one.name))[0]) == "host"
    ]
    if late:
        text = f"a timer of {', '.join(late)} that is late runs once for each expiry; rclcpp and rclpy merge those"
        yield Assumption("expiries", text)


def _from_event(chain: Chain, timer: Chain, bound: ChainBound) -> ChainBound:
    """What changes just after an expiry is seen at the next one: a period and the bound, as the reaction time of a path
    of this chain alone (docs/analysis/paths.md). Where an instance may be under way at the next expiry, nothing is
    known. A chain that begins with an event starts when it comes."""
    if timer.begins_with_event:
        return replace(bound, from_event_ns=bound.bound_ns, deadline_from="event", begins_with_event=True)
    in_period = bound.bound_ns is not None and bound.bound_ns <= timer.period_ns
    event_ns = timer.period_ns + (bound.bound_ns or 0) if in_period else None
    return replace(bound, from_event_ns=event_ns, deadline_from=chain.deadline_from)


_SERVERS = Assumption(
    "servers",
    "a service that several chains ask is one callback, and its requests are taken in order of arrival, one at a time "
    "unless its group is reentrant",
)


def _with_servers(system: System, bounds: Bounds) -> Bounds:
    return replace(bounds, assumptions=(*bounds.assumptions, _SERVERS)) if servers_of(system) else bounds


def _with_pools(system: System, bounds: Bounds) -> Bounds:
    """Pools that are too small for what the chains have under way take the bounds of their board, and of what depends
    on them. They suffice as long as all that has a bound keeps to it, so no bound is broken first."""
    uses: dict[tuple[str, str], Use] = {}
    timers = {chain.name: system.timer_of(chain).name for chain in system.chains}
    trees: dict[str, list[str]] = {}
    for name, timer in timers.items():
        trees.setdefault(timer, []).append(name)
    for way, board, use in bounds.uses:
        for name in trees[timers[chain_of(way)]]:  # of one timer whoever is the latest
            key = name, board
            uses[key] = use if key not in uses else _more(uses[key], use)
    boards_of = {board for _, board, _ in bounds.uses}
    needs = tuple(need_of(system, board, uses) for board in system.boards() if board.name in boards_of)
    if not needs:
        return bounds
    roots: dict[str, Root] = {}
    for need in needs:
        if not need.lacking and not need.agent:
            continue
        index = system.executors.index(need.board)
        path = ("executors", index, "pools") if need.lacking else ("executors", index)
        root = Root("pools", path, "; ".join((*need.lacking, *need.agent)), None, need.board.name)
        roots |= {chain: root for chain, board in uses if board == need.board.name}
    chains = _without(bounds.chains, roots)
    assumptions = [one for one in bounds.assumptions if one.id != "pools"]
    at = next((index for index, one in enumerate(bounds.assumptions) if one.id == "pools"), len(assumptions))
    assumptions[at:at] = map(_pools, needs)
    met = bounds.met and not roots
    return replace(bounds, met=met, chains=chains, assumptions=tuple(assumptions), uses_of_chains=uses, needs=needs)


def uses_of(system: System) -> Uses:
    """By which the pools of a description are sized; nothing where it has no bounds."""
    try:
        return bounds_of(system).uses_of_chains
    except (NoBoundError, AnalysisError):
        return {}


def _more(one: Use, other: Use) -> Use:
    if one.sent is None or one.taken is None or other.sent is None or other.taken is None:
        return Use(None, None)
    return Use(max(one.sent, other.sent), max(one.taken, other.taken))


def _without(chains: tuple[ChainBound, ...], roots: dict[str, Root]) -> tuple[ChainBound, ...]:
    """Without the bounds of these, and of those that depend on them."""
    if not roots:
        return chains
    found = dict(roots)
    changed = True
    while changed:
        changed = False
        for chain in chains:
            if chain.name in found or chain.bound_ns is None:
                continue
            cause = next((other for other in chain.depends_on if other in found), None)
            if cause is not None:
                found[chain.name] = found[cause]
                changed = True
    return tuple(
        replace(chain, bound_ns=None, met=False, root=found[chain.name], find_parts=tuple, find_sections=tuple)
        if chain.name in found and chain.bound_ns is not None
        else chain
        for chain in chains
    )


def _pools(need: Need) -> Assumption:
    """What the firmware must have for the bounds to hold, in numbers."""
    sizes = need.sizes
    counts = [
        f"{sizes[key]} {several if sizes[key] > 1 else single} of {sizes[size]} bytes"
        for key, size, single, several in (
            ("small_nodes", "small_node_bytes", "small node", "small nodes"),
            ("large_nodes", "large_node_bytes", "large node", "large nodes"),
            ("reassemblies", "reassembly_bytes", "reassembly", "reassemblies"),
        )
        if sizes[key]
    ]
    text = f"board '{need.board.name}' has {'' if need.is_stated else 'at least '}"
    text += f"{', '.join(counts)}, {sizes['slots']} slots and windows of {sizes['window']} frames, as "
    text += "its pools say" if need.is_stated else "tide footprint --header writes"
    if not need.is_stated and need.above_defaults:
        text += "; the runtime's defaults are too small: " + ", ".join(need.above_defaults)
    if need.unbounded:
        text += f"; of {', '.join(need.unbounded)}, without a bound, no more than 2 messages are under way at once"
    return Assumption("pools", text, dict(sizes), (need.board.name,))


_LOCKS = Assumption(
    "locks",
    "callbacks take the locks that are named, one at a time, for no longer than section_ms; who waits is served in "
    "order of arrival; callbacks of the host that share one are in one process",
)


def _with_locks(system: System, bounds: Bounds) -> Bounds:
    return replace(bounds, assumptions=(*bounds.assumptions, _LOCKS)) if system.locks else bounds


_SAMPLING = Assumption(
    "sampling",
    "a chain of a path leaves its value at its end at the latest, and the timer of the next takes the latest",
)


_JOINING = Assumption(
    "joining",
    "a chain that joins messages starts when the last one of the same expiry is there, in that one's subscription; "
    "to keep one that comes before takes no time but what the executor needs to take it",
)


def _with_paths(system: System, bounds: Bounds) -> Bounds:
    if not system.paths:
        return bounds
    paths = path_bounds(system, {chain.name: chain for chain in bounds.chains})
    met = bounds.met and all(path.met for path in paths)
    sampled = (_SAMPLING,) if any(len(path.chains) > 1 for path in system.paths) else ()
    return replace(bounds, met=met, paths=paths, assumptions=(*bounds.assumptions, *sampled))


def _bounds_of_chains(system: System, executor: str | None, losses: int) -> Bounds:
    if is_on_host(system):
        policy = next((name for name in HOST_POLICIES if name == executor), HOST_POLICIES[0])
        if policy == "priority" and not own_priorities(system) and (findings := too_many_levels(system)):
            raise NoBoundError(findings)
        if not any(chain.joins for chain in system.chains):
            return _bounds_where_instances_meet(system, policy)
        bounds = _bounds_where_instances_meet(without_joins(system), policy)
        chains = latest(system, bounds.chains)
        assumptions = (*bounds.assumptions, _JOINING)
        met = all(chain.met for chain in chains)
        return replace(bounds, met=met, chains=_by_urgency(chains), assumptions=assumptions)
    asked = next((name for name in CLIENT_EXECUTORS if name == executor), None)
    apart = _apart_from_boards(system)
    if bursts.has_bursts(system):
        return bursts.joined(system, lambda events: _bounds_of_chains(events, executor, losses))
    if apart:
        rest = [chain.name for chain in system.chains if chain.name not in apart]
        on_boards = _bounds_of_part(system, rest, executor, losses)
        return _together(on_boards, _bounds_of_part(system, apart, "any_order", 0))
    if has_trees(system):
        return _bounds_of_ways(system, asked, losses)
    return _bounds_over_lines(system, asked, losses)


def _apart_from_boards(system: System) -> list[str]:
    """Chains of the host that meet no chain of a board, nor one that does: on no executor, and at no lock."""
    executors = {chain.name: {one.executor for one in system.path(chain)} for chain in system.chains}
    for lock in system.locks:
        shared = {f"lock {lock.name}"}
        for section in lock.sections:
            executors[section.callback[0]] |= shared
    met = {board.name for board in system.boards()}
    while True:
        more = {place for places in executors.values() if places & met for place in places}
        if more <= met:
            return [name for name, places in executors.items() if not places & met]
        met |= more


def _part_of(system: System, names: Sequence[str]) -> System:
    """These chains alone, on executors that they use; boards stay where there is one."""
    chains = tuple(chain for chain in system.chains if chain.name in names)
    used = {one.executor for chain in chains for one in system.path(chain)}
    executors = tuple(one for one in system.executors if one.name in used)
    on_board = any(one.where == "mcu" for one in executors)
    members = {one.group for chain in chains for one in chain.callbacks}
    return system.model_copy(
        update={
            "chains": chains,
            "executors": executors,
            "links": system.links if on_board else (),
            "groups": tuple(group for group in system.groups if group.name in members),
            "locks": tuple(lock for lock in system.locks if lock.sections[0].callback[0] in names),
            "paths": (),
        }
    )


def _bounds_of_part(system: System, names: Sequence[str], executor: str | None, losses: int) -> Bounds:
    """What is said of entries counts for those of the whole description."""
    part = _part_of(system, names)

    def of_whole(path: Path) -> Path:
        kind, index, *rest = path
        if not isinstance(index, int) or kind not in ("chains", "executors", "groups", "locks"):
            return path
        name = getattr(part, str(kind))[index].name
        place = next(place for place, one in enumerate(getattr(system, str(kind))) if one.name == name)
        return (kind, place, *rest)

    try:
        bounds = _bounds_of_chains(part, executor, losses)
    except NoBoundError as error:
        raise NoBoundError([replace(one, path=of_whole(one.path)) for one in error.findings]) from None
    chains = tuple(
        replace(one, root=one.root and replace(one.root, path=of_whole(one.root.path))) for one in bounds.chains
    )
    return replace(bounds, chains=chains)


def _together(boards_part: Bounds, host_part: Bounds) -> Bounds:
    taken = {one.id for one in boards_part.assumptions}
    more = [one for one in host_part.assumptions if one.id not in taken]
    return replace(
        boards_part,
        met=boards_part.met and host_part.met,
        chains=_by_urgency([*boards_part.chains, *host_part.chains]),
        assumptions=(*boards_part.assumptions, *more),
        models=(*boards_part.models, *host_part.models),
    )


def _bounds_of_ways(system: System, asked: ClientExecutor | None, losses: int) -> Bounds:
    refuse_link(system, asked, losses)  # by the entries of the description
    ways = trees.ways_of(system)
    bounds = _bounds_over_lines(ways.system, asked, losses)
    chains = _by_urgency(latest_ways(system, ways, bounds.chains))
    joining = (_JOINING,) if any(chain.joins for chain in system.chains) else ()
    assumptions = (*map(_by_chains, bounds.assumptions), *joining)
    met = all(chain.met for chain in chains)
    return replace(bounds, met=met, chains=chains, assumptions=assumptions, models=line_models(system, asked))


def _by_chains(one: Assumption) -> Assumption:
    """Of what is supposed of ways that branch: by the chains as they are described."""
    return one._replace(text=named(one.text), values={chain_of(name): value for name, value in one.values.items()})


def _bounds_over_lines(system: System, asked: ClientExecutor | None, losses: int) -> Bounds:
    if len(system.boards()) > 1:
        return _board_bounds(system, asked, losses)
    answer = ask_link(link_document(system, asked, losses))
    return _link_bounds(system, asked or described_executor(system), answer)


def _bounds_where_instances_meet(system: System, policy: HostPolicy) -> Bounds:
    """A callback never overlaps itself, which may keep an instance from a free lane. That is left out, which is worth
    a lot, where bounds end before the next release: until the first bound is broken no instance meets the one before it
    there, so no bound is broken first. Elsewhere it counts, whether or not the deadline is met."""
    late = [chain for chain in system.chains if chain.deadline_ms > chain.period_ms]
    meeting = {one.name for chain in late for one in stretches_of(system, chain)}
    while True:
        document = host_document(system, policy, meeting)
        answer = ask_executors(document, refine=True, joint=True, cap_running=True, sharpen=True)
        found = _stretches_that_meet(system, answer)
        if found <= meeting:
            return _host_bounds(system, policy, answer)
        meeting |= found


def _stretches_that_meet(system: System, answer: ExecutorsAnswer) -> set[str]:
    """Those that may end after the next expiry of their timer: none of its instances is in a stretch before."""
    told = {one.chain: one.response_ns for one in answer.chains}
    found: set[str] = set()
    for chain in system.chains:
        end_ns = system.timer_of(chain).jitter_ns
        stretches = stretches_of(system, chain)
        for number, one in enumerate(stretches):
            response_ns = told[one.name]
            end_ns += chain.period_ns + 1 if response_ns is None else response_ns
            end_ns += hop_before(system, stretches, number) if number else 0
            if end_ns > chain.period_ns:
                found.add(one.name)
    return found


def executors_for(system: System) -> tuple[str, ...]:
    """What `bounds_of` can compare for this system."""
    return HOST_POLICIES if is_on_host(system) else CLIENT_EXECUTORS


def _link_bounds(system: System, executor: ClientExecutor, answer: LinkAnswer) -> Bounds:
    chains = [_link_bound(system, chain, told) for chain, told in zip(system.chains, answer.chains, strict=True)]
    assumed = tuple(Assumption(one.id, one.text, dict(one.values)) for one in answer.assumptions)
    assumptions = (*_not_given(system), *assumed)
    uses = tuple(
        (one.chain, board.name, _use(one, one.response_ns is not None))
        for board in system.boards()
        if system.links
        for one in answer.chains
        if any(callback.executor == board.name for callback in system.chain(one.chain).callbacks)
    )
    models = line_models(system, executor)
    return Bounds(system.name, executor, answer.met, _by_urgency(chains), assumptions, models, uses=uses)


def _use(answer: LinkChainAnswer, has_bound: bool) -> Use:
    return Use(answer.up[0], answer.down[0]) if has_bound else Use(None, None)


def _link_bound(system: System, chain: Chain, told: LinkChainAnswer) -> ChainBound:
    return ChainBound(
        chain.name,
        chain.priority,
        told.response_ns,
        chain.deadline_ns,
        told.met,
        told.lateness_ns,
        told.hidden,
        link_root(system, told) if told.response_ns is None else None,
        ("any_order",),
        lambda: told.parts,
        lambda: told.depends_on,
    )


def _board_bounds(system: System, executor: ClientExecutor | None, losses: int) -> Bounds:
    found = boards.bound_boards(system, executor, losses, ask_link)
    chains = [_board_bound(chain, found) for chain in system.chains]
    assumed = tuple(starmap(Assumption, boards.assumed(system, found)))
    used = {one.place for sections in found.sections.values() for one in sections}
    described = {executor_of_board(board) for board in system.boards() if board.name in used}
    name = executor or (described.pop() if len(described) == 1 else "described")
    met = all(chain.met for chain in chains)
    models = line_models(system, executor)
    uses = tuple(
        (one.name, one.place, _use(found.answers[one.name], one.name not in found.roots))
        for sections in found.sections.values()
        for one in all_of(sections)
        if one.place != HOST
    )
    return Bounds(system.name, name, met, _by_urgency(chains), (*_not_given(system), *assumed), models, uses=uses)


def _board_bound(chain: Chain, found: boards.Found) -> ChainBound:
    sections = found.sections[chain.name]
    bound_ns = boards.response_ns(found, sections)
    root = None
    if bound_ns is None:
        root = next(found.roots[one.name] for one in sections if one.name in found.roots)
    return ChainBound(
        chain.name,
        chain.priority,
        bound_ns,
        chain.deadline_ns,
        bound_ns is not None and bound_ns <= chain.deadline_ns,
        sum(found.answers[one.name].lateness_ns for one in sections),
        len(sections) == 1 and found.answers[sections[0].name].hidden,
        root,
        ("any_order",),
        lambda: boards.parts_of(found, sections),
        lambda: boards.depends_on(found, sections),
        lambda: boards.until(found, sections),
    )


def _not_given(system: System) -> list[Assumption]:
    """What a bound is made of and the description does not say."""
    lines = []
    for kind, entries, names in (
        ("link", _used_lines(system), ("agent_ms", "return_ms")),
        ("executor", [one for one in system.executors if one.where == "mcu"], ("submit_ms", "process_ms")),
    ):
        for entry in entries:
            absent = [name for name in names if name not in entry.model_fields_set]
            if absent:
                text = f"{' and '.join(absent)} of {kind} '{entry.name}' are 0 ms: the description gives none"
                boards = [entry.name] if kind == "executor" else _boards_of(system, entry.name)
                lines.append(Assumption("not_given", text, dict.fromkeys(absent, 0), tuple(boards)))
    return lines


def _boards_of(system: System, link: str) -> list[str]:
    return [one.name for one in system.boards() if (found := system.link_of_board(one)) and found.name == link]


def _used_lines(system: System) -> list[SerialLink]:
    """Boards have them; a single one may leave open which."""
    every = [system.link_of_board(board) for board in system.boards()]
    known = {one.name for one in every if one is not None}
    return [link for link in system.links if isinstance(link, SerialLink) and (link.name in known or None in every)]


def _by_urgency(chains: list[ChainBound]) -> tuple[ChainBound, ...]:
    return tuple(sorted(chains, key=lambda chain: -chain.priority))


_HOST_ASSUMPTIONS = (
    Assumption("execution", "execution times are worst cases and contain what the executor itself spends"),
    Assumption("own_cores", "every thread without a budget has a core of its own"),
    Assumption("work_conserving", "a free thread takes a ready callback at once"),
)
_SHORTEST = Assumption("shortest_execution", "no execution is shorter than its least_ms")


def _host_bounds(system: System, policy: HostPolicy, answer: ExecutorsAnswer) -> Bounds:
    told = {one.chain: one for one in answer.chains}
    starving = _starving(system) if policy == "rclcpp" else {}
    chains = []
    proved: dict[str, set[str]] = {one.executor: set() for one in answer.chains}
    for chain in system.chains:
        stretches = [told[one.name] for one in stretches_of(system, chain)]
        bound = _host_bound(system, chain, stretches, starving.get(chain.name))
        if bound.bound_ns is not None:
            for one in stretches:
                proved[one.executor].add(one.holds_for)
        chains.append(bound)
    met = all(chain.met for chain in chains)
    models = host_models(system, policy, proved)
    return Bounds(system.name, policy, met, _by_urgency(chains), _host_assumptions(system), models)


def _host_assumptions(system: System) -> tuple[Assumption, ...]:
    """Shortest executions count in how late a stretch is released after another one."""
    before = [one for chain in system.chains for one in stretches_of(system, chain)[:-1]]
    shortest = any(callback.least_ns for one in before for callback in one.callbacks)
    return (*_HOST_ASSUMPTIONS, *_hops(system), *((_SHORTEST,) if shortest else ()))


def _hops(system: System) -> tuple[Assumption, ...]:
    """What a message between two executors of the host may take, by the callback that it starts."""
    hops_ns = {}
    for chain in system.chains:
        for way in system.ways(chain):
            for before, callback in itertools.pairwise(way):
                if before.executor != callback.executor and system.where(before) == system.where(callback) == "host":
                    owner = next(one.name for one in system.chains if any(callback is each for each in one.callbacks))
                    hops_ns[f"{owner}.{callback.name}"] = system.hop_ns(before, callback)
    if not hops_ns:
        return ()
    most_ns = max(hops_ns.values())
    text = f"DDS takes at most {most_ns / 1e6:g} ms between two executors of the host (propagation_ms)"
    if not most_ns:
        text = "DDS takes no time between two executors of the host, as no propagation_ms is given"
    elif len(set(hops_ns.values())) > 1:
        listed = ", ".join(f"{name} {value_ns / 1e6:g} ms" for name, value_ns in hops_ns.items())
        text = f"DDS takes no longer between two executors of the host than propagation_ms says: {listed}"
    return (Assumption("dds", text, hops_ns),)


def _propagation_ns(system: System, chain: Chain) -> int:
    stretches = stretches_of(system, chain)
    return sum(hop_before(system, stretches, number) for number in range(1, len(stretches)))


def _host_bound(system: System, chain: Chain, stretches: list[ChainAnswer], root: Root | None) -> ChainBound:
    why = next((one.why for one in stretches if one.why is not None), None)
    if root is None and why is not None:
        root = host_root(system, why)
    if root is not None:
        return ChainBound(chain.name, chain.priority, None, chain.deadline_ns, False, root=root)
    jitter_ns = system.timer_of(chain).jitter_ns
    under_way_ns = _propagation_ns(system, chain)
    bound_ns = jitter_ns + under_way_ns + sum(one.response_ns or 0 for one in stretches)
    several = len(stretches) > 1

    def parts() -> list[Share]:
        waits_ns = waits_of(system)
        waiting_ns = sum(waits_ns.get(id(one), 0) for one in system.path(chain))
        late: list[Share] = [("jitter", jitter_ns, None)] if jitter_ns else []
        late += [("propagation", under_way_ns, None)] if under_way_ns else []
        told: list[Share] = [
            (kind, value_ns, other and chain_of(other), one.executor if several else None)
            for one in stretches
            for kind, value_ns, other in one.parts
        ]
        return late + _apart(told, waiting_ns)

    def depends_on() -> tuple[str, ...]:
        names = {chain_of(other) for one in stretches for other, _ in one.depends_on}
        return tuple(sorted(names - {chain.name}))

    return ChainBound(
        chain.name,
        chain.priority,
        bound_ns,
        chain.deadline_ns,
        bound_ns <= chain.deadline_ns,
        holds_for=tuple(dict.fromkeys(one.holds_for for one in stretches)),
        find_parts=parts,
        find_depends_on=depends_on,
    )


def _apart(parts: list[Share], waiting_ns: int) -> list[Share]:
    """Of its own callbacks, what they wait for locks."""
    left_ns, told = waiting_ns, list[Share]()
    for part in reversed(parts):
        taken_ns = min(left_ns, part[1]) if part[0] in ("precedence", "last_callback") else 0
        left_ns -= taken_ns
        if part[1] > taken_ns:
            told.append((part[0], part[1] - taken_ns, *part[2:]))
    told.reverse()
    return [*told, ("lock_wait", waiting_ns - left_ns, None)] if waiting_ns > left_ns else told


def _starving(system: System) -> dict[str, Root]:
    """Chains that stock rclcpp may starve, and those that share an executor with them or come after them: of what never
    ran nobody knows when it will."""
    roots = {name: starvation_root(system, name, group) for name, group in shared_exclusive_groups(system).items()}
    found: dict[str, Root] = {}
    while True:
        before = len(found)
        for chain in system.chains:
            places = [one.executor for one in stretches_of(system, chain)]
            root = next((roots[place] for place in places if place in roots), None)
            if root is None:
                continue
            found.setdefault(chain.name, root)
            for place in places:
                roots.setdefault(place, root)
        if len(found) == before:
            return found
