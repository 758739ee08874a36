# SPDX-License-Identifier: Apache-2.0
"""Figures with which a run can be compared: measurements of the stock micro-ROS stack with the same paced line, echo
and callbacks (115,200 baud, 10 ms, 100 B, 500 ms), and Table 1 of the PoDS paper."""

from __future__ import annotations

from dataclasses import dataclass

from tide_tools.report.results import Results
from tide_tools.system.model import System
from tide_tools.system.places import SerialLink


@dataclass(frozen=True)
class Reference:
    label: str
    latency_ms: float
    source: str


_STOCK = {("reliable", 3): 82.2, ("best_effort", 3): 40.5, ("reliable", 1): 35.7, ("best_effort", 1): 34.7}

# The best results with the stock client and three chains of the same program (2026-11, micro-ROS iron client, tide's
# line, agent and nodes, 47 periods each, from the start of the first callback).
_STRONGEST = (
    Reference(
        "stock client, reliable, session timeout 0: publish returns at once, and an error",
        46.1,
        "measured 2026-11: stock client and executor, rmw_uros_set_publisher_session_timeout(handle, 0)",
    ),
    Reference(
        "stock client, best effort, driver with a buffer",
        40.2,
        "measured 2026-11: stock client and executor; what is lost is lost",
    ),
)


def is_paper_setup(system: System) -> bool:
    """Whether every chain has the parameters of the paper's main experiment."""
    links = [link for link in system.links if isinstance(link, SerialLink)]
    return (
        len(links) == 1
        and links[0].baud == 115_200
        and all(
            chain.period_ns == 500_000_000
            and [one.execution_ns for one in chain.callbacks if system.where(one) == "mcu"] == [10_000_000] * 2
            and all(one.execution_ns <= 1_000_000 for one in chain.callbacks if system.where(one) == "host")
            and [one.payload_bytes for callback in chain.callbacks for one in callback.publishes] == [100, 10]
            for chain in system.chains
        )
    )


def references(system: System, results: Results) -> list[Reference]:
    """The figures for the most urgent chain; empty if the set-up differs."""
    if not is_paper_setup(system) or results.line_loss > 0:
        return []
    reliability = {chain.reliability for chain in system.chains}
    if len(reliability) != 1:
        return []
    found = []
    stock = _STOCK.get((next(iter(reliability)), len(system.chains)))
    if stock is not None:
        found.append(Reference("real stock stack, median", stock, "measured: stock client, executor and agent"))
    if reliability == {"reliable"} and len(system.chains) == 3:
        found += _STRONGEST
        found.append(Reference("paper, micro-ROS, average", 85.03, "published: PoDS, Table 1, 100 %"))
        found.append(Reference("paper, PoDS, average", 41.07, "published: PoDS, Table 1, 100 %"))
    return found
