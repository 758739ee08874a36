# SPDX-License-Identifier: Apache-2.0
"""Why a chain has no bound: the first thing that fails, what was reached, the limit, and what most of it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tide.analysis.names import chain_of
from tide.analysis.parts import Part, label
from tide.system.locate import Path
from tide.system.model import System
from tide.system.servers import service_of_group

if TYPE_CHECKING:
    from tide.analysis.native import LinkChainAnswer, Shortfall


@dataclass(frozen=True)
class Root:
    """What fails first. kind: overload, too_long, unsettled, effort, starvation or, over a line, link. path: the entry
    of the description. part: the largest one of what was reached."""

    kind: str
    path: Path
    what: str
    chain: str | None
    executor: str | None = None
    reached_ns: int | None = None
    limit_ns: int | None = None
    part: Part | None = None

    def reason(self, chain: str) -> str:
        """Of this chain."""
        if self.chain is None or self.chain == chain:
            return self.what
        return f"it depends on chain '{self.chain}', which has none: {self.what}"

    def to_json(self) -> dict[str, Any]:
        part = self.part and {"kind": self.part.kind, "value_ns": self.part.value_ns, "chain": self.part.chain}
        return {
            "kind": self.kind,
            "chain": self.chain,
            "executor": self.executor,
            "reached_ns": self.reached_ns,
            "limit_ns": self.limit_ns,
            "part": part,
        }


def _ms(value_ns: int) -> str:
    return f"{value_ns / 1e6:.3f} ms"


def _percent(permille: int) -> str:
    return f"{permille / 10:.1f} %"


def _chain_path(system: System, name: str) -> Path:
    return ("chains", next(index for index, chain in enumerate(system.chains) if chain.name == name))


def _executor_path(system: System, name: str) -> Path:
    return ("executors", next(index for index, one in enumerate(system.executors) if one.name == name))


def _most(part: Part | None) -> str:
    return f"; most of it: {label(part)}, {_ms(part.value_ns)}" if part else ""


def host_root(system: System, why: Shortfall) -> Root:
    chain, executor = chain_of(why.chain), why.executor
    kind, value_ns, other = why.part
    part = Part(kind, value_ns, other and chain_of(other)) if kind else None
    if why.kind == "overload":
        return _overload(system, why, chain)
    several = len({one.executor for one in system.path(system.chain(chain))}) > 1
    where = f" on executor '{executor}'" if several else ""
    limit = f"{_ms(why.limit_ns)}, ten times the longer of its deadline and its period"
    if why.kind == "unsettled":
        what = (
            f"it comes later and later through several executors that wait for each other: {_ms(why.reached_ns)}"
            f" behind executor '{executor}', and the bounds did not settle below {limit}"
        )
    elif why.kind == "effort":
        what = (
            f"the analysis{where} did not settle and was given up; last it looked at {_ms(why.reached_ns)} of {limit}"
        )
    else:
        what = f"it may take {_ms(why.reached_ns)} or more{where}, beyond {limit}"
    path = _chain_path(system, chain)
    return Root(why.kind, path, what + _most(part), chain, executor, why.reached_ns, why.limit_ns, part)


def _overload(system: System, why: Shortfall, chain: str) -> Root:
    executor = system.executor(why.executor)
    index = _executor_path(system, why.executor)
    given = f"gives {_percent(why.given_permille)}"
    remedy = "lengthen period_ms or shorten execution_ms"
    if executor.budget_ms:
        index = (*index, "budget_ms")
        given = f"has a budget of {_percent(why.given_permille)}"
        remedy = f"raise budget_ms, {remedy}"
    else:
        remedy = f"add lanes, {remedy}"
    shared = any(one.branches_from for one in system.chains)
    twice = " (what chains share counts for each)" if shared else ""
    what = (
        f"executor '{executor.name}' {given} of a core, and chain '{chain}' with all that may go before it asks for "
        f"{_percent(why.asked_permille)}{twice}; {remedy}"
    )
    return Root("overload", index, what, None, executor.name)


def starvation_root(system: System, executor: str, group: str) -> Root:
    service = service_of_group(group)
    if service:
        what = (
            f"rclcpp's MultiThreadedExecutor may leave requests of service '{service}', which several chains ask, "
            "waiting (ros2/rclcpp#2360, #2645, #2702); give the executor one lane"
        )
        return Root("starvation", _executor_path(system, executor), what, None, executor)
    number = next(index for index, one in enumerate(system.groups) if one.name == group)
    what = (
        f"rclcpp's MultiThreadedExecutor may leave a callback of the exclusive group '{group}' waiting for ever "
        "(ros2/rclcpp#2360, #2645, #2702); give the executor one lane or the callbacks groups of their own"
    )
    return Root("starvation", ("groups", number), what, None, executor)


def link_root(system: System, told: LinkChainAnswer) -> Root:
    root = told.root or told.chain
    chain = chain_of(root)
    shares = (Part(kind, value_ns, other and chain_of(other)) for kind, value_ns, other in told.reached_parts)
    part = max(shares, key=lambda one: one.value_ns, default=None)
    what = told.reason or ""
    before = f"it needs a bound of chain '{root}', which has none: "
    what = what.removeprefix(before) + _most(part)
    reached_ns, limit_ns = (told.reached_ns, told.limit_ns) if told.reached_ns else (None, None)
    path = _chain_path(system, chain)
    if system.chain(chain).deadline_ns > system.chain(chain).period_ns and reached_ns is not None:
        path = (*path, "deadline_ms")
    return Root("link", path, what, chain, None, reached_ns, limit_ns, part)
