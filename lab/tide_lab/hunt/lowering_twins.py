# SPDX-License-Identifier: Apache-2.0
"""Mutants: deliberate defects in the steps from a description to the analysis. A hunt of whole descriptions must detect
each of them; only then does a hunt without failures mean anything. Each defect changes the input of the analysis."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import tide_tools.analysis.bounds as bounding
from tide_lab.hunt.whole import Trial, hunt_block
from tide_tools.analysis import lower
from tide_tools.analysis.lower import board_document
from tide_tools.analysis.result import alternative_name
from tide_tools.play import boards as boards_play
from tide_tools.play.boards import BoardsPlayer
from tide_tools.system.model import Callback, System

Document = dict[str, Any]
_ASKS = ("ask_executors", "ask_link")


@dataclass(frozen=True)
class Twin:
    """A defect in the translation of descriptions. It exists while the context that `broken` makes is active."""

    name: str
    family: str
    broken: Callable[[], Any]


@dataclass(frozen=True)
class Caught:
    """The result for a defect. `after` is the number of descriptions until it was detected, or 0 if it was not."""

    twin: Twin
    after: int
    what: str = ""


def _in_place_of(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[[], Any]]:
    """Decorator that makes a defect of a function: while the defect exists, the function replaces the one called `name`
    in the module or class `owner`. Its first argument is the replaced function."""

    def decorate(other: Callable[..., Any]) -> Callable[[], Any]:
        def broken() -> Any:
            whole = getattr(owner, name)
            return patch.object(owner, name, lambda *asked, **options: other(whole, *asked, **options))

        return broken

    return decorate


def _asked(change: Callable[[Document], None]) -> Callable[[], Any]:
    """Defect: the analysis gets a changed document (the intermediate form of a description)."""

    def other(whole: Any, document: Document, **options: Any) -> Any:
        changed = copy.deepcopy(document)
        change(changed)
        return whole(changed, **options)

    @contextmanager
    def broken() -> Iterator[None]:
        with ExitStack() as stack:
            for name in _ASKS:
                stack.enter_context(_in_place_of(bounding, name)(other)())
            yield

    return broken


def _described(change: Callable[[Callback], Callback]) -> Callable[[], Any]:
    """Defect: the analysis gets a description with changed callbacks."""

    @_in_place_of(bounding, "bounds_of")
    def other(whole: Any, system: System, *options: Any) -> Any:
        return whole(system.with_callbacks(change), *options)

    return other


def _levels(change: Callable[[dict[str, int]], dict[str, int]]) -> Callable[[], Any]:
    """Defect: the levels with which the boards run differ from those in the bounds."""

    @_in_place_of(boards_play, "levels_of_boards")
    def other(whole: Any, system: System) -> dict[str, dict[str, int]]:
        return {name: change(known) for name, known in whole(system).items()}

    return other


def _reversed_levels(known: dict[str, int]) -> dict[str, int]:
    ranked = sorted(known.values())
    turned = dict(zip(ranked, reversed(ranked), strict=True))
    return {name: turned[level] for name, level in known.items()}


def _two_on_a_level(known: dict[str, int]) -> dict[str, int]:
    """Defect: the two most urgent levels have the same value."""
    most = sorted(known.values())[-2:]
    return {name: most[0] if level in most else level for name, level in known.items()}


# ---- the host ----


def _no_groups(document: Document) -> None:
    document["groups"] = []
    for chain in document["chains"]:
        for callback in chain["callbacks"]:
            callback.pop("group", None)


def _reversed_priorities(document: Document) -> None:
    ranks = sorted(chain["priority"] for chain in document["chains"])
    turned = dict(zip(ranks, reversed(ranks), strict=True))
    for chain in document["chains"]:
        chain["priority"] = turned[chain["priority"]]


def _one_lane_more(document: Document) -> None:
    for executor in document["executors"]:
        if "threads" in executor:
            executor["threads"] += 1
        else:
            executor["lanes"].append(executor["lanes"][0])


def _policy(described: str, asked: str) -> Callable[[Document], None]:
    def changed(document: Document) -> None:
        for executor in document["executors"]:
            if executor["policy"] == described:
                executor["policy"] = asked

    return changed


def _less_urgent_first(document: Document) -> None:
    for executor in document.get("executors", ()):
        if "thread_priority" in executor:
            executor["thread_priority"] *= -1


def _loads_that_run_at_once(document: Document) -> None:
    for load in document.get("client", {}).get("loads", ()):
        load["late_ns"] = 0


def _cores_apart(document: Document) -> None:
    for executor in document.get("executors", ()):
        for key in ("core", "thread_priority"):
            executor.pop(key, None)


@_in_place_of(lower, "lane_of_core")
def _a_lane_for_each_thread(whole: Any, system: System) -> dict[str, str]:
    return {name: name for name in whole(system)}


@_in_place_of(bounding, "with_threads")
def _a_thread_for_each_callback(whole: Any, system: System) -> System:
    threads: System = whole(system.with_callbacks(lambda one: one.model_copy(update={"group": None})))
    return threads


def _lanes(change: Callable[[Document], Document]) -> Callable[[Document], None]:
    def changed(document: Document) -> None:
        for executor in document["executors"]:
            executor["lanes"] = [change(lane) for lane in executor.get("lanes", ())] or None
            if executor["lanes"] is None:
                del executor["lanes"]

    return changed


def _chains(change: Callable[[Document], None]) -> Callable[[Document], None]:
    def changed(document: Document) -> None:
        for chain in document["chains"]:
            change(chain)

    return changed


def _without_first(chain: Document) -> None:
    chain["callbacks"] = chain["callbacks"][1:] or chain["callbacks"]


def _one_callback(chain: Document) -> None:
    """Defect: the callbacks of the chain count as a single one, in which nothing else can run in between."""
    first = chain["callbacks"][0]
    first["execution_ns"] = sum(one["execution_ns"] for one in chain["callbacks"])
    chain["callbacks"] = [first]


def _rarely(chain: Document) -> None:
    chain["period_ns"] *= 2


def _shared_lanes(document: Document) -> None:
    most = max(executor.get("threads", 1) for executor in document["executors"])
    for executor in document["executors"]:
        if "threads" in executor:
            executor["threads"] = most


@_in_place_of(bounding, "ask_executors")
def _without_carried_jitter(whole: Any, document: Document, **options: Any) -> Any:
    """Defect: a chain's bound is the sum of the bounds that its segments have if each is released as punctually as by a
    timer."""
    answer = whole({**document, "paths": []}, **options)
    by_name = {one.chain: one for one in answer.chains}
    paths = []
    for path in document["paths"]:
        parts = [(name, by_name[name].response_ns) for name in path["segments"]]
        known = all(one is not None for _, one in parts)
        response_ns = sum(one for _, one in parts if one is not None) if known else None
        met = response_ns is not None and response_ns <= path["deadline_ns"]
        paths.append(
            SimpleNamespace(
                path=path["name"], response_ns=response_ns, guaranteed=met, segments=parts, why=None, met=met
            )
        )
    return SimpleNamespace(chains=answer.chains, paths=paths)


@_in_place_of(bounding, "bounds_of")
def _branches_without_what_they_share(whole: Any, system: System, *options: Any) -> Any:
    chains = tuple(chain.model_copy(update={"branches_from": None}) for chain in system.chains)
    return whole(system.model_copy(update={"chains": chains}), *options)


@_in_place_of(bounding, "without_joins")
def _joins_of_the_first_only(whole: Any, system: System) -> System:
    """Defect: a chain with a join counts only the waits for its first input."""
    chains = tuple(chain.model_copy(update={"joins": ()}) for chain in system.chains)
    return system.model_copy(update={"chains": chains})


# ---- boards ----


def _part(name: str, **values: Any) -> Callable[[Document], None]:
    def changed(document: Document) -> None:
        document[name] |= values

    return changed


def _one_reader(chain: Document) -> None:
    for callback in chain["callbacks"]:
        callback.pop("readers", None)


def _short_samples(chain: Document) -> None:
    for callback in chain["callbacks"]:
        callback["payload_bytes"] = min(callback["payload_bytes"], 550)


def _fast_ethernet(document: Document) -> None:
    document["line"]["rtps_mbit_per_s"] *= 2


def _one_loss_less(document: Document) -> None:
    document["protocol"]["losses"] -= 1


def _shorter_queue(document: Document) -> None:
    document["line"]["rtps_queued"] -= 1


def _without_hold(chain: Document) -> None:
    chain.pop("hold", None)


def _best_effort(chain: Document) -> None:
    chain["uplink_reliable"] = chain["downlink_reliable"] = False


def _short_messages(chain: Document) -> None:
    for callback in chain["callbacks"]:
        callback["payload_bytes"] = min(callback["payload_bytes"], 1)


def _hosts_at_once(document: Document) -> None:
    for chain in document["chains"]:
        for callback in chain["callbacks"]:
            if callback["executor"] != document["client"]["name"]:
                callback["execution_ns"] = callback["least_ns"] = 0


def _always_as_long(chain: Document) -> None:
    for callback in chain["callbacks"]:
        callback["execution_ns"] = callback["least_ns"]


def _many_lanes(document: Document) -> None:
    for host in document["hosts"]:
        host["lanes"] = 64


def _fast_line(document: Document) -> None:
    document["line"]["baud"] *= 2


# ---- several boards ----


def _no_others(document: Document) -> None:
    """Defect: of the chains on the host, only those of this board count."""
    document["chains"] = [chain for chain in document["chains"] if "response_ns" not in chain]


def _light_beginnings(document: Document) -> None:
    """Defect: the execution times of callbacks that several chains of nodes share do not count."""
    for chain in document["chains"] if "protocol" in document else ():
        for callback in chain["callbacks"]:
            if callback.get("shared", 0) > 0:
                callback |= {"execution_ns": 0, "least_ns": 0}


def _punctual_sections(chain: Document) -> None:
    """Defect: a section that begins with a message from another board has no jitter."""
    if chain["callbacks"][0]["name"].startswith("!"):
        chain["jitter_ns"] = 0


@_in_place_of(bounding, "boards_response_ns")
def _ends_where_it_leaves(whole: Any, found: Any, sections: Any) -> Any:
    """Defect: the bound of a chain covers only its section on the first board."""
    return whole(found, list(sections)[:1])


@contextmanager
def _one_board_for_all() -> Iterator[None]:
    """Defect: the analysis gets the first board's line for every board."""
    whole = board_document
    first: list[Any] = []

    def other(system: System, *options: Any) -> Any:
        document = whole(system, *options)
        first.append(document["line"])
        return document | {"line": first[0] or document["line"]}

    with patch.object(bounding, "board_document", other):
        yield


