# SPDX-License-Identifier: Apache-2.0
"""Chains on multi-threaded executors: the case study of Sobhani, Choi and Kim, "Timing Analysis and Priority-driven
Enhancements of ROS 2 Multi-threaded Executors" (RTAS 2023), section VI-A; and the chain set four-chains, with which
rclcpp was measured. The paper's figures show no numbers, so the measurements here are compared with the statements in
its text. The reference figures that are printed beside the measurements are those of the real rclcpp."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from tide_lab.programs import find_binary
from tide_tools.analysis.bounds import AnalysisError, bounds_of, compare_executors
from tide_tools.analysis.lower import host_document
from tide_tools.analysis.result import Bounds
from tide_tools.errors import FailureError, UsageError
from tide_tools.interrupts import interruptible
from tide_tools.outputs import require_folder, results_folder
from tide_tools.play.boards import PROGRAM
from tide_tools.play.host import Policy, host_plan
from tide_tools.programs.binaries import ROOT
from tide_tools.report.results import Row, nearest_rank
from tide_tools.system.load import load
from tide_tools.system.model import Callback, Chain, Group, System
from tide_tools.system.places import Executor
from tide_tools.terminal.style import empty_table, print_whole, progress_bar

POLICY_LETTERS: dict[Policy, str] = {"readyset": "D", "tide": "P"}
# Time that rclcpp spends on a callback, including DDS, on the machine on which the figures in Reference were measured.
# With this value the simulator agrees with all those figures within 10 %.
RCLCPP_CALLBACK_US = 600.0
PHASINGS = 100  # number of runs of the case study, each with newly drawn start times of its timers
HYPERPERIOD_MS = 200
EXCLUSIVE = ("c1", "c2")  # the text does not say which chains share a group; it calls these two unbounded


class HostError(FailureError):
    """The program refused its arguments, failed, or violated a rule; the message is one line."""


@dataclass(frozen=True)
class Responses:
    """Sorted responses of one chain. lost: number of instances that were released and never finished; skipped: number
    of expiries without a release."""

    name: str
    sorted_ns: Sequence[int]
    lost: int
    skipped: int

    def percentile_ms(self, percent: int) -> float | None:
        return nearest_rank(self.sorted_ns, percent) / 1e6 if self.sorted_ns else None

    @property
    def deviation_ms(self) -> float:
        mean = sum(self.sorted_ns) / max(1, len(self.sorted_ns))
        variance = sum((one - mean) ** 2 for one in self.sorted_ns) / max(1, len(self.sorted_ns))
        return float(variance**0.5) / 1e6


@dataclass(frozen=True)
class Configuration:
    """A configuration of an executor. cost_us: additional time that it takes to start a callback."""

    policy: Policy
    threads: int
    executors: int = 1
    exclusive: bool = False
    cost_us: float = 0
    halved: bool = False

    @property
    def name(self) -> str:
        """The name in the style of the paper's captions: R or ME (reentrant or mutually exclusive), D or P (default or
        priority-driven), and MT with the number of threads."""
        prefix = "2*" if self.executors == 2 else ""
        groups = "ME" if self.exclusive else "R"
        cost = f" +{self.cost_us / 1000:g} ms" if self.cost_us else ""
        halved = " half" if self.halved else ""
        return f"{groups}-{POLICY_LETTERS[self.policy]} {prefix}MT{self.threads}{cost}{halved}"

    @property
    def x(self) -> dict[str, float]:
        return {
            "threads": self.threads,
            "executors": self.executors,
            "exclusive": int(self.exclusive),
            "cost_us": self.cost_us,
            "halved": int(self.halved),
        }


# p50, p99 and maximum of each chain in ms, measured with rclcpp 28.1.6 (Jazzy), rmw_fastrtps and two cores. The
# executors were rclcpp's own, and a subclass that takes the most urgent ready callback at each choice.
Reference = tuple[tuple[float, float, float], ...]
REFERENCES: dict[tuple[str, Configuration], Reference] = {
    ("mt-case-study", Configuration("readyset", 2)): ((14, 18.5, 24), (27, 41, 50), (49, 53, 57), (137, 149, 164)),
    ("mt-case-study", Configuration("tide", 2)): ((6.8, 9.5, 16), (18, 21, 28), (53, 59, 75), (146, 157, 163)),
    ("four-chains", Configuration("readyset", 2)): ((22, 45, 49), (33, 57, 62), (57, 81, 83), (85, 100, 104)),
    ("four-chains", Configuration("tide", 2)): ((21, 25, 30), (32, 38, 48), (61, 73, 77), (102, 146, 152)),
    ("four-chains", Configuration("readyset", 2, halved=True)): (
        (12, 25, 34),
        (17, 32, 40),
        (26, 45, 64),
        (40, 55, 57),
    ),
    ("four-chains", Configuration("readyset", 1, halved=True)): (
        (26, 57, 61),
        (40, 80, 87),
        (46, 86, 92),
        (63, 94, 98),
    ),
}


def reference(case: str, configuration: Configuration) -> Reference | None:
    """The figures of rclcpp for a configuration that is equal except for cost_us; None if there are none."""
    plain = Configuration(
        configuration.policy,
        configuration.threads,
        configuration.executors,
        configuration.exclusive,
        halved=configuration.halved,
    )
    return REFERENCES.get((case, plain))


@dataclass(frozen=True)
class MtCase:
    """An experiment with multi-threaded executors. `scale` is a factor for all execution times of the description."""

    name: str
    title: str
    system: Path
    seconds: float
    scale: Decimal = Decimal(1)

    def load(self) -> System:
        return scaled(load(ROOT / self.system), self.scale)


def scaled(system: System, factor: Decimal) -> System:
    """The system with its execution times multiplied by a factor."""

    def longer(callback: Callback) -> Callback:
        times = {"execution_ms": callback.execution_ms * factor, "least_ms": callback.least_ms * factor}
        return callback.model_copy(update=times)

    return system.with_callbacks(longer)


MT_CASES = {
    case.name: case
    for case in (
        MtCase(
            "mt-case-study",
            "Figs. 5 to 8: four chains on executors of 1, 2, 4 and two of 2 threads",
            Path("examples/published/picas_mt/system.toml"),
            300,
            # The paper's text does not state the execution times. From this factor on, all of its statements about
            # bounds hold.
            Decimal("1.10"),
        ),
        MtCase(
            "four-chains",
            "four chains on two threads, beside real rclcpp",
            Path("examples/published/four_chains/system.toml"),
            60,
        ),
    )
}


def configurations(case: MtCase, threads: int | None) -> list[Configuration]:
    if case.name == "four-chains":
        found = [
            Configuration(policy, 2, cost_us=cost) for policy in POLICY_LETTERS for cost in (0, RCLCPP_CALLBACK_US)
        ]
        found += [Configuration("readyset", lanes, cost_us=RCLCPP_CALLBACK_US, halved=True) for lanes in (2, 1)]
        found.append(Configuration("tide", 2, halved=True))
        return [one for one in found if threads in (None, one.threads)]
    found = [
        Configuration(policy, lanes, exclusive=exclusive)
        for exclusive in (False, True)
        for policy in POLICY_LETTERS
        for lanes in ((1, 2, 4) if threads is None else (threads,))
    ]
    if threads in (None, 2):
        found += [Configuration(policy, 2, executors=2) for policy in POLICY_LETTERS]
    return found


def system_of(case: MtCase, configuration: Configuration) -> System:
    system = case.load()
    main = system.executors[0].model_copy(update={"lanes": configuration.threads})
    executors: tuple[Executor, ...] = (main,)
    groups: tuple[Group, ...] = system.groups
    if configuration.executors == 2:
        executors = (main, main.model_copy(update={"name": "back"}))
        groups = (*groups, Group(name="all_back", kind="reentrant"))
    if configuration.exclusive:
        groups = (*groups, Group(name="mutex", kind="exclusive"))
    chains = tuple(_chain(chain, configuration) for chain in system.chains)
    return system.model_copy(update={"executors": executors, "groups": groups, "chains": chains})


def _chain(chain: Chain, configuration: Configuration) -> Chain:
    def changed(position: int, callback: Callback) -> Callback:
        update: dict[str, Any] = {}
        if configuration.halved:
            update["execution_ms"] = callback.execution_ms / Decimal(2)
        if configuration.exclusive and chain.name in EXCLUSIVE:
            update["group"] = "mutex"
        # With two executors, the second half of the two less urgent chains runs on the second executor.
        if configuration.executors == 2 and chain.name not in EXCLUSIVE and 2 * position >= len(chain.callbacks) - 1:
            update |= {"executor": "back", "group": "all_back"}
        return callback.model_copy(update=update)

    return chain.model_copy(
        update={"callbacks": tuple(changed(position, one) for position, one in enumerate(chain.callbacks))}
    )


@dataclass(frozen=True)
class Outcome:
    """The result of one configuration. updates: number of updates of the set of ready callbacks; None if they were not
    counted. theorem: bounds in ms from the paper's theorem, for each form (published or safe) and chain."""

    configuration: Configuration
    chains: tuple[Responses, ...]
    updates: int | None
    callbacks_run: int
    bounds: Bounds | None
    theorem: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def chain(self, name: str) -> Responses:
        return next(one for one in self.chains if one.name == name)


