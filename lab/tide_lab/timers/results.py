# SPDX-License-Identifier: Apache-2.0
"""The result of a run: the figures, their comparison with the goals, and the files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from tide_lab.timers.latencies import BUCKET_NS, Array, Summary
from tide_lab.timers.measure import Load, Outcome
from tide_lab.timers.plan import PLAIN, Settings
from tide_lab.timers.published import SOURCE, figures
from tide_tools.report.results import Machine
from tide_tools.terminal.style import empty_table

GOAL_RATIO = 1.1
GOAL_REPORTED_NS = 6000.0


@dataclass(frozen=True)
class Verdict:
    """A goal, the measured figure, and whether the goal is met (None if this run does not measure it)."""

    goal: str
    measured: str
    holds: bool | None


@dataclass
class Result:
    settings: Settings
    outcome: Outcome
    machine: Machine
    command: str

    def __post_init__(self) -> None:
        tide, plain, *ros = self.outcome.tallies.values()
        self.summaries: list[Summary] = []
        for tally in (tide, plain, self.outcome.cyclictest, *ros):
            is_other = tally is self.outcome.cyclictest
            if len(tally.measured_ns):
                skipped, resolution_ns = (None, BUCKET_NS) if is_other else (tally.skipped, 1)
                self.summaries.append(Summary.of(tally.name, tally.measured_ns, skipped, resolution_ns))
            if len(tally.reported_ns):
                self.summaries.append(Summary.of(f"{tally.name}, reported", tally.reported_ns, None))

    def summary(self, name: str) -> Summary | None:
        return next((summary for summary in self.summaries if summary.name == name), None)

    @property
    def differences_ns(self) -> Array:
        """For each expiry, the absolute difference of the reported and the measured latency."""
        tide = self.outcome.tide
        differences: Array = np.abs(tide.measured_ns - tide.reported_ns)
        return differences

    def verdicts(self) -> list[Verdict]:
        tide = self.summary("tide")
        if tide is None:
            return []
        found = [Verdict("never early", f"{tide.early} of {tide.samples:,} early", tide.early == 0)]
        found += self._against_cyclictest(tide)
        differences = self.differences_ns
        mean, peak = float(differences.mean()), int(differences.max())
        found.append(
            Verdict(
                "reported within 6 us of measured on average",
                f"{mean / 1000:.2f} us, peak {peak / 1000:.2f} us",
                mean <= GOAL_REPORTED_NS,
            )
        )
        return found

    def _against_cyclictest(self, tide: Summary) -> list[Verdict]:
        """The goals relative to cyclictest. tide's latencies are truncated to microseconds, as cyclictest truncates its
        own."""
        other, plain = self.summary("cyclictest"), self.summary(PLAIN)
        mean_ns = float(self.outcome.cyclictest.measured_ns.mean()) if other is not None else 0.0
        if other is None or mean_ns == 0 or other.percentiles_ns["p99.9"] == 0:
            return []
        ours = float((self.outcome.tide.measured_ns // BUCKET_NS).mean()) * BUCKET_NS / mean_ns
        late = tide.percentiles_ns["p99.9"] // BUCKET_NS * BUCKET_NS / other.percentiles_ns["p99.9"]
        found = [
            Verdict(f"{what} at most {GOAL_RATIO} x cyclictest's", f"{ratio:.3f} x", self._judged(ratio))
            for what, ratio in (("average", ours), ("99.9th percentile", late))
        ]
        if plain is not None:
            ratio = plain.mean_ns / other.mean_ns
            found.append(Verdict("average without the early wake-up", f"{ratio:.3f} x cyclictest's", None))
        return found

    def _judged(self, ratio: float) -> bool | None:
        """True if the ratio meets the goal; None for the normal policy, for which no goal is stated."""
        return None if self.settings.policy == "normal" else ratio <= GOAL_RATIO

    def to_json(self) -> str:
        outcome = self.outcome
        differences = self.differences_ns
        data = {
            "schema": 1,
            "case": "timers",
            "on": "native",
            "command": self.command,
            "machine": self.machine.model_dump(),
            "settings": asdict(self.settings),
            "published": {"source": SOURCE, "min_mean_max_us": figures(self.settings)},
            "interrupted": outcome.interrupted,
            "failure": outcome.failure,
            "memory_locked": outcome.memory_locked,
            "cpu_latency_held": outcome.cpu_latency_held,
            "load": [asdict(load) | {"reached": load.is_reached} for load in outcome.loads],
            "told_another_expiry": outcome.tide.told_another_expiry,
            "reported_difference_ns": {
                "mean": round(float(differences.mean()), 1) if len(differences) else None,
                "max": int(differences.max()) if len(differences) else None,
            },
            "latencies": [asdict(summary) for summary in self.summaries],
            "goals": [asdict(verdict) for verdict in self.verdicts()],
        }
        return json.dumps(data, indent=1) + "\n"


def write_files(result: Result, folder: Path) -> None:
    """Writes results.json, a log for each kind of latency with one value in us per line, and cyclictest's histogram."""
    (folder / "results.json").write_text(result.to_json(), encoding="utf-8")
    for tally in result.outcome.tallies.values():
        for kind, values in (("measured", tally.measured_ns), ("reported", tally.reported_ns)):
            if len(values):
                _write_log(folder / f"{tally.name}.{kind}.log", values)
    if len(result.outcome.cyclictest.measured_ns):
        values, counts = np.unique(result.outcome.cyclictest.measured_ns, return_counts=True)
        lines = [f"{_us(value)} {count}" for value, count in zip(values.tolist(), counts.tolist(), strict=True)]
        (folder / "cyclictest.histogram.log").write_text("\n".join([*lines, ""]), encoding="ascii")


