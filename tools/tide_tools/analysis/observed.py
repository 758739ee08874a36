# SPDX-License-Identifier: Apache-2.0
"""Measurements of runs and simulations next to the bounds: one line for each chain of each run.

Observations and bounds both count from the nominal expiry of the chain's timer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tide_tools.analysis.bounds import bounds_of, executors_for
from tide_tools.analysis.result import Bounds
from tide_tools.system.model import System

DESCRIBED = "described"  # name of the run in which each board has the policy that the description gives it
_EXECUTORS = {
    ("tide", "asynchronous"): "tide",
    ("tide-preemptive", "asynchronous"): "lanes",
    ("batch", "asynchronous"): "batch",
    ("batch", "stock"): "batch_stock",
    ("batch", "blocking"): "batch_blocking",
    ("readyset", "asynchronous"): "default",
}


class ObservationError(Exception):
    """Results that cannot be compared with this system's bounds. One line that names the reason and the remedy."""


@dataclass(frozen=True)
class Observation:
    """One chain of one run. bound_ns None: the chain has no bound. worst_ns None: nothing ended. excluded: events of
    the run that the bound does not cover, so that exceeding it is no violation."""

    run: str
    chain: str
    bound_ns: int | None
    worst_ns: int | None
    samples: int
    replay: str = ""
    excluded: str = ""

    @property
    def ratio(self) -> float | None:
        return self.worst_ns / self.bound_ns if self.worst_ns is not None and self.bound_ns else None

    @property
    def is_longer(self) -> bool:
        return self.worst_ns is not None and self.bound_ns is not None and self.worst_ns > self.bound_ns

    @property
    def is_above(self) -> bool:
        """True if the observation exceeds its bound although the bound covers the run: the bound or one of its premises
        is wrong."""
        return self.is_longer and not self.excluded

    def verdict(self) -> str:
        """The message for an observation above its bound."""
        worst_ns, bound_ns = self.worst_ns or 0, self.bound_ns or 0
        how = f"; replay: {self.replay}" if self.replay else ""
        if self.excluded:
            how = f", which does not count: {self.excluded}"
        return (
            f"chain '{self.chain}', {self.run}: {worst_ns / 1e6:.3f} ms was seen, "
            f"above the bound of {bound_ns / 1e6:.3f} ms{how}"
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "above": self.is_above}


def read_results(path: Path) -> dict[str, Any]:
    """A results.json of `tide run` or `tide simulate`, or the folder that holds one."""
    file = path / "results.json" if path.is_dir() else path
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ObservationError(f"{file}: cannot be read: {error.strerror}; give what tide run wrote") from None
    except ValueError:
        raise ObservationError(f"{file}: is not JSON; give the results.json that tide run wrote") from None
    if not isinstance(data, dict) or data.get("schema") != 1 or not isinstance(data.get("runs"), list):
        raise ObservationError(f"{file}: is not a results.json of this version; run tide run again")
    return data


def executor_of(run: dict[str, Any]) -> str | None:
    """The executor whose bounds apply; none without an analysis."""
    name, send = str(run.get("executor")), str(run.get("send", "asynchronous"))
    return _EXECUTORS.get((name, send), name if name in ("default", "priority", DESCRIBED) else None)


def observations(
    system: System, results: dict[str, Any], losses: int = 0, whatever_was_lost: bool = False
) -> list[Observation]:
    """All chains of all runs that have an analysis. Bounds assume the reliability of the run. whatever_was_lost:
    include runs in which frames were lost on purpose; then the observations are marked as excluded."""
    return [
        one
        for run, bounds in bounded_runs(system, results, losses, whatever_was_lost)
        for one in joined(bounds, run, str(results.get("command", "")), excluded(run, losses))
    ]


def bounded_runs(
    system: System, results: dict[str, Any], losses: int = 0, whatever_was_lost: bool = False
) -> list[tuple[dict[str, Any], Bounds]]:
    """The runs that have an analysis, with their bounds. Raises ObservationError when no run has one."""
    if results.get("line_loss") and losses == 0 and not whatever_was_lost:
        raise ObservationError(
            f"{results['line_loss'] * 100:g} % of the frames of this run were lost and the bounds assume none; "
            "say how many of one instance with --losses"
        )
    found: list[tuple[dict[str, Any], Bounds]] = []
    for run in results["runs"]:
        executor = executor_of(run)
        if executor == DESCRIBED:
            found.append((run, bounds_of(as_run(system, run), None, losses)))
        elif executor is not None and executor in executors_for(system):
            found.append((run, bounds_of(as_run(system, run), executor, losses)))
    if not found:
        raise ObservationError(
            "no run of these results has an executor that the analysis supports; "
            f"give results of one of: {', '.join(executors_for(system))}"
        )
    return found


