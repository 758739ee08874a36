# SPDX-License-Identifier: Apache-2.0
"""`tide run --on qemu`: the client's Cortex-M7 binary. Its figures come from exact virtual time, with the line, the
agent and the ROS 2 nodes simulated beside it; that it works with the real ones is shown by a second run, whose times
depend on the machine below and are not reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from tide.analysis.ask import AnalysisError
from tide.analysis.lower import NoBoundError
from tide.analysis.observed import ObservationError
from tide.programs.child import RunError, may_use_fifo
from tide.programs.simulator import Simulator, violations
from tide.report.results import Results, Run, summarise, write
from tide.run import evidence
from tide.run.board_image import in_lockstep
from tide.run.budgets import board_budget, sentences
from tide.run.experiment import Settings, Variant
from tide.run.live_board import Exchange, run_live
from tide.run.plan import RunChain, run_chains, serial_link
from tide.run.times import program_lines, write_times
from tide.system.model import System
from tide.terminal.style import print_whole

LIVE_PERIODS = 10
# The host's latency in the simulated world (sim/README.md says where it is from).
AGENT_LEAST_US, AGENT_MOST_US = 820, 1480


def board_plan(system: System, variant: Variant, settings: Settings) -> str:
    """The system as a plan of the simulator."""
    chains = run_chains(system)
    link = serial_link(system)
    budget = board_budget(system, [variant.executor])
    lines = [
        f"system = {system.name}",
        f"periods = {settings.periods}",
        f"seed = {settings.seed}",
        f"baud = {link.baud}",
        f"heartbeat_delay_us = {link.heartbeat_delay_ns // 1000}",
        f"agent_least_us = {AGENT_LEAST_US}",
        f"agent_most_us = {AGENT_MOST_US}",
        f"policy = {'batch' if variant.executor == 'batch' else 'tide'}",
        f"send = {variant.send}",
        f"lanes = {2 if variant.executor == 'tide-preemptive' else 1}",
    ]
    if budget is not None:
        lines += [f"budget_us = {budget.budget_ns // 1000}", f"budget_period_us = {budget.period_ns // 1000}"]
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
    """In lock-step with the simulated world. RunError when a rule was broken."""
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
    recorded = [
        {"chain": chain.chain.name, "latency_ns": latency_ns}
        for chain, found in zip(run_chains(system), measured["chains"], strict=True)
        for latency_ns in found["latencies_ns"]
    ]
    seen = evidence.in_time(run_chains(system), recorded)
    seen["in_time"]["missing"] = sum(chain.lost + chain.skipped for chain in results)
    if variant.executor != "batch":  # its callbacks wait for the line, which the counter cannot tell from work
        times = program_lines(run_chains(system), measured["execution_times"])
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


def run_on_qemu(
    system: System, variants: list[Variant], settings: Settings, folder: Path, command_line: str
) -> Results:
    from tide.report.answers import print_answers
    from tide.report.page import write_page
    from tide.report.plots import latency_plot
    from tide.report.table import conclusion, print_answer, print_weaknesses, results_table, verdict_table
    from tide.run.answers import described_label, with_bounds
    from tide.run.machine import describe

    console = Console(emoji=False)
    link = serial_link(system)
    board_budget(system, [variant.executor for variant in variants])  # refused before anything runs
    if settings.line_loss > 0:
        raise RunError("--line-loss needs --on native")
    with Simulator() as simulator, console.status("the Cortex-M7 binary in exact virtual time"):
        runs = [run_virtual(simulator, system, variant, settings, folder / variant.folder) for variant in variants]
    results = Results(
        system=system.name,
        on="qemu",
        seed=settings.seed,
        command=command_line,
        link=f"{link.baud} baud",
        machine=describe(may_use_fifo()),
        runs=runs,
        judged=described_label(system),
    )
    try:
        results, _ = with_bounds(system, results)
    except (ObservationError, NoBoundError, AnalysisError) as error:
        console.print(f"no bounds to compare with: {error}", highlight=False, soft_wrap=True)
    write(results, folder / "results.json")
    print_answer(console, results)
    print_whole(console, verdict_table(results))
    print_weaknesses(console, results)
    if settings.details:
        print_whole(console, results_table(results))
        for run in (run for run in results.runs if run.answers):
            print_answers(console, run, len(results.runs) > 1)
    sentence = conclusion(results)
    if sentence:
        console.print(f"[bold]{sentence}[/bold]", highlight=False, soft_wrap=True)
    masked = max(int(run.counters["masked_instructions"]) for run in runs)
    stack = max(int(run.counters["stack_bytes"]) for run in runs)
    console.print(
        f"longest critical section {masked} instructions, deepest stack {stack} bytes", highlight=False, soft_wrap=True
    )
    for line in sentences(system, runs):
        console.print(line, highlight=False, soft_wrap=True)
    latency_plot(results, [], folder / "latency.png")
    write_page(results, [], [], folder / "report.html")
    with console.status("the same binary with the agent and ROS 2 nodes"):
        exchange = run_live(system, Settings(LIVE_PERIODS, settings.seed, 0.0, settings.domain), folder / "live")
    console.print(_live_sentence(exchange), highlight=False, soft_wrap=True)
    return results


def _live_sentence(exchange: Exchange) -> str:
    return (
        f"with the real agent and rclpy: {exchange.finished} of {exchange.started} chain instances came to their end, "
        f"{exchange.strangers} unexpected answers, {exchange.publish_failures} refused publishes"
    )
