# SPDX-License-Identifier: Apache-2.0
"""A point of an experiment on real parts: a paced line, an agent, ROS 2 nodes, and threads of the operating system."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from tide_lab.reproduce.cases import METRICS, Case, published
from tide_tools.programs.binaries import ROOT
from tide_tools.programs.child import RunError
from tide_tools.programs.domain import ros_domain
from tide_tools.report.results import Row
from tide_tools.run.plan import Variant
from tide_tools.run.results import run_once
from tide_tools.run.robot import Settings
from tide_tools.system.load import load
from tide_tools.system.model import Callback, Chain, Publication, System

SYSTEM = ROOT / "examples/three_chains/system.toml"
SYSTEMS = ("batch", "tide", "tide-preemptive", "limit")
# As in the simulator's plans, the payload is four bytes less than in the paper, because the frame is longer: 119 bytes
# instead of 115 for a message of 100 B.
PAYLOAD_LESS_BYTES = 4
CHAINS = 3
PAYLOAD_BYTES = 100
EXECUTION_MS = {"pods-size": 5}
EXECUTION_DEFAULT_MS = 10


def system_of(case: Case, system: str, x: int) -> System:
    """The case's chains at this point; for the limit, only the most urgent chain."""
    chains = x if case.quantity == "chains" else CHAINS
    payload_bytes = (x if case.quantity == "size_bytes" else PAYLOAD_BYTES) - PAYLOAD_LESS_BYTES
    execution_ms = x if case.quantity == "execution_ms" else EXECUTION_DEFAULT_MS
    execution_ms = EXECUTION_MS.get(case.name, execution_ms)
    base = load(SYSTEM)
    reliable = case.name == "pods-reliable"
    update: dict[str, object] = {"reliability": "reliable" if reliable else "best_effort"}
    if reliable:  # as published: requests are sent at once, and PoDS keeps the line free for the answer
        update["hold"] = system != "batch"
        links = tuple(link.model_copy(update={"heartbeat_delay_ms": Decimal(0)}) for link in base.links)
        base = base.model_copy(update={"links": links})
    base = base.with_chains(tuple(chain.model_copy(update=update) for chain in base.chains))
    base = with_chain_count(base, 1 if system == "limit" else chains)

    def adapted(callback: Callback) -> Callback:
        if base.where(callback) == "host":
            return callback
        publishes = tuple(one.model_copy(update={"payload_bytes": payload_bytes}) for one in callback.publishes)
        return callback.model_copy(update={"execution_ms": Decimal(execution_ms), "publishes": publishes})

    return base.with_callbacks(adapted)


def with_chain_count(system: System, count: int) -> System:
    """The most urgent `count` chains; if there are too few, less urgent copies of the last one are added."""
    chains = list(system.by_urgency())
    lift = max(0, count - len(chains) + 1 - chains[-1].priority)
    chains = [chain.model_copy(update={"priority": chain.priority + lift}) for chain in chains[:count]]
    last = chains[-1]
    return system.with_chains((*chains, *(_copy_of(last, number) for number in range(1, count - len(chains) + 1))))


def _copy_of(chain: Chain, number: int) -> Chain:
    suffix = f"_{number + 1}"
    callbacks = tuple(
        callback.model_copy(update={"publishes": tuple(_renamed(one, suffix) for one in callback.publishes)})
        for callback in chain.callbacks
    )
    update = {"name": chain.name + suffix, "priority": chain.priority - number, "callbacks": callbacks}
    return chain.model_copy(update=update)


def _renamed(publication: Publication, suffix: str) -> Publication:
    head, _, tail = publication.topic.rpartition("/")
    return publication.model_copy(update={"topic": f"{head}{suffix}/{tail}" if head else tail + suffix})


def variant_of(case: Case, system: str) -> Variant:
    """The paper's baseline waits until the DMA has sent a frame and, in reliable mode, for the acknowledgment."""
    if system != "batch":
        return Variant("tide" if system == "limit" else system, "asynchronous")
    return Variant("batch", "stock" if case.name == "pods-reliable" else "blocking")


def run_native_point(
    case: Case, system: str, x: int, samples: int, seed: int, out: Path, report: Callable[[str, int], None]
) -> list[Row]:
    first_loss = (100 - x) / 100 if case.quantity == "success_percent" else 0.0
    domain = ros_domain()
    settings = Settings(samples, seed, 0.0, domain, first_loss)
    folder = out / f"{system}_{x}"
    described = variant_of(case, system).of(system_of(case, system, x))
    outcome = run_once(described, settings, SYSTEM.parent, folder, lambda text: report(text, 0))
    chain = outcome.run.chains[0]
    values = {"min_ms": chain.min_ns, "mean_ms": chain.mean_ns, "max_ms": chain.max_ns, "std_ms": chain.std_ns}
    if chain.samples == 0:
        raise RunError(f"{case.quantity}={x}, {system}: no sample came back; see {folder}")
    return [
        Row(
            system=system,
            x={case.quantity: x},
            metric=metric,
            published=published(case.name, system, metric, x),
            measured=None if values[metric] is None else round((values[metric] or 0) / 1e6, 6),
            samples=chain.samples,
        )
        for metric in METRICS
    ]