def _count(run: dict[str, Any], part: str, *names: str) -> int:
    counters = run.get("counters", {}).get(part, {})
    return sum(int(counters.get(name, 0)) for name in names)


def _lost(run: dict[str, Any]) -> tuple[int, int]:
    """Numbers of damaged and of repeated frames."""
    damaged = _count(run, "receiver", "checksum_errors") + _count(run, "agent", "checksum_errors")
    return damaged, _count(run, "transmitter", "retransmissions")


def _pool_full(run: dict[str, Any]) -> int:
    return _count(run, "transmitter", "refused_full") + _count(run, "receiver", "overflow_dropped")


def excluded(run: dict[str, Any], losses: int) -> str:
    """Losses that may have made an instance longer than a bound for this many losses. Empty: none. It is not known
    which instance lost a frame, so one may have lost all of them."""
    damaged, again = _lost(run)
    if max(damaged, again) > losses:
        most = f"more than {losses}" if losses else "some"
        return f"{damaged} frames were damaged and {again} sent again, and one instance may have lost {most}"
    if _pool_full(run):
        return "a pool was full"
    return "the client connected again" if _count(run, "session", "reconnects") else ""


def beyond(results: dict[str, Any], losses: int = 0) -> list[str]:
    """Events of the runs that contradict the premises of the bounds, a line each."""
    lines = []
    for run in results["runs"]:
        damaged, again = _lost(run)
        instances = sum(int(chain.get("samples", 0)) + int(chain.get("lost", 0)) for chain in run["chains"])
        if max(again, damaged) > losses * instances:
            taken = f"{losses} of an instance" if losses else "none"
            lines.append(
                f"{run['executor']}: {damaged} frames were damaged and {again} sent again, and the bounds assume "
                f"{taken}; say how many of one instance with --losses"
            )
        full = _pool_full(run)
        if full:
            lines.append(f"{run['executor']}: a pool was full {full} times, which the bounds exclude; make it larger")
        if _count(run, "session", "reconnects"):
            lines.append(f"{run['executor']}: the client connected again, which the bounds exclude; look at the line")
    return lines


def joined(bounds: Bounds, run: dict[str, Any], replay: str = "", excluded: str = "") -> list[Observation]:
    send = run.get("send")
    label = f"{run['executor']}, {send}" if run["executor"] == "batch" and send else str(run["executor"])
    seen = [
        (one["name"], bounds.chain(one["name"]).bound_ns, one.get("max_ns"), int(one.get("samples", 0)))
        for one in run["chains"]
    ]
    return [Observation(label, *each, replay, excluded) for each in seen]


def longer(every: Sequence[Observation]) -> list[Observation]:
    """Chains above their bounds, even if the bound does not cover the run."""
    return [one for one in every if one.is_longer]


def above(every: Sequence[Observation]) -> list[Observation]:
    return [one for one in every if one.is_above]


def as_run(system: System, run: dict[str, Any]) -> System:
    """The system with the run's number of chains and reliability."""
    from tide_tools.system.variants import PlanError, with_chain_count

    names = [one["name"] for one in run["chains"]]
    known = {chain.name for chain in system.chains}
    if set(names) != known:
        try:
            system = with_chain_count(system, len(names))
        except PlanError as error:
            raise ObservationError(str(error)) from None
        missing = sorted(set(names) - {chain.name for chain in system.chains})
        if missing:
            raise ObservationError(
                f"the results are of another system: '{system.name}' has no chain '{missing[0]}'; give its description"
            )
    kinds = {one["name"]: one.get("reliability") for one in run["chains"]}
    chains = tuple(
        chain.model_copy(update={"reliability": kinds[chain.name] or chain.reliability}) for chain in system.chains
    )
    return system.with_chains(chains)
