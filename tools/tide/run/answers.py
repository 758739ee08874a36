# SPDX-License-Identifier: Apache-2.0
"""A run beside its bounds: each chain, each part of it, each assumption."""

from __future__ import annotations

import json

from tide.analysis.bounds import Bounds
from tide.analysis.lower import described_executor
from tide.analysis.observed import Observation, as_run, bounded_runs, observations
from tide.report.results import ChainResult, Results, Run
from tide.run.judge import judge
from tide.run.shares import shares
from tide.system.model import System


def described_label(system: System) -> str:
    """The label of the run of the executor that the description has."""
    executor, _, send = described_executor(system).partition("_")
    return {"lanes": "tide-preemptive", "batch": f"batch, {send or 'asynchronous'}"}.get(executor, executor)


def with_bounds(system: System, results: Results, losses: int = 0) -> tuple[Results, list[Observation]]:
    """The results with all that their bounds say, and both side by side. Raises as `bounded_runs` does."""
    data = json.loads(results.to_json())
    bounded = {(run["executor"], run["send"]): bounds for run, bounds in bounded_runs(system, data, losses, True)}
    runs = [
        _bounded(as_run(system, data["runs"][number]), run, bounded.get((run.executor, run.send)))
        for number, run in enumerate(results.runs)
    ]
    return results.model_copy(update={"runs": runs}), observations(system, data, losses, True)


def _bounded(system: System, run: Run, bounds: Bounds | None) -> Run:
    if bounds is None:
        return run
    chains = [_chain(system, one, bounds) for one in run.chains]
    answers = judge(system, bounds, run) if run.evidence else []
    return run.model_copy(update={"chains": chains, "answers": answers})


def _chain(system: System, result: ChainResult, bounds: Bounds) -> ChainResult:
    bound = bounds.chain(result.name)
    if bound is None:
        return result
    limits = shares(system, system.chain(result.name), bound)
    parts = [one.model_copy(update={"bound_ns": limits.get(one.name)}) for one in result.parts]
    return result.model_copy(update={"bound_ns": bound.bound_ns, "parts": parts})