def one_per_choice(outcome: Outcome) -> int:
    """Number of updates of the set if they are counted as in the paper's section V-C, where the priority-driven
    executor performs one for each choice of a thread."""
    return outcome.callbacks_run if outcome.configuration.policy == "tide" else outcome.updates or 0


def run_configuration(case: MtCase, configuration: Configuration, seconds: float, seed: int) -> Outcome:
    system = system_of(case, configuration)
    bounds = _bounds(system, configuration)
    several = case.name == "mt-case-study"
    runs = PHASINGS if several else 1
    spread_us = HYPERPERIOD_MS * 1000 if several else 0
    told = [
        call(host_plan(system, configuration.policy, seconds / runs, seed + number, spread_us, configuration.cost_us))
        for number in range(runs)
    ]
    chains = tuple(_responses(told, place) for place in range(len(system.chains)))
    executors = [one for run in told for one in run["executors"]]
    return Outcome(
        configuration,
        chains,
        sum(one["updates"] for one in executors),
        sum(one["callbacks_run"] for one in executors),
        bounds,
    )


def _responses(told: Sequence[dict[str, Any]], place: int) -> Responses:
    chains = [run["chains"][place] for run in told]
    return Responses(
        chains[0]["name"],
        sorted(one for chain in chains for one in chain["latencies_ns"]),
        sum(chain["lost"] for chain in chains),
        sum(chain["skipped"] for chain in chains),
    )


