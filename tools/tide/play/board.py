# SPDX-License-Identifier: Apache-2.0
"""A description with a board and a line on the shipped session, daemon, executor and agent core in virtual time: what
may vary from run to run, and the plan of one run for tide-sim."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tide.analysis.bounds import bounds_of
from tide.analysis.sizing import Need
from tide.play.paths import Instance
from tide.play.server import Played
from tide.system.levels import levels
from tide.system.model import Callback, Chain, System, nanoseconds
from tide.system.places import SerialLink

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
class BoardRun:
    """All that may differ between two runs of a description."""

    phases_ns: tuple[int, ...]
    executions_ns: tuple[tuple[int, ...], ...]  # by callback
    payload_bytes: tuple[tuple[int, ...], ...]  # of what each publishes
    agent_ns: tuple[int, int]
    return_ns: tuple[int, int]
    costs: bool  # of the executor: as described, or none
    seed: int


def instance_of(first: tuple[int, ...], last: tuple[int, ...]) -> Instance:
    """Of what the simulator records of its first and its last section (tide.play.server). One that begins on the host
    is not seen to start there: it may have looked as early as its release."""
    return Instance(first[0], first[1] if first[1] >= 0 else first[0], last[-1])


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


class BoardPlayer:
    """Of one executor. The source of chance is the caller's. needs: those of its bounds, if they are known already."""

    def __init__(
        self, system: System, executor: str, losses: int, source: random.Random, needs: Sequence[Need] | None = None
    ) -> None:
        self._random = source
        self._losses = losses
        self._system = system
        self._executor = executor
        self._needs = bounds_of(system, executor, losses).needs if needs is None else needs
        (self._client,) = (one for one in system.executors if one.where == "mcu")
        (link,) = system.links
        if not isinstance(link, SerialLink):
            raise UnplayableError("the link is no serial one")
        self._link = link
        if link.quantum_bytes not in (0, link.mtu_bytes):
            raise UnplayableError("the simulated board has the MTU as its quantum")
        self._levels = levels(system, self._client.name)
        self._hosts = [one for one in system.executors if one.where == "host"]
        self._chains = system.chains
        self._places = [tuple(system.where(callback) for callback in chain.callbacks) for chain in system.chains]
        for places in self._places:
            if places not in SHAPES:
                raise UnplayableError("a chain goes over the line once and back at most, with one callback on a side")
        require_no_losses_of_events(system, losses)
        self._marks_ns = [0]
        for chain in system.chains:
            times_ns = [callback.execution_ns for callback in chain.callbacks]
            self._marks_ns += [times_ns[0], times_ns[0] + times_ns[-1], sum(times_ns)]
        self.chain_names = [chain.name for chain in system.chains]

    def drawn(self) -> BoardRun:
        source = self._random
        places = range(len(self._chains))
        heavy = source.random() < 0.5
        return BoardRun(
            tuple(self._phase(place) for place in places),
            tuple(self._executions(place, heavy) for place in places),
            tuple(self._bytes(place) for place in places),
            self._span(nanoseconds(self._link.agent_ms)),
            self._span(nanoseconds(self._link.return_ms)),
            source.random() < 0.8,
            source.randrange(1_000_000),
        )

    def changed(self, run: BoardRun) -> BoardRun:
        """One thing is different."""
        told: BoardRun = self._changed(run)
        return told

    def _changed(self, run: Any) -> Any:
        source = self._random
        place = source.randrange(len(self._chains))
        kind = source.random()
        if kind < 0.55:
            phases = list(run.phases_ns)
            if source.random() < 0.6:
                reach = 1 << source.randrange(4, 16)
                shifted_ns = phases[place] + source.randint(-reach, reach) * MICROSECOND
                phases[place] = max(0, shifted_ns) % self._chains[place].period_ns
            else:
                phases[place] = self._phase(place)
            return replace(run, phases_ns=tuple(phases))
        if kind < 0.7:
            executions = list(run.executions_ns)
            executions[place] = self._executions(place, source.random() < 0.5)
            return replace(run, executions_ns=tuple(executions))
        if kind < 0.75:
            sizes = list(run.payload_bytes)
            sizes[place] = self._bytes(place)
            return replace(run, payload_bytes=tuple(sizes))
        if kind < 0.85 and isinstance(run, BoardRun):
            return replace(
                run,
                agent_ns=self._span(nanoseconds(self._link.agent_ms)),
                return_ns=self._span(nanoseconds(self._link.return_ms)),
            )
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

    def _exact(self, _place: int) -> bool:
        return self._link.exact_sizes

    def _bytes(self, place: int) -> tuple[int, ...]:
        source = self._random
        sizes = []
        for callback in self._chains[place].callbacks:
            most = callback.sent_bytes or LEAST_BYTES
            shorter = not self._exact(place) and source.random() < 0.2
            sizes.append(source.randint(min(LEAST_BYTES, most), most) if shorter else most)
        return tuple(sizes)

    def _span(self, most_ns: int) -> tuple[int, int]:
        return self._random.choice(((0, most_ns), (most_ns, most_ns), (most_ns, most_ns), (0, 0)))

    def recording(self, words: str) -> str:
        """The same run, with the times of its instances."""
        return f"record=true;{words}"

    def instances(self, played: Played) -> list[list[Instance]]:
        """Of a recorded run, by chain."""
        return [[instance_of(one, one) for one in chain if one[-1] >= 0] for chain in played.recorded]

    def of_chains(self, played: Played) -> Played:
        return played

    def words(self, run: BoardRun) -> str:
        link, client = self._link, self._client
        batch, _, send = self._executor.partition("_")
        longest_ns = max(chain.period_ns for chain in self._chains)
        fields: dict[str, object] = {
            "steady": "true",
            "seed": run.seed,
            "policy": "batch" if batch == "batch" else "tide",
            "send": send or "asynchronous",
            "lanes": 2 if self._executor == "lanes" else 1,
            "horizon_us": horizon_ns(self._system) // MICROSECOND,
            "baud": link.baud,
            "mtu": link.mtu_bytes,
            "agent_least_us": run.agent_ns[0] // MICROSECOND,
            "agent_most_us": run.agent_ns[1] // MICROSECOND,
            "return_least_us": run.return_ns[0] // MICROSECOND,
            "return_most_us": run.return_ns[1] // MICROSECOND,
            "heartbeat_delay_us": -1 if link.heartbeat_delay_ms is None else link.heartbeat_delay_ns // MICROSECOND,
            "agent_heartbeat_delay_us": nanoseconds(link.agent_heartbeat_ms) // MICROSECOND,
            "hosts": ",".join(str(one.lanes) for one in self._hosts),
            **(pool_words(self._needs[0]) if self._needs else {}),
            "settle_us": (longest_ns + self._transit_ns()) // MICROSECOND,
        }
        if run.costs:
            interrupt_us = nanoseconds(client.interrupt_ms) // MICROSECOND
            fields |= {
                "submit_us": nanoseconds(client.submit_ms) // MICROSECOND,
                "process_us": nanoseconds(client.process_ms) // MICROSECOND,
                "dispatch_us": nanoseconds(client.dispatch_ms) // MICROSECOND,
                "interrupt_receive_us": interrupt_us,
                "interrupt_complete_us": interrupt_us,
            }
        if self._losses:
            fields |= {"instance_losses": self._losses, "instance_loss": 0.3}
        settings = [f"{name}={value}" for name, value in fields.items() if value != ""]
        return ";".join((*settings, *(self._chain(place, chain, run) for place, chain in enumerate(self._chains))))

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

    def _transit_ns(self) -> int:
        """All that is sent, one after the other: a chain without a bound may ask more of the line than it can carry."""
        return self._transit_on(self._link.mtu_bytes, self._link.baud)

    def _transit_on(self, mtu_bytes: int, baud: int) -> int:
        octets, played_ns = 0, horizon_ns(self._system)
        for chain in self._chains:
            instances = -(-played_ns // chain.period_ns)
            for callback in chain.callbacks:
                if callback.sends:
                    frames = callback.sent_bytes // (mtu_bytes // 2) + 1
                    octets += instances * 2 * (callback.sent_bytes + frames * FRAME_BYTES)
        return (1 + self._losses) * octets * 10 * 1_000_000_000 // baud

    def _chain(self, place: int, chain: Chain, run: BoardRun) -> str:
        places = self._places[place]
        shape = SHAPES[places]
        on_client = [one for one, where in zip(chain.callbacks, places, strict=True) if where == "mcu"]
        times_us = [time_ns // MICROSECOND for time_ns in run.executions_ns[place]]
        on_client_us = [time_us for time_us, where in zip(times_us, places, strict=True) if where == "mcu"]
        on_host_us = [time_us for time_us, where in zip(times_us, places, strict=True) if where == "host"]
        if shape == "told":
            on_client_us.insert(0, 0)
        sizes = run.payload_bytes[place]
        request, reply = sizes[0], sizes[1] if shape == "answered" else sizes[0]
        hosts = [callback.executor for callback in chain.callbacks if callback.executor != self._client.name]
        node = next((n for n, one in enumerate(self._hosts, 1) if one.name in hosts), 0)
        fields = {
            "name": f"chain{place}",
            "level": self._levels.get(chain.name, 0),
            "shape": shape,
            "period_us": chain.period_ns // MICROSECOND,
            "phase_us": run.phases_ns[place] // MICROSECOND,
            "payload_bytes": request,
            "reply_bytes": reply,
            "sample_us": on_client_us[0] if on_client_us else 0,
            "host_us": on_host_us[0] if on_host_us else 0,
            "act_us": on_client_us[1] if len(on_client_us) > 1 else 0,
            **({"jitter_us": jitter_us} if (jitter_us := getattr(chain, "jitter_ns", 0) // MICROSECOND) else {}),
            **({"burst": chain.burst} if chain.begins_with_event else {}),
            "reliable": str(chain.reliability == "reliable").lower(),
            "hold": str(chain.hold).lower(),
            "node": node,
            **self._locks_of(chain, on_client, begins_here=shape != "told"),
        }
        return "chain=" + " ".join(f"{name}={value}" for name, value in fields.items())
