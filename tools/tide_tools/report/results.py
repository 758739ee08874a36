# SPDX-License-Identifier: Apache-2.0
"""results.json: the measurements of a run or a simulation. Later versions may add fields, but never change the meaning
of a field. The module also defines the spans of one period of a run, for pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tide_tools.analysis.premises import GROUPS, OF_CODE, group_of, short
from tide_tools.report.verdict import Completeness, Observation, Premises, Verdict, exit_status, verdict

# ---- the parts of a latency: their names in the file and in the output ----

# By name in the file: name in the output, in the order in which parts are shown.
NAMES = (
    "start",
    "processor_wait",
    "execution",
    "wire_wait",
    "wire",
    "agent",
    "node",
    "node_wait",
    "return",
    "repair",
    "elsewhere",
)
LABELS = {
    "start": "release to start",
    "processor_wait": "waiting for the processor",
    "execution": "execution",
    "wire_wait": "waiting for the wire",
    "wire": "the wire",
    "agent": "agent, to the node",
    "node": "ROS 2 node",
    "node_wait": "waiting for the node",
    "return": "return, to the line",
    "repair": "repair of lost frames",
    "elsewhere": "line, agent and node together",
}


# ---- results.json ----


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(_Entry):
    processor: str
    cores: int
    memory_mib: int
    kernel: str
    python: str
    real_time_priorities: bool
    load_average: float
    date: str


class PartResult(_Entry):
    """A part of a chain's latency (tide_tools.run.evidence): its maximum over all instances, its value in the slowest
    instance, and its share of the bound, if the chain has one."""

    name: str
    most_ns: int
    slowest_ns: int
    bound_ns: int | None = None


class Answer(_Entry):
    """The result of a run for one premise of its bounds. margin: the unused share of the limit. chains: those for which
    the premise has this verdict; None: all chains."""

    id: str
    text: str
    verdict: Literal["held", "broken", "not observable here"]
    counter: str
    margin: float | None = None
    chains: list[str] | None = None

    def concerns(self, chain: str) -> bool:
        return self.chains is None or chain in self.chains


class Undisturbed(_Entry):
    """The undisturbed instances of a chain: those that no observed violation of a premise has affected
    (tide_tools.run.seen). until: the measured part of the chain ends when the chain leaves this board; empty: the whole
    chain was measured. max_ns: None if there was no undisturbed instance."""

    until: str = ""
    samples: int
    max_ns: int | None
    bound_ns: int | None = None

    @property
    def is_above(self) -> bool:
        return self.bound_ns is not None and (self.max_ns or 0) > self.bound_ns


class ChainResult(_Entry):
    """One chain in a run with one executor. Its latency is the time from the nominal expiry of its timer to the end of
    its last callback; in results of older versions it begins with the start of the first callback. part, unseen, doubt:
    see Completeness in tide_tools.report.verdict."""

    name: str
    priority: int
    reliability: str
    samples: int
    min_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    mean_ns: int | None
    std_ns: int | None
    deadline_ns: int
    deadline_misses: int
    bound_ns: int | None = None
    lost: int  # instances that started but did not end
    skipped: int = 0  # instances that did not start, because the timer could not run or the first message is missing
    part: str = ""
    unseen: str = ""
    doubt: str = ""
    latencies_ns: list[int]
    undisturbed: list[Undisturbed] = []  # empty: not determined
    parts: list[PartResult] = []


class PathResult(_Entry):
    """The reaction time or the data age of a path. late: number of observations above the limit. unseen: why there are
    no observations. Without a limit (deadline_ns) there is no verdict."""

    path: str
    what: Literal["reaction", "age"]
    chains: list[str]
    samples: int
    late: int
    p50_ns: int | None
    max_ns: int | None
    deadline_ns: int | None
    bound_ns: int | None = None
    unseen: str = ""

    @property
    def name(self) -> str:
        return f"{self.what} of {self.path}"


class Run(_Entry):
    executor: str
    send: str
    periods: int
    chains: list[ChainResult]
    paths: list[PathResult] = []
    counters: dict[str, Any] = {}
    evidence: dict[str, Any] = {}  # evidence about the premises (tide_tools.run.evidence)
    answers: list[Answer] = []

    @property
    def estimated(self) -> str:
        """A text that says how many of the times on which the bounds rest were measured; empty if all were."""
        return str(self.evidence.get("estimated", ""))

    @property
    def label(self) -> str:
        return f"{self.executor}, {self.send}" if self.executor == "batch" else self.executor

    def verdict(self, chain: ChainResult) -> Verdict:
        return verdict(
            Observation(chain.samples, chain.deadline_misses, chain.lost, chain.skipped, chain.max_ns),
            Completeness(chain.part, chain.unseen, chain.doubt),
            premises_of([one for one in self.answers if one.concerns(chain.name)]),
            chain.deadline_ns,
            chain.bound_ns,
        )

    @property
    def verdicts(self) -> list[Verdict]:
        return [self.verdict(chain) for chain in self.chains]

    @property
    def judged(self) -> list[tuple[ChainResult | PathResult, Verdict]]:
        """All results that have a verdict: those of chains, and those of paths with a limit."""
        found: list[tuple[ChainResult | PathResult, Verdict]] = [(one, self.verdict(one)) for one in self.chains]
        for one in (one for one in self.paths if one.deadline_ns is not None):
            seen = Observation(one.samples, one.late, 0, 0, one.max_ns)
            held = premises_of([each for each in self.answers if any(map(each.concerns, one.chains))])
            told = verdict(seen, Completeness(unseen=one.unseen), held, one.deadline_ns or 0, one.bound_ns)
            found.append((one, told))
        return found

    @property
    def refuted(self) -> list[str]:
        """Chains with an undisturbed instance that exceeded its bound by more than tide-pauses takes plus what a run
        tolerates, each with the board up to which it was measured. Either the bound is wrong, or a premise that cannot
        be observed here does not hold."""
        watch = {"look_ns": 0, "step_ns": 1} | (self.evidence.get("pauses") or {})  # older results do not have them

        def is_above(one: ChainResult | PathResult | Undisturbed) -> bool:
            most_ns = one.max_ns or 0
            own_ns = watch_ns(watch["step_ns"], watch["look_ns"], most_ns) + 2 * TOLERATED_NS
            return one.bound_ns is not None and most_ns - own_ns > one.bound_ns

        found = []
        for chain in self.chains:
            own = [one for one in self.answers if one.verdict == "broken" and one.concerns(chain.name)]
            if any(one.id in _AT_NO_TIME for one in own):
                continue
            broken = bool(own)
            found += [chain.name] if is_above(chain) and not chain.undisturbed and not broken else []
            found += [
                f"{chain.name}{f' until it leaves {one.until}' if one.until else ''}"
                for one in chain.undisturbed
                if is_above(one)
            ]
        wrong = [one for one in self.answers if one.verdict == "broken"]
        whole = (one for one in self.paths if not any(each.concerns(name) for each in wrong for name in one.chains))
        return [*found, *(one.name for one in whole if is_above(one))]


# The delay that does not count as a disturbance of an instance: of its start on an idle executor, and of a callback by
# an interrupt or the reading of clocks.
TOLERATED_NS = 100_000


def watch_ns(step_ns: int, look_ns: int, length_ns: int) -> int:
    """The time that tide-pauses may take from a callback or an instance of this length: every step_ns it interrupts
    everything for look_ns."""
    return (length_ns // step_ns + 2) * look_ns


# Premises whose violation a run observes without its time, so that any instance may be affected.
_AT_NO_TIME = {"loads", "losses", "pools", "line_on_time", "other_real_time"}


def premises_of(answers: Sequence[Answer]) -> Premises:
    """The broken and the unobservable premises. Premises about an executor's code are omitted, because no run can
    decide about them: they are proved, and `tide lab hunt` tries to refute them."""
    asked = [one for one in answers if one.id not in OF_CODE]
    broken: dict[tuple[str, str], list[str]] = {}  # by observation, which may break several premises
    for one in asked:
        if one.verdict == "broken":
            broken.setdefault((group_of(one.id), one.counter), []).append(short(one.id))
    return Premises(
        tuple(
            f"broken, {group}: {', '.join(dict.fromkeys(names))} ({counter})"
            for group in GROUPS
            for (of, counter), names in broken.items()
            if of == group
        ),
        tuple(dict.fromkeys(short(one.id) for one in asked if one.verdict == "not observable here")),
    )


class Results(_Entry):
    schema_: Literal[1] = 1
    system: str
    on: Literal["native", "sim", "qemu"]
    seed: int
    command: str
    line_loss: float = 0.0
    link: str = ""
    machine: Machine
    runs: list[Run]
    judged: str = ""  # label of the run whose verdicts determine the exit status; empty: those of all runs

    def exit_status(self, require_guarantee: bool = False) -> int:
        """The exit status of the command (see `judged`)."""
        runs = self.judged_runs
        verdicts = [one for run in runs for _, one in run.judged]
        return exit_status(verdicts, require_guarantee, any(run.refuted for run in runs))

    @property
    def judged_runs(self) -> list[Run]:
        return [run for run in self.runs if run.label == self.judged] or self.runs

    def to_json(self) -> str:
        """The results as JSON, with all verdicts, for programs that read it. `from_json` ignores the verdicts and
        computes them again, because the rule may have changed."""
        data = self.model_dump()
        for run, dumped in zip(self.runs, data["runs"], strict=True):
            limited = [one for one in dumped["paths"] if one["deadline_ns"] is not None]
            for (_, one), told in zip(run.judged, [*dumped["chains"], *limited], strict=True):
                told["verdict"] = {"state": one.state.value, "reasons": list(one.reasons)}
        return json.dumps({"schema": data.pop("schema_"), **data}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Results:
        data = json.loads(text)
        data["schema_"] = data.pop("schema", None)
        for run in data.get("runs", ()):
            for one in (*run.get("chains", ()), *run.get("paths", ())):
                one.pop("verdict", None)
        return cls.model_validate(data)


class Row(_Entry):
    """One point of an experiment in which a quantity is varied. `published`: None if the paper has no value."""

    system: str
    x: dict[str, float]
    metric: str
    published: float | None
    measured: float | None
    samples: int


def counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def exact(value_ns: int | None) -> str:
    """The time in milliseconds with three decimals, the format of all times that are printed next to a bound."""
    return "none" if value_ns is None else f"{value_ns / 1e6:.3f}"


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """The smallest sample such that at least `percent` of all samples are not larger."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def summarise(
    name: str,
    priority: int,
    reliability: str,
    deadline_ns: int,
    latencies_ns: Sequence[int],
    lost: int,
    skipped: int = 0,
) -> ChainResult:
    ordered = sorted(latencies_ns)
    count = len(ordered)
    mean = sum(ordered) / count if count else 0.0
    variance = sum((latency - mean) ** 2 for latency in ordered) / count if count else 0.0
    return ChainResult(
        name=name,
        priority=priority,
        reliability=reliability,
        samples=count,
        min_ns=ordered[0] if count else None,
        p50_ns=nearest_rank(ordered, 50) if count else None,
        p99_ns=nearest_rank(ordered, 99) if count else None,
        max_ns=ordered[-1] if count else None,
        mean_ns=round(mean) if count else None,
        std_ns=round(math.sqrt(variance)) if count else None,
        deadline_ns=deadline_ns,
        deadline_misses=sum(latency > deadline_ns for latency in ordered),
        lost=lost,
        skipped=skipped,
        latencies_ns=list(latencies_ns),
    )