def _bounds(system: System, configuration: Configuration) -> Bounds | None:
    """The bounds; None if the configuration has an additional cost, which the execution times of the description do not
    include."""
    if configuration.cost_us:
        return None
    return bounds_of(system, "priority" if configuration.policy == "tide" else "default")


def call(plan: str) -> dict[str, Any]:
    """The run of a plan, with its latencies."""
    command = [str(find_binary(PROGRAM)), "record=true", *plan.split(";")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        data: dict[str, Any] = json.loads(done.stdout)["runs"][0]
        violations: list[str] = data["violations"]
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines()
        raise HostError(lines[-1] if lines else f"{PROGRAM} ended with status {done.returncode}") from None
    if violations:
        raise HostError(f"a rule was broken: {violations[0]}")
    return data


@dataclass
class MtResult:
    case: MtCase
    seconds: float
    seed: int
    outcomes: list[Outcome] = field(default_factory=list)

    def outcome(self, configuration: Configuration) -> Outcome | None:
        return next((one for one in self.outcomes if one.configuration == configuration), None)

    def rows(self) -> Iterator[Row]:
        for outcome in self.outcomes:
            yield from _rows(self.case, outcome)


def _rows(case: MtCase, outcome: Outcome) -> Iterator[Row]:
    configuration = outcome.configuration
    beside = reference(case.name, configuration)

    def row(metric: str, measured: float | None, published: float | None = None, samples: int = 0) -> Row:
        value = None if measured is None else round(measured, 6)
        return Row(
            system=configuration.policy,
            x=configuration.x,
            metric=metric,
            published=published,
            measured=value,
            samples=samples,
        )

    for place, chain in enumerate(outcome.chains):
        figures = beside[place] if beside else (None, None, None)
        count = len(chain.sorted_ns)
        for percent, name, figure in zip((50, 99, 100), ("p50", "p99", "max"), figures, strict=True):
            yield row(f"{chain.name}_{name}_ms", chain.percentile_ms(percent), figure, count)
        yield row(f"{chain.name}_std_ms", chain.deviation_ms, None, count)
        yield row(f"{chain.name}_lost", chain.lost + chain.skipped, None, count)
        bound = outcome.bounds.chain(chain.name) if outcome.bounds else None
        if bound is not None and bound.bound_ns is not None:
            yield row(f"{chain.name}_bound_ms", bound.bound_ns / 1e6, None, count)
        for form, by_chain in outcome.theorem.items():
            yield row(f"{chain.name}_{form}_bound_ms", by_chain[chain.name], None, count)
    if outcome.updates is not None:
        yield row("set_updates", outcome.updates, None, outcome.callbacks_run)
        yield row("set_updates_one_per_choice", one_per_choice(outcome), None, outcome.callbacks_run)


# ---- bounds of the paper ----
# The paper's bounds for a configuration, in the published and in the safe form, and the execution times with which all
# statements about bounds in its text hold.

FORMS = ("published", "safe")
SCALES = tuple(Decimal(percent) / 100 for percent in range(100, 131, 2))
# Bounds by chain, in ms; None if the analysis finds no bound.
ByChain = Mapping[str, float | None]

# According to the text, all reentrant and all priority-driven cases have bounds; with the default executor, these
# chains have none.
UNBOUNDED = {
    Configuration("readyset", 2, exclusive=True): frozenset({"c1", "c2"}),
    Configuration("readyset", 4, exclusive=True): frozenset({"c1"}),
}


def theorem(configuration: Configuration) -> str:
    """The theorem that the paper uses; it is always the one for constrained deadlines."""
    if configuration.exclusive:
        return "theorem5-constrained" if configuration.policy == "readyset" else "theorem6-constrained"
    return "theorem1" if configuration.policy == "readyset" else "theorem2"


def theorem_bounds(system: System, configuration: Configuration) -> dict[str, ByChain]:
    """Bounds by form. The bound of a chain over two executors is the sum of the bounds of its parts (section V-F) and
    of the delays in the description."""
    document = host_document(system, "priority" if configuration.policy == "tide" else "default")
    try:
        told = {(one.analysis, one.chain): one.response_ns for one in compare_executors(document)}
    except AnalysisError as error:
        raise HostError(str(error).splitlines()[-1]) from None
    paths = {path["name"]: (path["segments"], sum(path.get("delays_ns", ()))) for path in document["paths"]}
    found: dict[str, ByChain] = {}
    for form in FORMS:
        by_chain = {}
        for chain in system.chains:
            parts, delays_ns = paths.get(chain.name, ([chain.name], 0))
            responses = [told[f"{theorem(configuration)}-{form}", part] for part in parts]
            by_chain[chain.name] = None if None in responses else (sum(one or 0 for one in responses) + delays_ns) / 1e6
        found[form] = by_chain
    return found


@dataclass(frozen=True)
class Fit:
    """A factor for the execution times of the public example. `wrong` lists the paper's statements that contradict its
    theorem with this factor."""

    scale: Decimal
    wrong: tuple[str, ...]


def stated() -> list[Configuration]:
    """The configurations about whose bounds the text makes a statement: those with 2 and 4 threads."""
    single = [
        Configuration(policy, threads, exclusive=exclusive)
        for exclusive in (False, True)
        for policy in POLICY_LETTERS
        for threads in (2, 4)
    ]
    return [*single, *(Configuration(policy, 2, executors=2) for policy in POLICY_LETTERS)]


def differences(case: MtCase, scale: Decimal) -> Iterator[str]:
    for configuration in stated():
        system = scaled(system_of(case, configuration), scale / case.scale)
        unbounded = UNBOUNDED.get(configuration, frozenset())
        for name, bound_ms in theorem_bounds(system, configuration)["published"].items():
            if (bound_ms is None) != (name in unbounded):
                yield f"{configuration.name} {name}: {'no bound' if bound_ms is None else f'{bound_ms:.0f} ms'}"


def fits(case: MtCase) -> list[Fit]:
    return [Fit(scale, tuple(differences(case, scale))) for scale in SCALES]


# ---- findings ---- They compare the measurements with statements of the paper about its case study, and with results
# of the real rclcpp.


URGENT = ("c1", "c2")
UPDATES_MORE = 0.10


@dataclass(frozen=True)
class Finding:
    """A statement about the results, and whether it holds. published: true if it is a statement of the paper, false if
    it is one of this project."""

    text: str
    published: bool
    holds: bool


def pairs(result: MtResult) -> list[tuple[Outcome, Outcome]]:
    """Pairs of a default and a priority-driven outcome with otherwise the same configuration."""
    found = []
    for outcome in result.outcomes:
        if outcome.configuration.policy != "readyset":
            continue
        other = result.outcome(replace(outcome.configuration, policy="tide"))
        if other is not None:
            found.append((outcome, other))
    return found


def is_overloaded(result: MtResult, configuration: Configuration) -> bool:
    """True if there is more work than the threads can do: the responses grow until messages are dropped."""
    load = sum(
        callback.execution_ns / chain.period_ns for chain in result.case.load().chains for callback in chain.callbacks
    )
    return load * (0.5 if configuration.halved else 1) > configuration.threads * configuration.executors


def more_updates(default: Outcome, driven: Outcome) -> float:
    """By what share the driven executor performs more updates of its set than the default one."""
    return (driven.updates or 0) / max(1, default.updates or 0) - 1


def more_by_choice(default: Outcome, driven: Outcome) -> float:
    """Like `more_updates`, but with the updates of the priority-driven executor counted as in the paper, one for each
    choice."""
    return one_per_choice(driven) / max(1, default.updates or 0) - 1


def findings(result: MtResult) -> list[Finding]:
    if result.case.name != "mt-case-study":
        return list(_four_chains(result))
    return [*_case_study(result), *_of_bounds(result)]


def _urgent(outcome: Outcome) -> list[Responses]:
    return [outcome.chain(name) for name in URGENT]


def _not_longer(default: Outcome, driven: Outcome) -> bool:
    return all(
        (after.percentile_ms(percent) or 0) <= (before.percentile_ms(percent) or 0)
        for before, after in zip(_urgent(default), _urgent(driven), strict=True)
        for percent in (50, 99)
    )


def _not_wider(default: Outcome, driven: Outcome) -> bool:
    return all(
        after.deviation_ms <= before.deviation_ms
        for before, after in zip(_urgent(default), _urgent(driven), strict=True)
    )


def _case_study(result: MtResult) -> Iterator[Finding]:
    sound = [pair for pair in pairs(result) if not is_overloaded(result, pair[0].configuration)]
    if not sound:
        return
    where = "wherever the threads suffice for the load"
    yield Finding(
        f"priority-driven: c1 and c2 respond no later than under the default, {where}",
        True,
        all(_not_longer(default, driven) for default, driven in sound),
    )
    yield Finding(
        f"and their distribution is no wider, {where}",
        True,
        all(_not_wider(default, driven) for default, driven in sound),
    )
    two = [(default, driven) for default, driven in sound if default.configuration.threads == 2]
    single = [(default, driven) for default, driven in two if default.configuration.executors == 1]
    if single:
        yield Finding(
            "on one executor of two threads the 99th percentile of both is shorter, that of c2 by a quarter at least",
            False,
            all(
                (driven.chain(name).percentile_ms(99) or 0) <= share * (default.chain(name).percentile_ms(99) or 0)
                for default, driven in single
                for name, share in (("c1", 0.99), ("c2", 0.75))
            ),
        )
    if all(outcome.updates is not None for outcome in result.outcomes):
        yield Finding(
            f"fewer than 10 % more updates of the set performed than under the default, {where}",
            False,
            all(more_updates(default, driven) < UPDATES_MORE for default, driven in sound),
        )
        yield Finding(
            f"fewer than 10 % more when each choice updates the set, {where}",
            True,
            all(more_by_choice(default, driven) < UPDATES_MORE for default, driven in sound),
        )
    yield Finding(
        "no response exceeds its bound where every chain meets the deadlines that the bound assumes",
        True,
        all(_within_bounds(outcome) for outcome in result.outcomes),
    )


def _of_bounds(result: MtResult) -> Iterator[Finding]:
    """Findings on bounds, for the configurations that the text mentions."""
    spoken_of = [one for one in result.outcomes if one.configuration in stated() and one.theorem]
    reentrant = [one for one in spoken_of if not one.configuration.exclusive]
    exclusive = [one for one in spoken_of if one.configuration.exclusive]
    if reentrant:
        yield Finding(
            "reentrant: every chain has a published bound, and no 99th percentile is above it",
            True,
            all(_bounded_as(one, frozenset()) for one in reentrant),
        )
    if exclusive:
        yield Finding(
            "mutually exclusive: under the default c1 (2 and 4 threads) and c2 (2) have no published bound; all others "
            "have one, and no 99th percentile is above it",
            True,
            all(_bounded_as(one, UNBOUNDED.get(one.configuration, frozenset())) for one in exclusive),
        )
    if spoken_of:
        yield Finding(
            "no response is above the safe bound of the paper's theorem",
            False,
            all(_below(one, "safe", 100) for one in spoken_of),
        )


def _bounded_as(outcome: Outcome, unbounded: frozenset[str]) -> bool:
    published = outcome.theorem["published"]
    return {name for name, bound in published.items() if bound is None} == unbounded and _below(
        outcome, "published", 99
    )


def _below(outcome: Outcome, form: str, percent: int) -> bool:
    return all(
        bound_ms is None or (outcome.chain(name).percentile_ms(percent) or 0) <= bound_ms
        for name, bound_ms in outcome.theorem[form].items()
    )


def _within_bounds(outcome: Outcome) -> bool:
    if outcome.bounds is None:
        return True
    known = [(outcome.chain(bound.name), bound) for bound in outcome.bounds.chains]
    deadlines_met = all(
        chain.lost + chain.skipped == 0 and (chain.sorted_ns[-1] if chain.sorted_ns else 0) <= bound.deadline_ns
        for chain, bound in known
    )
    return not deadlines_met or all(
        bound.bound_ns is None or not chain.sorted_ns or chain.sorted_ns[-1] <= bound.bound_ns for chain, bound in known
    )


def _four_chains(result: MtResult) -> Iterator[Finding]:
    default = result.outcome(Configuration("readyset", 2))
    driven = result.outcome(Configuration("tide", 2))
    if default is None or driven is None:
        return
    subclass = reference("four-chains", driven.configuration) or ()
    for place, name in enumerate(URGENT):
        limit = subclass[place][1]
        yield Finding(
            f"{name}: p99 at or below that of the PiCAS-like subclass of rclcpp, {limit:g} ms",
            False,
            (driven.chain(name).percentile_ms(99) or 0) <= limit,
        )
    yield Finding(
        "c1: p99 at most 0.6 times that of the default policy in the same run",
        False,
        (driven.chain("c1").percentile_ms(99) or 0) <= 0.6 * (default.chain("c1").percentile_ms(99) or 0),
    )
    for outcome in result.outcomes:
        configuration = outcome.configuration
        if configuration.policy == "readyset" and configuration.cost_us and not configuration.halved:
            yield Finding(
                "the default policy, with what a callback costs in rclcpp: p50 and p99 of all chains within 10 % of "
                "real rclcpp's",
                False,
                _agrees(result, outcome),
            )


def _agrees(result: MtResult, outcome: Outcome) -> bool:
    beside = reference(result.case.name, outcome.configuration) or ()
    return all(
        abs((chain.percentile_ms(percent) or 0) / figure - 1) <= 0.1
        for chain, figures in zip(outcome.chains, beside, strict=True)
        for percent, figure in zip((50, 99), figures[:2], strict=True)
    )


# ---- the command: run, print, draw ----

SOURCE = {
    "mt-case-study": "Timing Analysis and Priority-driven Enhancements of ROS 2 Multi-threaded Executors, section "
    "VI-A; published: real rclcpp 28.1.6 and a PiCAS-like subclass of it, two cores",
    "four-chains": "published: real rclcpp 28.1.6 and a PiCAS-like subclass of it, two cores",
}
QUICK_SECONDS = 20.0


def reproduce_mt(
    name: str, seconds: float | None, seed: int, out: Path | None, on: str, threads: int | None, quick: bool
) -> None:
    """Prints tables, findings and the verdict, and writes results.json. Exits with status 1 if a finding of this
    project does not hold. Statements of the paper that do not hold here do not change the status; the verdict names
    them."""
    if on != "sim":
        raise UsageError(f"--on does not take '{on}'; {name} runs in virtual time, sim")
    case = MT_CASES[name]
    wanted = configurations(case, threads)
    length = seconds or (QUICK_SECONDS if quick else case.seconds)
    folder = out or Path("results") / name
    result = MtResult(case, length, seed)
    require_folder(folder)
    with interruptible():
        _run(result, wanted)
    with interruptible(), results_folder(folder, ("results.json",)) as place:
        found = findings(result)
        _report(result, found, place)
    Console(emoji=False).print(f"{folder}/: results.json", highlight=False, markup=False, soft_wrap=True)
    if not all(finding.holds for finding in found if not finding.published):
        raise typer.Exit(1)


def _run(result: MtResult, wanted: list[Configuration]) -> None:
    with progress_bar(Console(emoji=False), result.case.name) as bar:
        task = bar.add_task("", total=len(wanted))
        for configuration in wanted:
            bar.update(task, description=configuration.name)
            outcome = run_configuration(result.case, configuration, result.seconds, result.seed)
            if outcome.bounds is not None:
                bounds = theorem_bounds(system_of(result.case, configuration), configuration)
                outcome = replace(outcome, theorem=bounds)
            result.outcomes.append(outcome)
            bar.advance(task)


def _report(result: MtResult, found: list[Finding], folder: Path) -> None:
    console = Console(emoji=False)
    console.print(f"[bold]{result.case.name}[/bold]: {result.case.title}", highlight=False, soft_wrap=True)
    print_whole(console, _responses_table(result))
    both = pairs(result)
    if both and all(outcome.updates is not None for outcome in result.outcomes):
        print_whole(console, _updates_table(result, both))
        console.print(
            "one a choice: by the letter of the paper; here a choice for which nothing can be new performs none",
            highlight=False,
        )
    if any(is_overloaded(result, outcome.configuration) for outcome in result.outcomes):
        console.print("* more work than threads: responses grow until messages are dropped", highlight=False)
    if any(outcome.configuration.cost_us for outcome in result.outcomes):
        console.print(
            f"+{RCLCPP_CALLBACK_US / 1000:g} ms: with what a callback cost rclcpp there; half: executions halved",
            highlight=False,
        )
    console.print(
        "bound: of tide check, in brackets if it assumes deadlines that cannot be guaranteed; published, safe: of the "
        "paper's theorem for this executor",
        highlight=False,
        soft_wrap=True,
    )
    for finding in found:
        whose = "paper" if finding.published else "here"
        verdict = "[green]holds[/green]" if finding.holds else "[red]does not hold[/red]"
        console.print(f"{verdict} ({whose}): {finding.text}", highlight=False, soft_wrap=True)
    for line in (*_of_the_set(result), _verdict(found)):
        console.print(line, highlight=False, soft_wrap=True)
    (folder / "results.json").write_text(_json(result, found), encoding="utf-8")


def _of_the_set(result: MtResult) -> list[str]:
    """Lines about the execution times with which all of the paper's statements about bounds hold. The paper does not
    state its times."""
    if result.case.scale == 1:
        return []
    every = fits(result.case)
    fitting = [one.scale for one in every if not one.wrong]
    told = [f"execution times are {result.case.scale} times those of the authors' public example"]
    if fitting:
        told.append(f"the paper's statements on bounds hold from {min(fitting)} to {max(fitting)} times")
    if every[0].wrong:
        told.append(f"not at {every[0].scale}: {'; '.join(every[0].wrong)}")
    return ["; ".join(told)]


def _verdict(found: list[Finding]) -> str:
    said = [one for one in found if one.published]
    failing = [one.text for one in said if not one.holds]
    if not said:
        return ""
    if not failing:
        return f"[bold]all {len(said)} statements of the paper hold[/bold]"
    holding = len(said) - len(failing)
    return f"[bold]{holding} of {len(said)} statements of the paper hold; not: {'; '.join(failing)}[/bold]"


def _figures(chain: Responses) -> str:
    middle, high, most = (chain.percentile_ms(one) for one in (50, 99, 100))
    if middle is None or high is None or most is None:
        return "-"
    return "/".join(f"{one:.3g}" if one < 100 else f"{one:.0f}" for one in (middle, high)) + f"/{most:.0f}"


def _responses_table(result: MtResult) -> Table:
    table = empty_table(f"responses in ms over {result.seconds:g} s: p50/p99/max")
    table.add_column("executor", no_wrap=True)
    for chain in result.outcomes[0].chains:
        table.add_column(chain.name, justify="right", no_wrap=True)
    for outcome in result.outcomes:
        configuration = outcome.configuration
        star = " *" if is_overloaded(result, configuration) else ""
        cells = [_figures(chain) for chain in outcome.chains]
        table.add_row(configuration.name + star, *cells)
        beside = reference(result.case.name, configuration)
        if beside:
            table.add_row("  rclcpp", *("/".join(f"{figure:g}" for figure in figures) for figures in beside))
        lost = [chain.lost + chain.skipped for chain in outcome.chains]
        if any(lost):
            table.add_row("  lost", *(str(count) for count in lost))
        if outcome.bounds is not None and any(bound.bound_ns for bound in outcome.bounds.chains):
            table.add_row("  bound", *(_bound(outcome, chain.name) for chain in outcome.chains))
        for form in FORMS if outcome.theorem else ():
            bounds = (outcome.theorem[form][chain.name] for chain in outcome.chains)
            table.add_row(f"  {form}", *("none" if one is None else f"{one:.0f}" for one in bounds))
    return table


def _bound(outcome: Outcome, name: str) -> str:
    bound = outcome.bounds.chain(name) if outcome.bounds else None
    if bound is None or bound.bound_ns is None:
        return "none"
    value = f"{bound.bound_ns / 1e6:.0f}"
    return value if bound.met else f"({value})"


def _updates_table(result: MtResult, both: list[tuple[Outcome, Outcome]]) -> Table:
    table = empty_table("updates of the set of ready callbacks, a second")
    headings = ("executor", "default", "priority-driven", "more", "one a choice", "more")
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for default, driven in both:
        star = " *" if is_overloaded(result, default.configuration) else ""
        table.add_row(
            default.configuration.name.replace("-D", "") + star,
            f"{(default.updates or 0) / result.seconds:.1f}",
            f"{(driven.updates or 0) / result.seconds:.1f}",
            f"{100 * more_updates(default, driven):+.1f} %",
            f"{one_per_choice(driven) / result.seconds:.1f}",
            f"{100 * more_by_choice(default, driven):+.1f} %",
        )
    return table


def _json(result: MtResult, found: list[Finding]) -> str:
    data: dict[str, Any] = {
        "schema": 1,
        "case": result.case.name,
        "on": "sim",
        "seed": result.seed,
        "execution_scale": str(result.case.scale),
        "source": SOURCE[result.case.name],
        "command": f"tide lab reproduce {result.case.name} --samples {result.seconds:g} --seed {result.seed}",
    }
    data["findings"] = [{"text": one.text, "published": one.published, "holds": one.holds} for one in found]
    rows = ",\n  ".join(json.dumps(row.model_dump()) for row in result.rows())
    return json.dumps(data)[:-1] + f',\n "rows": [\n  {rows}\n ]}}\n'