def _us(value_ns: int) -> str:
    sign = "-" if value_ns < 0 else ""
    return f"{sign}{abs(value_ns) // 1000}.{abs(value_ns) % 1000:03d}"


def _write_log(path: Path, values_ns: Array) -> None:
    with path.open("w", encoding="ascii") as file:
        for part in np.array_split(values_ns, max(1, len(values_ns) // 100_000)):
            file.write("".join(f"{_us(value)}\n" for value in part.tolist()))


# ---- what a run prints ----

_UNKNOWN = "-"


def title(settings: Settings) -> str:
    load = f"{settings.load_percent} % load" if settings.load_percent else "no load of its own"
    timeout = f"{settings.timeout_us / 1000:g} ms" if settings.timeout_us >= 1000 else f"{settings.timeout_us} us"
    return f"timer of {timeout}, {settings.scheduling_text}, {load}"


def us(value_ns: float) -> str:
    """Microseconds as text, with at least three significant digits."""
    value = value_ns / 1000
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def summary_table(result: Result) -> Table:
    table = empty_table("latency in us: actual minus expected expiry", gap=0)
    table.add_column("", no_wrap=True)
    for heading in ("samples", "min", "average", "50 %", "99 %", "99.9 %", "max", "early", "skipped"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in result.summaries:
        percentiles = [one.percentiles_ns[name] for name in ("p50", "p99", "p99.9")]
        figures = map(us, (one.min_ns, one.mean_ns, *percentiles, one.max_ns))
        skipped = _UNKNOWN if one.skipped is None else f"{one.skipped}"
        table.add_row(one.name, f"{one.samples}", *figures, f"{one.early}", skipped)
    return table


def load_lines(loads: Iterable[Load]) -> Iterator[str]:
    for load in loads:
        text = (
            f"load on processor {load.cpu}: {load.achieved_percent:.1f} % (wanted {load.wanted_percent} %), "
            f"processor busy {load.busy_percent:.0f} % with everything"
        )
        yield (
            text
            if load.is_reached
            else f"[bold red]not reached:[/bold red] {text}; what measures and other work had the rest"
        )


def verdict_line(verdict: Verdict) -> str:
    word = {True: "[green]holds[/green]", False: "[bold red]missed[/bold red]", None: "[dim]no goal here[/dim]"}
    return f"{verdict.goal}: {verdict.measured}  {word[verdict.holds]}"
