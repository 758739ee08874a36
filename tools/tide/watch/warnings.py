# SPDX-License-Identifier: Apache-2.0
"""Warnings of a watch on /diagnostics, by the verdict on each chain (tide.report.verdict)."""

from __future__ import annotations

import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from tide.report.verdict import State
from tide.watch.agents import OWN
from tide.watch.topics import quality
from tide.watch.view import ChainRow, View

_MOST = 64  # chains in one message
_DEPTH = 10
_UNITS = 1e6
_NUMBER = {"ok": DiagnosticStatus.OK, "warning": DiagnosticStatus.WARN, "error": DiagnosticStatus.ERROR}


def level_of(row: ChainRow) -> str:
    """A chain that nobody has begun is no fault."""
    if row.verdict == State.NOT_MET or row.state in ("silent", "gone"):
        return "error"
    return "warning" if row.verdict == State.VOID or row.state == "refused" else "ok"


def message_of(row: ChainRow) -> str:
    if row.state in ("silent", "gone", "refused") or not row.verdict:
        return row.why or "nothing was measured"
    return f"{row.verdict}: {'; '.join(row.reasons)}"


def _milliseconds(value_ns: int | None) -> str:
    return "" if value_ns is None else f"{value_ns / _UNITS:g} ms"


class Warnings:
    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", quality(_DEPTH, reliable=True))

    def publish(self, view: View) -> None:
        """The worst chains first; the first status counts all."""
        levels = [(level_of(row), row) for row in view.chains]
        worst = sorted(levels, key=lambda pair: -_NUMBER[pair[0]][0])
        array = DiagnosticArray()
        now_ns = time.time_ns()
        array.header.stamp.sec, array.header.stamp.nanosec = divmod(now_ns, 1_000_000_000)
        bad = sum(level != "ok" for level, _ in levels)
        array.status.append(
            DiagnosticStatus(
                level=DiagnosticStatus.WARN if bad else DiagnosticStatus.OK,
                name=OWN,
                message=f"{bad} of {len(levels)} chains are not as they should" if bad else f"{len(levels)} chains",
                hardware_id=view.system,
            )
        )
        array.status += [_status(view.system, level, row) for level, row in worst[:_MOST]]
        self._publisher.publish(array)


def _status(system: str, level: str, row: ChainRow) -> DiagnosticStatus:
    values = {
        "measured from": row.start,
        "measured to": row.end,
        "last": _milliseconds(row.last_ns),
        "p99": _milliseconds(row.p99_ns),
        "greatest": _milliseconds(row.greatest_ns),
        "bound of the whole chain": _milliseconds(row.bound_ns),
        "deadline of the whole chain": _milliseconds(row.deadline_ns),
        "misses, at least": str(row.misses),
        "unanswered, at least": str(row.unanswered),
    }
    return DiagnosticStatus(
        level=_NUMBER[level],
        name=f"{OWN}: chain {row.name}",
        message=message_of(row),
        hardware_id=system,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