def _half(lane: Document) -> Document:
    """Defect: a lane has half its budget in half the period: the same share of the processor, but in smaller
    portions."""
    return {"budget_ns": lane["budget_ns"] // 2, "period_ns": lane["period_ns"] // 2}


def _without_waiting(share: int) -> Callable[[], Any]:
    """Defect: in the bounds of a path, a chain waits for its next release less than a period: not at all (share 1), or
    a period less the part 1/share of it."""

    @_in_place_of(bounding, "path_bounds")
    def other(whole: Any, system: System, chains: Any) -> Any:
        told = []
        for one in whole(system, chains):
            periods_ns = [system.chain(name).period_ns for name in one.chains]
            less_ns = periods_ns[-1] if share == 1 else sum(periods_ns) // share
            age_ns = None if one.age_ns is None else one.age_ns - sum(periods_ns[:-1]) // share
            reaction_ns = None if one.reaction_ns is None else one.reaction_ns - less_ns
            told.append(replace(one, reaction_ns=reaction_ns, age_ns=age_ns))
        return tuple(told)

    return other


@_in_place_of(lower, "_takes_one_at_a_time")
def _seldom_beside_the_run(whole: Any, executor: Any) -> Any:
    """Defect: an occasional message is a tree of its own, without the run that publishes it, also on several lanes."""
    return True


@_in_place_of(lower, "waits_of")
def _without_lock_waits(whole: Any, system: Any) -> Any:
    return {}


def _without_sections(chain: Document) -> None:
    for callback in chain["callbacks"]:
        callback.pop("sections", None)


@_in_place_of(BoardsPlayer, "words")
def _ceilings_too_low(whole: Any, self: BoardsPlayer, run: Any) -> str:
    """Defect: a lane keeps its own priority while it holds a lock. More urgent lanes can then preempt it, and a lane
    that waits for the lock also waits for them."""
    return f"lock_ceilings=false;{whole(self, run)}"


# ---- services ----


def _served_at_once(callback: Callback) -> Callback:
    none = {"execution_ms": Decimal(0), "least_ms": Decimal(0)}
    return callback.model_copy(update=none) if callback.kind == "service" else callback


def _no_replies(chain: Document) -> None:
    """Defect: a chain with a call of a service ends with the service, without the reply."""
    if chain["callbacks"][-1]["payload_bytes"] == 0 and len(chain["callbacks"]) > 2:
        chain["callbacks"] = chain["callbacks"][:-1]


def _at_once_elsewhere(chain: Document) -> None:
    """Defect: the callbacks of a board's services take no time."""
    for callback in chain["callbacks"]:
        if callback["name"] == "!away":
            callback["execution_ns"] = 0


@_in_place_of(bounding, "with_servers")
def _servers_apart(whole: Any, system: Any) -> Any:
    """Defect: several lanes may serve requests of one service at the same time."""
    return system


@_in_place_of(lower, "serving_several")
def _servers_by_priority(whole: Any, system: Any) -> Any:
    """Defect: the request of the most urgent chain is served first, as if each chain had its own server."""
    return set()


@_in_place_of(lower, "shared_priorities")
def _askers_by_priority(whole: Any, *asked: Any) -> Any:
    """Defect: a service of a board has, in the chain of each caller, the priority of that chain."""
    return {}


@_in_place_of(bounding, "ways_of")
def _boards_join_the_first_only(ways_of: Any, system: System) -> Any:
    """Defect: with boards, a chain with a join counts only the waits for its first input."""
    chains = tuple(chain.model_copy(update={"joins": ()}) for chain in system.chains)
    return ways_of(system.model_copy(update={"chains": chains}))


@_in_place_of(bounding, "ways_of")
def _inputs_one_after_the_other(whole: Any, system: System) -> Any:
    """Defect: the second input of a join counts as if it began when the first one has ended."""
    ways = whole(system)
    chains = {one.name: one for one in ways.system.chains}
    for chain in system.chains:
        inputs = [one.callbacks[: -len(chain.callbacks)] for one in map(chains.get, ways.of_chain[chain.name]) if one]
        for number, way in enumerate(inputs[1:] if chain.joins else ()):
            name = alternative_name(chain.name, 90 + number)
            both = {"name": name, "callbacks": (*inputs[0], way[-1])}
            chains[name] = chains[ways.of_chain[chain.name][0]].model_copy(update=both)
    return replace(ways, system=ways.system.model_copy(update={"chains": tuple(chains.values())}))


@_in_place_of(lower, "_unheard")
def _only_topics_of_chains(whole: Any, *asked: Any) -> Any:
    """Defect: messages that no chain takes do not count."""
    return []


def _one_message(chain: Document) -> None:
    """Defect: all messages that a run of a callback publishes count as one message."""
    for callback in chain["callbacks"]:
        callback["message"] = 0


@_in_place_of(lower, "shared_callbacks")
def _too_much_shared(whole: Any, system: System) -> Any:
    """Defect: all callbacks of a board except timers count as a single callback that the chains share."""
    on_board = [one for chain in system.chains for one in chain.callbacks if system.where(one) == "mcu"]
    return whole(system) | {id(one): -7 for one in on_board if one.kind != "timer"}


def _no_group(chain: Document) -> None:
    for callback in chain["callbacks"]:
        callback["group"] = ""


def _trees_one_after_the_other(document: Document) -> None:
    """Defect: the branches of one timer run one callback at a time."""
    for chain in document["chains"]:
        root = chain["callbacks"][0].get("shared", 0)
        for callback in chain["callbacks"] if root else ():
            if callback["executor"] in {host["name"] for host in document["hosts"]}:
                callback["group"] = callback.get("group") or f"tree {root}"


@_in_place_of(lower, "tree_priorities")
def _branches_by_priority(whole: Any, system: Any) -> Any:
    """Defect: a callback of a board that chains of one timer share has, in each of these chains, the priority of that
    chain."""
    return {}


def _no_result(chain: Document) -> None:
    """Defect: a chain in which a node sends a second request ends with the reply to the first one."""
    if len(chain["callbacks"]) == 5:
        del chain["callbacks"][3:]
        chain["callbacks"][-1]["payload_bytes"] = 0


def _shared_one_lower(chain: Document) -> None:
    """Defect: each of the chains that share a level counts as if it had a level of its own."""
    if chain.pop("shares_level", False):
        chain["priority"] = 1000 * chain["priority"] + int(chain["name"].encode().hex(), 16) % 1000
    else:
        chain["priority"] *= 1000


@_in_place_of(bounding, "bursts_joined")
def _one_event_less(whole: Any, system: System, *asked: Any) -> Any:
    """Defect: one event of each burst is not counted."""
    chains = tuple(chain.model_copy(update={"burst": max(chain.burst - 1, 1)}) for chain in system.chains)
    return whole(system.model_copy(update={"chains": chains}), *asked)


@_in_place_of(bounding, "event_waits")
def _events_end_waits(whole: Any, *asked: Any) -> dict[str, Decimal]:
    """Defect: rclc's executor notices an event at once."""
    return {}


@_in_place_of(bounding, "_sum")
def _pools_of_one_event(whole: Any, one: Any, other: Any) -> Any:
    """Defect: the pools are sized as if messages of only one event of a burst were under way at a time."""
    return None if one is None or other is None else max(one, other)


def _without_parts(*kinds: str, always: bool = False) -> Callable[[], Any]:
    """Defect: bounds over a line omit these parts for chains whose response may exceed their period. With `always`,
    they omit half of these parts for all chains."""

    @_in_place_of(bounding, "ask_link")
    def other(whole: Any, document: Document) -> Any:
        answer = whole(document)
        periods_ns = {one["name"]: one["period_ns"] for one in document["chains"]}
        names = (
            "chain",
            "met",
            "shorter",
            "frames",
            "hidden",
            "reason",
            "root",
            "reached_ns",
            "limit_ns",
            "lateness_ns",
            "up",
            "down",
        )
        chains = []
        for one in answer.chains:
            kept = {name: getattr(one, name) for name in (*names, "parts", "reached_parts", "depends_on")}
            left_ns = one.response_ns
            if left_ns is not None and (always or left_ns > periods_ns[one.chain]):
                left_ns -= sum(value_ns for kind, value_ns, _ in one.parts if kind in kinds) // (1 + always)
            chains.append(SimpleNamespace(response_ns=left_ns, **kept))
        return SimpleNamespace(met=answer.met, chains=chains, assumptions=answer.assumptions)

    return other


def _shorter(change: Callable[[Document, Any, int, int], int]) -> Callable[[], Any]:
    """Defect: the bounds for shorter delays are changed. `change` gets the document, the answer for a chain, the number
    of the quantile and the bound, and returns the changed bound."""

    @_in_place_of(bounding, "ask_link")
    def other(whole: Any, document: Document) -> Any:
        answer = whole(document)
        chains = []
        for one in answer.chains:
            changed = SimpleNamespace(**{name: getattr(one, name) for name in dir(one) if not name.startswith("_")})
            changed.shorter = tuple(
                (change(document, one, place, bound_ns), count) for place, (bound_ns, count) in enumerate(one.shorter)
            )
            chains.append(changed)
        return SimpleNamespace(met=answer.met, chains=chains, assumptions=answer.assumptions)

    return other


def _without_return(document: Document, one: Any, place: int, bound_ns: int) -> int:
    """Defect: a bound for a shorter delay to the agent assumes a shorter delay back as well, although the way back may
    take the longest time."""
    line, count = document["line"], one.frames[1]
    return bound_ns - (line["shorter_return_ns"][place] if count else 0)


def _without_waiting_shorter(_: Document, one: Any, place: int, bound_ns: int) -> int:
    """Defect: with shorter delays an instance waits for no other chain on the board."""
    waited_ns: int = sum(value_ns for kind, value_ns, _ in one.parts if kind == "client_interference")
    return bound_ns - waited_ns // 2


@_in_place_of(bounding, "need_of")
def _one_sample_histories(whole: Any, *asked: Any) -> Any:
    """Defect: a board without an agent keeps one sample of a topic, however many instances are under way."""
    need = whole(*asked)
    return replace(need, sizes=need.sizes | {"rtps_history": 1}) if "rtps_history" in need.sizes else need


@_in_place_of(bounding, "need_of")
def _one_frame_for_a_reader(whole: Any, *asked: Any) -> Any:
    """Defect: a board without an agent has one frame for each reader, however many samples wait for the executor."""
    need = whole(*asked)
    sizes = need.sizes
    return replace(need, sizes=sizes | {"rtps_frames": sizes["rtps_readers"]}) if "rtps_frames" in sizes else need


@_in_place_of(bounding, "_use")
def _one_sample_deep(whole: Any, *asked: Any) -> Any:
    """Defect: the history of a subscription holds one sample, however many instances are under way."""
    return whole(*asked)._replace(depth=1)


def twins() -> list[Twin]:
    return [
        Twin("one event of each burst forgotten", "check-board-events", _one_event_less),
        Twin("one event of each burst on the host forgotten", "check-events-host", _one_event_less),
        Twin("one event of each burst to a board forgotten", "check-board-events-host", _one_event_less),
        Twin("an event that ends the wait of a batch", "check-board-events-batch", _events_end_waits),
        Twin("a path of events without waiting", "check-paths-events", _without_waiting(1)),
        Twin("pools for one event of a burst", "check-board-events", _pools_of_one_event),
        Twin("groups forgotten", "check-lanes", _asked(_no_groups)),
        Twin("priorities reversed", "check-one-lane", _asked(_reversed_priorities)),
        Twin("priorities reversed, several lanes", "check-lanes", _asked(_reversed_priorities)),
        Twin(
            "own priorities ignored",
            "check-own-lanes",
            _described(lambda one: one.model_copy(update={"priority": None})),
        ),
        Twin("ready sets for any order", "check-one-lane", _asked(_policy("priority", "default"))),
        Twin("timers that are cached", "check-one-lane", _asked(_policy("default", "wait_set"))),
        Twin("a queue for any order", "check-one-lane", _asked(_policy("any_order", "fifo"))),
        Twin("groups of isolated threads forgotten", "check-names", _a_thread_for_each_callback),
        Twin("cores of threads forgotten", "check-cores", _asked(_cores_apart)),
        Twin("loads that never sleep", "check-board-loads", _asked(_loads_that_run_at_once)),
        Twin("loads forgotten", "check-board-loads", _asked(_part("client", loads=[]))),
        Twin("a divided board as lanes", "check-board-divided", _asked(_part("client", policy="lanes"))),
        Twin("the less urgent thread first", "check-cores", _asked(_less_urgent_first)),
        Twin("cores of threads beside a board forgotten", "check-board-cores", _a_lane_for_each_thread),
        Twin("one lane more", "check-lanes", _asked(_one_lane_more)),
        Twin("the lanes of another executor", "check-several", _asked(_shared_lanes)),
        Twin(
            "a budget's period for its budget",
            "check-budgets",
            _asked(_lanes(lambda lane: lane | {"budget_ns": lane["period_ns"]})),
        ),
        Twin("a budget in smaller pieces", "check-budgets", _asked(_lanes(_half))),
        Twin(
            "shortest executions",
            "check-one-lane",
            _described(lambda one: one.model_copy(update={"execution_ms": one.least_ms})),
        ),
        Twin("the first callback forgotten", "check-one-lane", _asked(_chains(_without_first))),
        Twin("a chain as one callback", "check-one-lane", _asked(_chains(_one_callback))),
        Twin("twice the period", "check-one-lane", _asked(_chains(_rarely))),
        Twin("branches without what they share", "check-branches", _branches_without_what_they_share),
        Twin("jitter between executors forgotten", "check-everything", _without_carried_jitter),
        Twin(
            "propagation forgotten",
            "check-propagation",
            _described(lambda one: one.model_copy(update={"propagation_ms": Decimal(0)})),
        ),
        Twin("agent_ms forgotten", "check-board-tide", _asked(_part("line", agent_ns=0))),
        Twin("return_ms forgotten", "check-board-tide", _asked(_part("line", return_ns=0))),
        Twin("twice the baud rate", "check-board-lanes", _asked(_fast_line)),
        Twin("payload forgotten", "check-board-lanes", _asked(_chains(_short_messages))),
        Twin("acknowledgments forgotten", "check-board-hold", _asked(_chains(_best_effort))),
        Twin("the host's executions forgotten", "check-board-tide", _asked(_hosts_at_once)),
        Twin("the host's lanes forgotten", "check-board-lanes", _asked(_many_lanes)),
        Twin("shortest executions on a board", "check-board-tide", _asked(_chains(_always_as_long))),
        Twin("priorities reversed on a board", "check-board-lanes", _asked(_reversed_priorities)),
        Twin("a cooperative executor as a preemptive one", "check-board-tide", _asked(_part("client", policy="lanes"))),
        Twin(
            "callbacks that block one of two visits", "check-board-tide", _without_parts("client_blocking", always=True)
        ),
        Twin("half of the frames that have begun", "check-board-lanes", _without_parts("line_blocking", always=True)),
        Twin("submit_ms forgotten", "check-board-tide", _asked(_part("client", submit_ns=0))),
        Twin(
            "interrupt_ms forgotten",
            "check-board-lanes",
            _asked(_part("client", interrupt_receive_ns=0, interrupt_complete_ns=0)),
        ),
        Twin("readers of a board without an agent", "check-rtps", _asked(_chains(_one_reader))),
        Twin("to_host_ms forgotten", "check-rtps", _asked(_part("line", agent_ns=0))),
        Twin("twice the rate of Ethernet", "check-rtps", _asked(_fast_ethernet)),
        Twin("one datagram fewer in the interface", "check-rtps-queued", _asked(_shorter_queue)),
        Twin("what a board sends beside its samples", "check-rtps-reliable", _asked(_part("client", loads=[]))),
        Twin("replies forgotten without an agent", "check-rtps-services", _asked(_chains(_no_replies))),
        Twin("one datagram for a long sample", "check-rtps-fragments", _asked(_chains(_short_samples))),
        Twin("one frame for a long sample to a board", "check-rtps-fragments", _one_frame_for_a_reader),
        Twin("twice the period without an agent", "check-rtps-fast", _asked(_chains(_rarely))),
        Twin("histories of one sample", "check-rtps-fast", _one_sample_histories),
        Twin("losses forgotten without an agent", "check-rtps-losses", _asked(_part("protocol", losses=0))),
        Twin("one loss fewer without an agent", "check-rtps-losses", _asked(_one_loss_less)),
        Twin("HEARTBEATs of nodes at once", "check-rtps-losses", _asked(_part("line", rtps_heartbeat_ns=0))),
        Twin("one frame for a reader without an agent", "check-rtps-fast-reliable", _one_frame_for_a_reader),
        Twin("twice the period of reliable chains", "check-rtps-fast-reliable", _asked(_chains(_rarely))),
        Twin("hold forgotten", "check-board-hold", _asked(_chains(_without_hold))),
        Twin("losses forgotten", "check-board-losses", _asked(_part("protocol", losses=0))),
        Twin("chains of other boards forgotten", "check-boards", _asked(_no_others)),
        Twin("jitter between boards forgotten", "check-boards", _asked(_chains(_punctual_sections))),
        Twin("a chain that ends where it leaves its board", "check-boards", _ends_where_it_leaves),
        Twin("the line of another board", "check-boards", _one_board_for_all),
        Twin("levels in the reverse order on a board", "check-boards-levels", _levels(_reversed_levels)),
        Twin("two chains on one level of a board", "check-boards-levels", _levels(_two_on_a_level)),
        Twin("joins of the first input only", "check-joins", _joins_of_the_first_only),
        Twin("paths whose timers wait for nothing", "check-paths", _without_waiting(1)),
        Twin("half of each period in a path of a board", "check-board-paths", _without_waiting(2)),
        Twin("half of each period in a path beyond it", "check-board-paths-fast", _without_waiting(2)),
        Twin("a seldom message beside the run that makes it", "check-board-seldom", _seldom_beside_the_run),
        Twin("waiting for locks forgotten", "check-locks", _without_lock_waits),
        Twin("critical sections forgotten", "check-board-locks", _asked(_chains(_without_sections))),
        Twin("a lock whose ceiling is too low", "check-board-locks", _ceilings_too_low),
        Twin("servers that take no time", "check-services", _described(_served_at_once)),
        Twin("servers of branches that take no time", "check-trees-services", _described(_served_at_once)),
        Twin("replies forgotten", "check-services", _asked(_chains(_no_replies))),
        Twin("a board that serves at once", "check-services-boards", _asked(_chains(_at_once_elsewhere))),
        Twin("a server of several chains as several", "check-services-shared", _servers_apart),
        Twin("requests in the order of priorities", "check-services-shared-host", _servers_by_priority),
        Twin("a subscription of several publishers as several", "check-topics-shared", _servers_apart),
        Twin("samples in the order of priorities", "check-topics-shared-host", _servers_by_priority),
        Twin(
            "a board's subscription by the priority of the publisher", "check-topics-shared-taken", _askers_by_priority
        ),
        Twin("a board's service by the priority of who asks", "check-services-shared-served", _askers_by_priority),
        Twin(
            "a level of several chains as several", "check-services-shared-served", _asked(_chains(_shared_one_lower))
        ),
        Twin("a join of a board by its first input", "check-trees", _boards_join_the_first_only),
        Twin("topics that no chain takes forgotten", "check-publishing", _only_topics_of_chains),
        Twin("several messages of one run as one", "check-publishing", _asked(_chains(_one_message))),
        Twin("inputs of a join one after the other", "check-trees", _inputs_one_after_the_other),
        Twin("branches that exclude each other", "check-branches", _asked(_trees_one_after_the_other)),
        Twin("branches by the priority of each chain", "check-trees", _branches_by_priority),
        Twin("a level of several branches as several", "check-trees", _asked(_chains(_shared_one_lower))),
        Twin("callbacks of one board as one that ways share", "check-trees", _too_much_shared),
        Twin("groups beside a board forgotten", "check-board-groups", _asked(_chains(_no_group))),
        Twin("results of goals forgotten", "check-actions", _asked(_chains(_no_result))),
        Twin("twice the period beyond it", "check-board-fast", _asked(_chains(_rarely))),
        Twin("own instances forgotten", "check-board-fast", _without_parts("own")),
        Twin("frames of several instances forgotten", "check-board-fast", _without_parts("line_interference")),
        Twin("subscriptions of one sample", "check-board-fast-round", _one_sample_deep),
        Twin(
            "jitter beyond the period between boards forgotten",
            "check-boards-fast",
            _asked(_chains(_punctual_sections)),
        ),
        Twin("a way back that takes no time", "check-board-delays", _shorter(_without_return)),
        Twin("half of the waiting with shorter delays", "check-boards-delays", _shorter(_without_waiting_shorter)),
        Twin("callbacks of one timer for nothing", "check-branches", _asked(_light_beginnings)),
        Twin("publishes that wait forgotten", "check-board-batch", _asked(_part("client", send="asynchronous"))),
    ]


def catch(twin: Twin, most: int, trial: Trial) -> Caught:
    """Searches at most `most` descriptions for one that fails with the defect and passes without it."""
    for seed in range(1, most + 1):
        with twin.broken():
            found = hunt_block(twin.family, seed, 1, trial)
        told = [one["what"] for one in found.failures]
        if not any("above its guaranteed" in one or "pools do not suffice" in one for one in told):
            continue
        if not hunt_block(twin.family, seed, 1, trial).failures:
            return Caught(twin, seed, told[0])
    return Caught(twin, 0)
