# SPDX-License-Identifier: Apache-2.0
"""The analysis in this process. Documents are dictionaries and lists; the reading part of tools/analysis/native.cpp
lists their members. A wrong document raises a ValueError whose text has one line for each wrong entry. Results are
immutable, and outlive the document. Other threads run while bounds are computed."""

from typing import Any, final

@final
class Breakdown:
    """The parts of the demand in the window of a chain (tools/analysis/threads.h)."""

    @property
    def precedence_ns(self) -> int: ...
    @property
    def interference_ns(self) -> tuple[tuple[str, int], ...]:
        """The interference of each chain that causes any."""
    @property
    def own_ns(self) -> int: ...
    @property
    def blocking_ns(self) -> int: ...
    @property
    def groups_ns(self) -> int: ...
    @property
    def demand_ns(self) -> int: ...
    @property
    def window_ns(self) -> int: ...
    @property
    def finish_ns(self) -> int: ...

@final
class Shortfall:
    """Why there is no bound: the first thing that fails (tools/analysis/system.h)."""

    @property
    def kind(self) -> str:
        """overload, too_long, unsettled or effort."""
    @property
    def executor(self) -> str: ...
    @property
    def chain(self) -> str: ...
    @property
    def reached_ns(self) -> int: ...
    @property
    def limit_ns(self) -> int: ...
    @property
    def asked_permille(self) -> int: ...
    @property
    def given_permille(self) -> int: ...
    @property
    def part(self) -> tuple[str, int, str | None]:
        """The largest part of the value reached: kind, time, and the chain that causes it; an empty kind: none is
        known."""

@final
class ChainAnswer:
    """A chain of one executor under one analysis. response_ns None: there is no bound. Bounds of bound_executors hold
    whether or not deadlines are met."""

    @property
    def chain(self) -> str: ...
    @property
    def executor(self) -> str: ...
    @property
    def analysis(self) -> str: ...
    @property
    def holds_for(self) -> str:
        """The policy for which the bound is proved, which is the executor's or one that covers it: any_order, default,
        wait_set, fifo or priority."""
    @property
    def response_ns(self) -> int | None: ...
    @property
    def deadline_ns(self) -> int: ...
    @property
    def met(self) -> bool: ...
    @property
    def guaranteed(self) -> bool: ...
    @property
    def why(self) -> Shortfall | None:
        """Why there is no bound; None: there is one."""
    @property
    def breakdown(self) -> Breakdown | None: ...
    @property
    def parts(self) -> tuple[tuple[str, int, str | None], ...]:
        """The shares of the bound, which add up to it: for each, its kind, its time, and the chain that causes it."""
    @property
    def depends_on(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a chain and the reason: interference or blocking."""

@final
class PathAnswer:
    """A path through several executors."""

    @property
    def path(self) -> str: ...
    @property
    def response_ns(self) -> int | None: ...
    @property
    def deadline_ns(self) -> int: ...
    @property
    def met(self) -> bool: ...
    @property
    def guaranteed(self) -> bool: ...
    @property
    def segments(self) -> tuple[tuple[str, int | None], ...]:
        """Chains in order, and the bound of each."""
    @property
    def why(self) -> Shortfall | None:
        """Why there is no bound; None: there is one."""

@final
class ExecutorsAnswer:
    @property
    def guaranteed(self) -> bool: ...
    @property
    def settled(self) -> bool:
        """Whether every path has a bound."""
    @property
    def chains(self) -> tuple[ChainAnswer, ...]: ...
    @property
    def paths(self) -> tuple[PathAnswer, ...]: ...

@final
class LinkChainAnswer:
    """A chain over the serial line (tools/analysis/link.h)."""

    @property
    def chain(self) -> str: ...
    @property
    def response_ns(self) -> int | None: ...
    @property
    def deadline_ns(self) -> int: ...
    @property
    def met(self) -> bool: ...
    @property
    def hidden(self) -> bool: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def root(self) -> str | None:
        """Without a bound: the chain that failed first, which may be this chain."""
    @property
    def reached_ns(self) -> int:
        """The least value that the root would take, to compare with limit_ns; 0: not computed."""
    @property
    def limit_ns(self) -> int: ...
    @property
    def reached_parts(self) -> tuple[tuple[str, int, str | None], ...]:
        """The parts of reached_ns."""
    @property
    def lateness_ns(self) -> int: ...
    @property
    def up(self) -> tuple[int, int]:
        """Maxima for a chain with a bound: instances whose messages to the agent are queued, under way or not
        acknowledged at the same time; and frames of its stream without an acknowledgment."""
    @property
    def down(self) -> tuple[int, int]: ...
    @property
    def shorter(self) -> tuple[tuple[int, int], ...]:
        """For each entry of shorter_agent_ns of the line: the bound if the messages of an instance and of those before
        it take no longer, and the number of these instances (Shorter in tools/analysis/link.h)."""
    @property
    def frames(self) -> tuple[int, int]:
        """Frames of one instance to the agent and from it on which its response depends."""
    @property
    def parts(self) -> tuple[tuple[str, int, str | None], ...]:
        """Kind, time, and the chain that causes the part; the parts add up to the bound."""
    @property
    def depends_on(self) -> tuple[str, ...]: ...

@final
class Assumption:
    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def values(self) -> tuple[tuple[str, int], ...]: ...

class LinkAnswer:
    @property
    def met(self) -> bool: ...
    @property
    def chains(self) -> tuple[LinkChainAnswer, ...]: ...
    @property
    def assumptions(self) -> tuple[Assumption, ...]: ...

def frames(mtu_bytes: int, to_agent: bool, payload_bytes: int) -> int:
    """Number of frames of a message on a link whose quantum is its MTU."""

def bound_executors(
    document: dict[str, Any],
    *,
    refine: bool = False,
    joint: bool = False,
    cap_running: bool = False,
    sharpen: bool = False,
) -> ExecutorsAnswer:
    """Bounds by the safe analysis that fits each executor. The options are those of tools/analysis/threads.h."""

def compare_executors(
    document: dict[str, Any], *, refine: bool = False, joint: bool = False, cap_running: bool = False
) -> tuple[ChainAnswer, ...]:
    """Bounds by every analysis that applies, including the published ones, for each executor by itself and without
    paths."""

def bound_link(document: dict[str, Any]) -> LinkAnswer:
    """Bounds of chains between a microcontroller and ROS 2 over a serial line."""

def judge_random_sets(recipe: dict[str, Any], *, first: int, count: int, only_safe: bool = False) -> dict[str, int]:
    """For each analysis of reentrant callbacks, how many of the random chain sets with the seeds first to first + count
    - 1 it finds schedulable: as published, safe, and as tight as possible. only_safe: only the safe analyses, without
    refinement. recipe: utilisation, threads, chains, callbacks, shortest_ms, longest_ms, periods, priorities, shares,
    most_utilisation (Recipe in tools/analysis/trials.h)."""
