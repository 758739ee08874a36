# SPDX-License-Identifier: Apache-2.0
"""`tide run --on qemu`: the Cortex-M7 binary of sim/workloads/three_chains in exact virtual time, in which the line,
the agent and the ROS 2 nodes are simulated with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tide.programs.child import RunError
from tide.programs.simulator import Simulator, violations
from tide.report.results import Run, summarise
from tide.run import evidence
from tide.run.board_image import in_lockstep
from tide.run.plan import RunChain, Variant, budget_of, run_chains, serial_link, used_executors
from tide.run.results import in_time, write_times
from tide.run.robot import Settings
from tide.system.levels import levels_of_boards
from tide.system.model import System
from tide.system.variants import PlanError

# The host's latency in the simulated world (sim/README.md tells its origin).
AGENT_LEAST_US, AGENT_MOST_US = 820, 1480
_BOARD_LANES = 5  # the hardware has ten priorities, of which a budget takes two


def board_budget(system: System, executors: Iterable[str]) -> tuple[int, int] | None:
    """The budget of the board's lanes, and its period. PlanError when the board cannot keep it."""
    used = used_executors(system)
    if any(budget_of(one) for one in used if one.where == "host"):
        raise PlanError("the simulated host of --on qemu has no budgets; remove those of host executors")
    budget = next((budget_of(one) for one in used if one.where == "mcu"), None)
    if budget is None:
        return None
    chosen = list(executors)
    if "batch" in chosen:
        raise PlanError(
            "the batch executor of the board has no lane to give a budget to; use --executor tide or tide-preemptive"
        )
    count = max(len(set(known.values())) for known in levels_of_boards(system).values())
    if "tide-preemptive" in chosen and count > _BOARD_LANES:
        raise PlanError(f"{count} lanes with budgets are too many for the board; use at most {_BOARD_LANES} chains")
    return budget


def board_plan(system: System, variant: Variant, settings: Settings) -> str:
    """The system as a plan of the simulator."""
    chains = run_chains(system)
    link = serial_link(system)
    budget = board_budget(system, [variant.executor])
    lines = [
        f"system = {system.name}",
        f"periods = {settings.periods}",
        f"seed = {settings.seed}",
        f"baud = {link.rate}",
        f"heartbeat_delay_us = {link.heartbeat_delay_ns // 1000}",
        f"agent_least_us = {AGENT_LEAST_US}",
        f"agent_most_us = {AGENT_MOST_US}",
        f"policy = {'batch' if variant.executor == 'batch' else 'tide'}",
        f"send = {variant.send}",
        f"lanes = {2 if variant.executor == 'tide-preemptive' else 1}",
    ]
    if budget is not None:
        lines += [f"budget_us = {budget[0] // 1000}", f"budget_period_us = {budget[1] // 1000}"]
    return "\n".join([*lines, *map(_chain_line, chains)]) + "\n"


def _chain_line(chain: RunChain) -> str:
    fields = {
        "name": chain.chain.name,
        "level": chain.level,
        "period_us": chain.chain.period_ns // 1000,
        "phase_us": chain.chain.offset_ns // 1000,
        "jitter_us": chain.chain.jitter_ns // 1000,
        "deadline_us": chain.chain.deadline_ns // 1000,
        "payload_bytes": chain.request.payload_bytes,
        "reply_bytes": chain.reply.payload_bytes,
        "sample_us": chain.sample.execution_ns // 1000,
        "act_us": chain.act.execution_ns // 1000,
        "host_us": chain.decide.execution_ns // 1000,
        "reliable": str(chain.reliable).lower(),
        "hold": str(chain.chain.hold).lower(),
    }
    return "chain = " + " ".join(f"{name}={value}" for name, value in fields.items())


def run_virtual(simulator: Simulator, system: System, variant: Variant, settings: Settings, folder: Path) -> Run:
    """Runs in lock-step with the simulated world. Raises RunError when a rule was broken."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "board.plan"
    plan.write_text(board_plan(system, variant, settings), encoding="utf-8")
    data = simulator.results([str(plan), *in_lockstep()])
    broken = violations(data)
    if broken:
        raise RunError(f"a rule was broken: {broken[0]}")
    measured: dict[str, Any] = data["runs"][0]
    results = [
        summarise(
            chain.chain.name,
            chain.chain.priority,
            chain.chain.reliability,
            chain.chain.deadline_ns,
            found["latencies_ns"],
            int(found["lost"]),
            settings.periods - int(found["samples"]) - int(found["lost"]),
        )
        for chain, found in zip(run_chains(system), measured["chains"], strict=True)
    ]
    counters = {key: measured[key] for key in ("masked_instructions", "stack_bytes", "budgets", "counters")}
    seen: dict[str, Any] = {"in_time": in_time(system, results)}
    if variant.executor != "batch":  # its callbacks wait for the line, and the counter cannot tell a wait from
        # computing
        times = _execution_lines(run_chains(system), measured["execution_times"])
        write_times(folder, times)
        seen |= evidence.executions(times)
    return Run(
        executor=variant.executor,
        send=variant.send,
        periods=settings.periods,
        chains=results,
        counters=counters,
        evidence=seen,
    )


def _execution_lines(chains: tuple[RunChain, ...], said: Iterable[str]) -> list[str]:
    """The image names callbacks by their task; the description has its own names."""
    names = {f"{one.chain.name}/sample": f"{one.chain.name}/{one.sample.name}" for one in chains}
    names |= {f"{one.chain.name}/act": f"{one.chain.name}/{one.act.name}" for one in chains}
    found = (re.search(r"tide-execution (\S+) (.*)", line) for line in said)
    return [f"tide-execution {names[one[1]]} {one[2].strip()}" for one in found if one is not None and one[1] in names]