def write(results: Results, path: Path) -> None:
    path.write_text(results.to_json() + "\n", encoding="utf-8")


# ---- one period of a run: spans on the microcontroller, the line and the host ----


@dataclass(frozen=True)
class Span:
    """A callback or a message that took time. track: mcu, up (the line to the host), host or down (the line to the
    board). label: the name of the callback, or "message"."""

    track: str
    chain: str
    label: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Period:
    """One period of one run. Times count from the release."""

    label: str
    index: int
    latency_ns: int
    spans: list[Span] = field(default_factory=list)


def running(spans: Sequence[Span]) -> list[Span]:
    """The spans as they occupied their tracks. A board has one processor: of all callbacks under way, only the one that
    began last runs. A span of a board is therefore split into the pieces in which it ran."""
    found = [one for one in spans if one.track != "mcu"]
    board = sorted((one for one in spans if one.track == "mcu"), key=lambda one: (one.start_ns, -one.end_ns))
    for number, one in enumerate(board):
        at_ns = one.start_ns
        for other in board[number + 1 :]:
            if other.start_ns >= one.end_ns:
                break
            if other.start_ns > at_ns:
                found.append(replace(one, start_ns=at_ns, end_ns=other.start_ns))
            at_ns = max(at_ns, other.end_ns)
        if at_ns < one.end_ns or one.start_ns == one.end_ns:
            found.append(replace(one, start_ns=at_ns))
    return sorted(found, key=lambda one: one.start_ns)
