# SPDX-License-Identifier: Apache-2.0
"""A description with boards on the shipped session, daemon, executor and agent core in virtual time: what may vary from
run to run, and the plan of one run for tide-sim. Each board has its line and agent; all share one bus and the executors
of nodes. A chain over two boards is played as two, the second of which the first one's end begins."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeVar

from tide.analysis.bounds import CLIENT_EXECUTORS, bounds_of
from tide.analysis.lower import HOST, Section, all_of, executor_of_board, sections_of
from tide.analysis.result import NUMBER
from tide.analysis.sizing import Need
from tide.play.paths import Instance
from tide.play.server import Played
from tide.system.levels import levels_of_boards
from tide.system.model import Callback, Chain, System, nanoseconds
from tide.system.places import Executor, SerialLink, UdpLink
from tide.system.servers import servers_of

PROGRAM = "tide-sim"
MICROSECOND = 1000
_MILLISECOND = 1_000_000
# Periods of the slowest chain are played: its first instance, at the latest one period behind the start, and
# two more each have their whole busy window among all others.
SLOWEST = 4
MOST_INSTANCES = 20_000  # of all chains together, for which a run is made shorter, though not below two of the slowest
SHORT_INSTANCES = 256  # of a chain whose payload has no room for more (sim/board/system.cpp)
LEAST_BYTES = 8  # to which messages are shortened
NUMBERED_BYTES = 6  # of a message's chain and number; what is shorter has the number alone
FRAME_BYTES = 64  # more than headers, HEARTBEAT and acknowledgment of a frame
_Value = TypeVar("_Value")
_UDP_BAUD = 1_000_000_000  # of a line that stands for a network, whose delays are the agent's


# Where the callbacks of a chain are, and what the simulator calls it.
SHAPES = {
    ("mcu", "host", "mcu"): "answered",
    ("mcu",): "sampled",
    ("mcu", "host"): "heard",
    ("host", "mcu"): "told",
    ("mcu", "mcu"): "looped",
    ("host",): "hosted",
}


def horizon_ns(system: System) -> int:
    """How long chains are released in a run."""
    periods_ns = [chain.period_ns for chain in system.chains]
    longest_ns = max(periods_ns)
    each_ns = MOST_INSTANCES / sum(1 / one for one in periods_ns)
    played_ns = max(min(SLOWEST * longest_ns, int(each_ns)), 2 * longest_ns)
    for chain in system.chains:
        if any(one.sends and 0 < one.sent_bytes < NUMBERED_BYTES for one in chain.callbacks):
            played_ns = min(played_ns, SHORT_INSTANCES * chain.period_ns)
    return -(-played_ns // MICROSECOND) * MICROSECOND


class UnplayableError(Exception):
    """The simulated program cannot be this board; the text says why."""


def require_no_losses_of_events(system: System, losses: int) -> None:
    """The simulator knows by the time to which instance a frame belongs."""
    if losses and any(chain.begins_with_event for chain in system.chains):
        raise UnplayableError("losses are played in chains that begin with timers only")


@dataclass(frozen=True)
class BoardsRun:
    """All that may differ between two runs of a description."""

    phases_ns: tuple[int, ...]
    executions_ns: tuple[tuple[int, ...], ...]  # by chain and callback
    payload_bytes: tuple[tuple[int, ...], ...]
    agent_ns: tuple[tuple[int, int], ...]  # by board
    return_ns: tuple[tuple[int, int], ...]
    costs: bool
    seed: int


def instance_of(first: tuple[int, ...], last: tuple[int, ...]) -> Instance:
    """Of what the simulator records of its first and its last section (tide.play.server). One that begins on the host
    is not seen to start there: it may have looked as early as its release."""
    return Instance(first[0], first[1] if first[1] >= 0 else first[0], last[-1])


def _with(values: tuple[_Value, ...], place: int, value: _Value) -> tuple[_Value, ...]:
    return (*values[:place], value, *values[place + 1 :])


def pool_words(need: Need) -> dict[str, object]:
    """What the bounds suppose of the pools of a board, and nothing more."""
    sizes = need.sizes
    return {
        "nodes": max(sizes["small_nodes"], 2),
        "large_nodes": sizes["large_nodes"],
        "small_node_bytes": sizes["small_node_bytes"],
        "slots": sizes["slots"],
        "reassemblies": sizes["reassemblies"],
        "window": sizes["window"],
        "depth": 1,
    }


class BoardsPlayer:
    """Of one executor, that of all boards or `described`. The source of chance is the caller's. needs: those of its
    bounds, if they are known already."""

    def __init__(
        self, system: System, executor: str, losses: int, source: random.Random, needs: Sequence[Need] | None = None
    ) -> None:
        self._random, self._losses, self._system, self._executor = source, losses, system, executor
        if needs is None:
            needs = bounds_of(system, executor, losses).needs
        self._need_of = {need.board.name: need for need in needs}
        self._hosts = [one for one in system.executors if one.where == "host"]
        self._chains = system.chains
        self._sections = [_as_played(system, sections_of(system, chain)) for chain in system.chains]
        used = {one.place for sections in self._sections for one in all_of(sections)} - {HOST}
        self._boards = [board for board in system.boards() if board.name in used]
        self._levels_of = levels_of_boards(system)
        self._links = [self._link_of(board) for board in self._boards]
        self._takes = {one.name: self._inputs(one) for sections in self._sections for one in all_of(sections)}
        self._branched = {id(one) for chain in system.chains for one in system.inputs(chain)}
        self._services = {}
        for one in (one for sections in self._sections for one in all_of(sections)):
            self._services[one.name] = service_of(system, one)
        served = enumerate(servers_of(system).values(), 1)
        self._servers = {id(one): number for number, several in served for one in several if _is_alone(system, one)}
        groups = [one.name for one in system.groups if one.kind == "exclusive"]
        for callback in (each for chain in system.chains for each in chain.callbacks if each.group in groups):
            self._servers[id(callback)] = len(servers_of(system)) + 1 + groups.index(callback.group or "")
        self._shapes = {one.name: self._shape(one) for sections in self._sections for one in all_of(sections)}
        require_no_losses_of_events(system, losses)
        self._marks_ns = [0]
        for chain in system.chains:
            times_ns = [callback.execution_ns for callback in chain.callbacks]
            self._marks_ns += [times_ns[0], times_ns[0] + times_ns[-1], sum(times_ns)]
        self.chain_names = [chain.name for chain in system.chains]
        # A chain that touches no board is a timer of the nodes, in the plan of the first one.
        self._played = [
            [
                member
                for sections in self._sections
                for one in all_of(sections)
                if one.place in self._places_of(number)
                for member in self._members(one)
            ]
            for number in range(len(self._boards))
        ]
        self._names = [one.name for sections in self._played for one in sections]  # of what the simulator plays
        self._begins = self._branches()

    def _places_of(self, number: int) -> tuple[str, ...]:
        return (self._boards[number].name, HOST) if number == 0 else (self._boards[number].name,)

    def _inputs(self, section: Section) -> tuple[Callback, ...]:
        """Whose messages begin it, where that is not the timer or the section before it."""
        return self._system.inputs(section.chain) if section is self._first_of(section.chain.name) else ()

    def _first_of(self, chain: str) -> Section:
        return next(sections[0] for sections in self._sections if sections[0].chain.name == chain)

    def _is_joined_on_board(self, section: Section) -> bool:
        takes = self._takes[section.name]
        return len(takes) > 1 and self._system.where(section.callbacks[0]) == "mcu"

    def _members(self, section: Section) -> list[Section]:
        """As which it is played: where a board joins messages, as one that takes each of them."""
        count = len(self._takes[section.name]) if self._is_joined_on_board(section) else 1
        return [section, *(replace(section, name=f"{section.chain.name}{NUMBER}{n}") for n in range(2, count + 1))]

    def _branches(self) -> dict[str, list[tuple[str, int]]]:
        """By section what else its messages on the host begin, and behind how many of its callbacks there."""
        found: dict[str, list[tuple[str, int]]] = {}
        for place, sections in enumerate(self._sections):
            for before, after in itertools.pairwise(sections):
                if after.before is None:  # of one section (_as_played)
                    on_host = sum(self._system.where(one) == "host" for one in before.callbacks)
                    found.setdefault(before.name, []).append((_numbered(place, after), on_host))
            members = self._members(sections[0])
            for number, made_by in enumerate(self._takes[sections[0].name]):
                member = members[number] if len(members) > 1 else sections[0]
                section, done = self._where_made(made_by)
                found.setdefault(section.name, []).append((_numbered(place, member), done))
        return found

    def _where_made(self, callback: Callback) -> tuple[Section, int]:
        """The section, and how many of its callbacks on the host have ended by then."""
        section = next(
            one
            for sections in self._sections
            for one in all_of(sections)
            if any(each is callback for each in one.callbacks)
        )
        place = next(n for n, one in enumerate(section.callbacks) if one is callback)
        on_host = sum(self._system.where(one) == "host" for one in section.callbacks[: place + 1])
        made_on_host = self._system.where(callback) == "host"
        starts = place == 0 and self._shapes[section.name] in ("answered", "heard")
        if not (made_on_host or starts) or self._services[section.name] != "topics":
            raise UnplayableError("a chain branches behind a callback of a board that is not the first of its chain")
        return section, on_host

    def _link_of(self, board: Executor) -> SerialLink | UdpLink:
        link = self._system.link_of_board(board)
        if link is None:
            raise UnplayableError("a board without a link")
        if link.quantum_bytes not in (0, link.mtu_bytes):
            raise UnplayableError("the simulated board has the MTU as its quantum")
        return link

    def _shape(self, section: Section) -> str:
        if (calls := self._services[section.name]) != "topics":
            return "answered" if calls == "asks" else "told"
        places: tuple[str, ...] = ()
        for callback in section.callbacks:
            side = self._system.where(callback)
            if side == "mcu" or places[-1:] != ("host",):  # callbacks of the host one after the other are as one
                places += (side,)
        if self._takes[section.name]:
            if places in (("mcu",), ("host", "mcu"), ("host",)) and section.is_last:
                return "hosted" if places == ("host",) else "told"
        elif section.before is not None:
            if places == ("mcu",) and section.is_last:
                return "told"
        elif places == ("mcu",) and id(section.callbacks[0]) in self._branched:
            return "heard"
        elif section.is_last and places in SHAPES:
            return SHAPES[places]
        elif not section.is_last and places in (("mcu",), ("mcu", "host")):
            return "heard"
        raise UnplayableError(
            f"chain '{section.chain.name}' is none that goes to the host and back once, or on to one other board, with "
            "one callback of a board"
        )

    def _exact(self, place: int) -> bool:
        """Of a chain that crosses lines of which one has exact sizes."""
        boards = {one.place for one in all_of(self._sections[place])}
        return any(
            isinstance(link, SerialLink) and link.exact_sizes
            for board, link in zip(self._boards, self._links, strict=True)
            if board.name in boards
        )

    def drawn(self) -> BoardsRun:
        source = self._random
        places = range(len(self._chains))
        heavy = source.random() < 0.5
        return BoardsRun(
            tuple(self._phase(place) for place in places),
            tuple(self._executions(place, heavy) for place in places),
            tuple(self._bytes(place) for place in places),
            self._spans("agent_ms"),
            self._spans("return_ms"),
            source.random() < 0.8,
            source.randrange(1_000_000),
        )

    def changed(self, run: BoardsRun) -> BoardsRun:
        """One thing is different."""
        source = self._random
        if source.random() < 0.1:
            return replace(run, agent_ns=self._spans("agent_ms"), return_ns=self._spans("return_ms"))
        place = source.randrange(len(self._chains))
        kind = source.random()
        if kind < 0.55:
            if source.random() < 0.6:
                reach = 1 << source.randrange(4, 16)
                shifted_ns = run.phases_ns[place] + source.randint(-reach, reach) * MICROSECOND
                phase_ns = max(0, shifted_ns) % self._chains[place].period_ns
            else:
                phase_ns = self._phase(place)
            return replace(run, phases_ns=_with(run.phases_ns, place, phase_ns))
        if kind < 0.7:
            executions = self._executions(place, source.random() < 0.5)
            return replace(run, executions_ns=_with(run.executions_ns, place, executions))
        if kind < 0.75:
            return replace(run, payload_bytes=_with(run.payload_bytes, place, self._bytes(place)))
        return replace(run, seed=source.randrange(1_000_000))

    def _phase(self, place: int) -> int:
        source = self._random
        period_ns = self._chains[place].period_ns
        if source.random() < 0.25:
            return source.randrange(period_ns // MICROSECOND) * MICROSECOND
        base_ns = source.choice(self._marks_ns) + source.choice((0, 0, source.randint(0, 60) * _MILLISECOND))
        return max(0, base_ns + source.randint(-2, 4) * MICROSECOND) % period_ns

    def _executions(self, place: int, heavy: bool) -> tuple[int, ...]:
        source = self._random
        times = []
        for callback in self._chains[place].callbacks:
            most_ns = callback.execution_ns
            least_ns = min(callback.least_ns, most_ns)
            shorter = not heavy and source.random() < 0.4
            one_ns = source.choice((least_ns, source.randint(least_ns, most_ns))) if shorter else most_ns
            times.append(max(one_ns // MICROSECOND * MICROSECOND, least_ns))
        return tuple(times)

    def _bytes(self, place: int) -> tuple[int, ...]:
        source = self._random
        sizes = []
        for callback in self._chains[place].callbacks:
            most = callback.sent_bytes or LEAST_BYTES
            shorter = not self._exact(place) and source.random() < 0.2
            sizes.append(source.randint(min(LEAST_BYTES, most), most) if shorter else most)
        return tuple(sizes)

    def _spans(self, name: str) -> tuple[tuple[int, int], ...]:
        all_ns = (nanoseconds(getattr(link, name) or Decimal(0)) for link in self._links)
        return tuple(self._random.choice(((0, one), (one, one), (one, one), (0, 0))) for one in all_ns)

    def recording(self, words: str) -> str:
        """The same run, with the times of its instances."""
        return f"record=true;{words}"

    def of_chains(self, played: Played) -> Played:
        """Of several sections the response is that of the last, which counts from the first release."""
        number = {name: place for place, name in enumerate(self._names)}
        last = [[number[one.name] for one in self._members(sections[-1])] for sections in self._sections]
        lost = (
            sum(played.lost[number[one.name]] for one in sections[:-1]) + max(played.lost[place] for place in places)
            for sections, places in zip(self._sections, last, strict=True)
        )
        return replace(
            played,
            worst_ns=tuple(max(played.worst_ns[place] for place in places) for places in last),
            ended=tuple(min(played.ended[place] for place in places) for places in last),
            lost=tuple(lost),
        )

    def instances(self, played: Played) -> list[list[Instance]]:
        recorded = dict(zip(self._names, played.recorded, strict=True))
        found = []
        for sections in self._sections:
            timer = self._first_of(self._system.timer_of(sections[0].chain).name)
            first = {times[0]: times for times in recorded[timer.name]}
            ends: dict[int, list[tuple[int, ...]]] = {}
            members = self._members(sections[-1])
            for times in (times for one in members for times in recorded[one.name]):
                if times[-1] >= 0 and times[0] in first:
                    ends.setdefault(times[0], []).append(times)
            found.append(
                [
                    instance_of(first[release_ns], max(every, key=lambda times: times[-1]))
                    for release_ns, every in sorted(ends.items())
                    if len(every) == len(members)
                ]
            )
        return found

    def until(self, played: Played) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Of chains that leave a board for another one: the worst until then, how many did, and how many did not."""
        number = {name: place for place, name in enumerate(self._names)}
        return {
            (one.chain.name, one.place): (played.worst_ns[at], played.ended[at], played.lost[at])
            for sections in self._sections
            for one in sections[:-1]
            for at in (number[one.name],)
        }

    def steps(self, played: Played) -> Iterator[tuple[str, int, str, str, int, int, int]]:
        """Of a recorded run: chain, instance, place, what it does there, its start and end, and its release."""
        instances = dict(zip(self._names, played.recorded, strict=True))
        for sections in self._sections:
            for section in all_of(sections):
                first_ns = {times[0]: number for number, times in enumerate(instances[sections[0].name])}
                for times in instances[section.name]:
                    for place, what, start_ns, end_ns in self._steps(section, times):
                        if 0 <= start_ns <= end_ns:
                            yield (
                                *(section.chain.name, first_ns[times[0]], place, what),
                                *(start_ns, end_ns, times[0]),
                            )

    def _steps(self, section: Section, times: tuple[int, ...]) -> list[tuple[str, str, int, int]]:
        _, sample_ns, sampled_ns, heard_ns, answered_ns, act_ns, acted_ns = times
        own = [one.name for one in section.callbacks if one.executor == section.place]
        on_host = [one for one in section.callbacks if self._system.where(one) == "host"]
        link = next(
            (link.name for board, link in zip(self._boards, self._links, strict=True) if board.name == section.place),
            "",
        )
        shape, calls = self._shapes[section.name], self._services[section.name]
        if calls == "serves":
            hosts = " and ".join(dict.fromkeys(one.executor for one in on_host))
            return [
                *([(hosts, on_host[0].name, heard_ns, answered_ns)] if on_host else []),
                (f"{link}, to the board", "request", answered_ns, act_ns),
                (section.place, own[0], act_ns, sampled_ns),
                (f"{link}, to the host", "reply", sampled_ns, acted_ns),
            ]
        asked, told = ("request", "reply") if calls == "asks" else ("message", "message")
        steps = []
        if shape in ("answered", "sampled", "heard", "looped"):
            steps.append((section.place, own[0], sample_ns, sampled_ns))
        if shape in ("answered", "heard"):
            steps.append((f"{link}, to the host", asked, sampled_ns, heard_ns))
        if on_host:
            places = " and ".join(dict.fromkeys(one.executor for one in on_host))
            steps.append((places, ", ".join(one.name for one in on_host), heard_ns, answered_ns))
        if shape in ("answered", "told", "looped"):
            sent_ns = sampled_ns if shape == "looped" else answered_ns
            steps.append((f"{link}, to the board", told, sent_ns, act_ns))
            steps.append((section.place, own[-1], act_ns, acted_ns))
        return steps

    def words(self, run: BoardsRun) -> str:
        longest_ns = max(chain.period_ns for chain in self._chains)
        fields: dict[str, object] = {
            "seed": run.seed,
            "steady": "true",
            "horizon_us": horizon_ns(self._system) // MICROSECOND,
            "hosts": ",".join(str(one.lanes) for one in self._hosts),
            "settle_us": (longest_ns + max(map(self._transit, self._links))) // MICROSECOND,
        }
        if self._losses:
            fields |= {"instance_losses": self._losses, "instance_loss": 0.3}
        settings = [f"{name}={value}" for name, value in fields.items() if value != ""]
        boards = (self._board_words(number, run) for number in range(len(self._boards)))
        return ";".join((*settings, *boards))

    def _transit(self, link: SerialLink | UdpLink) -> int:
        """All that is sent, one after the other: a chain without a bound may ask more of the line than it can carry."""
        baud = link.baud if isinstance(link, SerialLink) else _UDP_BAUD
        octets, played_ns = 0, horizon_ns(self._system)
        for chain in self._chains:
            instances = -(-played_ns // chain.period_ns)
            for callback in chain.callbacks:
                if callback.sends:
                    frames = callback.sent_bytes // (link.mtu_bytes // 2) + 1
                    octets += instances * 2 * (callback.sent_bytes + frames * FRAME_BYTES)
        return (1 + self._losses) * octets * 10 * 1_000_000_000 // baud

    def _board_words(self, number: int, run: BoardsRun) -> str:
        board, link = self._boards[number], self._links[number]
        executor = next((one for one in CLIENT_EXECUTORS if one == self._executor), executor_of_board(board))
        batch, _, send = executor.partition("_")
        asks_ms = link.agent_heartbeat_ms
        fields: dict[str, object] = {
            "board": f"board{number}",
            "policy": "batch" if batch == "batch" else "tide",
            "send": send or "asynchronous",
            "lanes": 2 if executor == "lanes" else 1,
            "baud": link.baud if isinstance(link, SerialLink) else _UDP_BAUD,
            "mtu": link.mtu_bytes,
            "agent_least_us": run.agent_ns[number][0] // MICROSECOND,
            "agent_most_us": run.agent_ns[number][1] // MICROSECOND,
            "return_least_us": run.return_ns[number][0] // MICROSECOND,
            "return_most_us": run.return_ns[number][1] // MICROSECOND,
            "heartbeat_delay_us": -1 if link.heartbeat_delay_ms is None else link.heartbeat_delay_ns // MICROSECOND,
            "agent_heartbeat_delay_us": -1 if asks_ms is None else nanoseconds(asks_ms) // MICROSECOND,
        }
        if board.name in self._need_of:
            fields |= pool_words(self._need_of[board.name])
        if run.costs:
            interrupt_us = nanoseconds(board.interrupt_ms) // MICROSECOND
            fields |= {
                "submit_us": nanoseconds(board.submit_ms) // MICROSECOND,
                "process_us": nanoseconds(board.process_ms) // MICROSECOND,
                "dispatch_us": nanoseconds(board.dispatch_ms) // MICROSECOND,
                "interrupt_receive_us": interrupt_us,
                "interrupt_complete_us": interrupt_us,
            }
        settings = (f"{name}={value}" for name, value in fields.items())
        return ";".join((*settings, *(self._section(one, run) for one in self._played[number])))

    def _section(self, section: Section, run: BoardsRun) -> str:
        chain = section.chain
        place = self.chain_names.index(chain.name)
        base = next(one for one in all_of(self._sections[place]) if one.callbacks == section.callbacks)
        takes = self._takes[base.name]
        timer = self._system.timer_of(chain)
        shape, calls = self._shapes[base.name], self._services[base.name]
        where = {id(one): number for number, one in enumerate(chain.callbacks)}
        times_us = {key: run.executions_ns[place][number] // MICROSECOND for key, number in where.items()}
        on_board = [one for one in section.callbacks if one.executor == section.place]
        on_host = [one for one in section.callbacks if one.executor != section.place]
        on_board_us = [times_us[id(one)] for one in on_board]
        if shape == "told":
            on_board_us.insert(0, 0)
        behind: list[Callback] = []
        if calls == "serves":
            served = section.callbacks.index(on_board[0])
            behind, on_host = list(section.callbacks[served + 1 :]), list(section.callbacks[:served])
        sent, taken = self._messages(base, run.payload_bytes[place], where)
        if takes and not on_host:
            taken = self._bytes_of(takes[self._members(base).index(section)], run)
        fields = {  # losses are counted by instance from phase_us on, on all boards
            "name": _numbered(place, section),
            "level": 0 if section.place == HOST else self._levels_of[section.place][chain.name],
            "shape": shape,
            "period_us": chain.period_ns // MICROSECOND,
            "phase_us": run.phases_ns[self.chain_names.index(timer.name)] // MICROSECOND,
            "payload_bytes": sent,
            "reply_bytes": taken,
            "sample_us": on_board_us[0] if on_board_us else 0,
            "host_us": times_us[id(on_host[0])] if on_host else 0,
            "act_us": on_board_us[1] if len(on_board_us) > 1 else 0,
            "jitter_us": chain.jitter_ns // MICROSECOND if section.before is None and not takes else 0,
            **({"burst": chain.burst} if section is self._first_of(chain.name) and chain.begins_with_event else {}),
            "reliable": str(chain.reliability == "reliable").lower(),
            "hold": str(self._holds(timer)).lower(),
            "node": self._node(on_host[0]) if on_host else 0,
        }
        fields |= self._locks_of(chain, on_board, begins_here=shape != "told")
        for key, callbacks in (("more", on_host[1:]), ("after", behind)):
            if callbacks:
                fields[f"{key}_nodes"] = ",".join(str(self._node(one)) for one in callbacks)
                fields[f"{key}_us"] = ",".join(str(times_us[id(one)]) for one in callbacks)
        fields |= self._hops_of(section, on_host, behind, run)
        if servers := self._servers_of(on_host, behind):
            fields["servers"] = servers
        if calls != "topics":
            number = self._sections[place].index(base) if section.before is None and not section.inner else 0
            fields |= {"calls": calls, "service": f"c{place}" + (f"n{number}" if number else ""), "mark": place + 1}
        if section.inner:
            fields["next"] = _numbered(place, section.inner[0])
        elif not section.is_last and calls == "topics":
            sections = self._sections[place]
            fields["next"] = _numbered(place, sections[sections.index(section) + 1])
        if self._is_joined_on_board(base):
            fields["join"] = place + 1
        elif len(takes) > 1:
            fields["waits"] = len(takes)
        if shape == "heard" and section.is_last and not on_host:
            fields["ends_sampled"] = "true"
        if begins := self._begins.get(section.name):
            fields["begins"] = ",".join(name for name, _ in begins)
            fields["begins_at"] = ",".join(str(done) for _, done in begins)
        return "chain=" + " ".join(f"{name}={value}" for name, value in fields.items())

    def _locks_of(self, chain: Chain, on_client: list[Callback], begins_here: bool) -> dict[str, str]:
        """Of a chain as it is described. The first callback of one that begins on the board samples."""
        ways = ["sample_locks", "act_locks"] if begins_here else ["act_locks"]
        fields = {}
        for way, callback in zip(ways, on_client, strict=False):
            taken = [
                f"{number},{one.section_ns // MICROSECOND}"
                for number, lock in enumerate(self._system.locks)
                for one in lock.sections
                if one.callback == (chain.name, callback.name)
            ]
            if taken:
                fields[way] = ",".join(taken)
        return fields

    def _hops_of(
        self, section: Section, on_host: list[Callback], behind: list[Callback], run: BoardsRun
    ) -> dict[str, object]:
        """How long messages are under way between executors of the host: as long as they may, or no time."""
        if run.seed % 4 == 0:
            return {}
        fields: dict[str, object] = {}
        for key, callbacks in (("more", on_host), ("after", behind)):
            hops_us = [self._system.hop_ns(*pair) // MICROSECOND for pair in itertools.pairwise(callbacks)]
            if key == "after" and behind:
                hops_us.insert(0, 0)
            if any(hops_us):
                fields[f"{key}_hops_us"] = ",".join(map(str, hops_us))
        takes = self._takes.get(section.name, ())
        if takes and on_host and section.callbacks[0] is on_host[0]:
            fields["hop_us"] = min(self._system.hop_ns(one, on_host[0]) for one in takes) // MICROSECOND
        return fields

    def _bytes_of(self, made_by: Callback, run: BoardsRun) -> int:
        return next(
            run.payload_bytes[place][number]
            for place, chain in enumerate(self._chains)
            for number, one in enumerate(chain.callbacks)
            if one is made_by
        )

    def _holds(self, timer: Chain) -> bool:
        """One of the chains of a timer does, which have one level."""
        return any(one.hold for one in self._chains if self._system.timer_of(one) is timer)

    def _servers_of(self, on_host: list[Callback], behind: list[Callback]) -> str:
        """Empty: none of these callbacks of the host serves several chains."""
        numbers = [self._servers.get(id(one), 0) for one in (*on_host, *behind)]
        if not on_host:
            numbers.insert(0, 0)
        return ",".join(map(str, numbers)) if any(numbers) else ""

    def _node(self, callback: Callback) -> int:
        return next((n for n, one in enumerate(self._hosts, 1) if one.name == callback.executor), 0)

    def _messages(self, section: Section, sizes: tuple[int, ...], where: dict[int, int]) -> tuple[int, int]:
        """Bytes of what the board sends, and of what it takes."""
        chain, shape = section.chain, self._shapes[section.name]
        first, last = where[id(section.callbacks[0])], where[id(section.callbacks[-1])]
        if self._services[section.name] == "serves":
            served = next(n for n in range(first, last + 1) if chain.callbacks[n].kind == "service")
            return sizes[served], sizes[served - 1]
        if shape == "hosted":  # nothing crosses
            return LEAST_BYTES, LEAST_BYTES
        taken = sizes[max(last - 1, 0)] if shape in ("answered", "told") else sizes[first]
        return (LEAST_BYTES if shape == "told" else sizes[first]), taken


def _is_alone(system: System, server: Callback) -> bool:
    """It does not overlap itself."""
    return all(group.kind == "exclusive" for group in system.groups if group.name == server.group)


def _numbered(place: int, section: Section) -> str:
    """Of a chain's place and the section's, as the plan names it."""
    return f"c{place}s{int(section.name.partition(NUMBER)[2] or 1) - 1}"


def _as_played(system: System, sections: list[Section]) -> list[Section]:
    """A node may ask a board one service after the other, as for a goal and its result: each is played by itself, and
    begun by what the node does with the reply before it."""
    if len(sections) != 1 or sections[0].place == HOST or sections[0].away:
        return sections
    (whole,) = sections
    served = [n for n, one in enumerate(whole.callbacks) if one.kind == "service" and system.where(one) == "mcu"]
    if len(served) < 2 or len(served) != sum(system.where(one) == "mcu" for one in whole.callbacks):
        return sections
    cuts = [0, *served[1:], len(whole.callbacks)]
    return [
        replace(whole, name=f"{whole.chain.name}{NUMBER}{number}", callbacks=whole.callbacks[first:last])
        for number, (first, last) in enumerate(itertools.pairwise(cuts), 1)
    ]


def service_of(system: System, section: Section) -> str:
    """What is a service's of a section: the board asks, it serves, or neither. As sim/board/plan.h has it.
    UnplayableError for what the simulated program cannot be."""
    own = [one for one in section.callbacks if one.executor == section.place]
    kinds = [one.kind for one in own]
    if any(one.requests or one.replies for one in own) or "client" in kinds:
        whole = section.before is None and section.is_last
        asked = section.before is not None and section.before.requests and system.where(section.before) == "mcu"
        if kinds == ["service"] and (whole or asked):
            return "serves"
        ends = section.callbacks[0], section.callbacks[-1]
        if whole and len(own) == 2 and ends == tuple(own) and own[0].requests and kinds[1] == "client":
            return "asks"
        raise UnplayableError("a chain with a service of a board does nothing else there, and not on that board alone")
    if section.away:
        raise UnplayableError("a chain comes back to a board from another one, and not with the reply of a service")
    return "topics"
