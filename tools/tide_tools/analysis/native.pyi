# SPDX-License-Identifier: Apache-2.0
"""The analysis in this process (tools/analysis/native.cpp, whose reading part lists the members of a document:
dictionaries and lists). What is wrong with a document is a
ValueError whose text has one line for each entry that is. Results do not change and outlive what they came from. Other
threads run while bounds are computed."""

from typing import Any, final

@final
class Breakdown:
    """What the demand in the window of a chain consists of (tools/analysis/threads.h)."""

    @property
    def precedence_ns(self) -> int: ...
    @property
    def interference_ns(self) -> tuple[tuple[str, int], ...]:
        """By chain, without those that account for nothing."""
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
    """Why there is no bound: what fails first (tools/analysis/system.h)."""

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
        """The largest part of what was reached: kind, time, and the chain whose it is; an empty kind: none is known."""

@final
class ChainAnswer:
    """A chain of one executor under one analysis. response_ns None: there is no bound. Of bound_executors a bound holds
    whether or not deadlines are met."""

    @property
    def chain(self) -> str: ...
    @property
    def executor(self) -> str: ...
    @property
    def analysis(self) -> str: ...
    @property
    def holds_for(self) -> str:
        """The policy that the bound is proved for, be that of the executor or one that covers it: any_order, default,
        wait_set or priority."""
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
        """There is no bound."""
    @property
    def breakdown(self) -> Breakdown | None: ...
    @property
    def parts(self) -> tuple[tuple[str, int, str | None], ...]:
        """The breakdown as shares of the bound: kind, time, and the chain whose it is; they add up to it."""
    @property
    def depends_on(self) -> tuple[tuple[str, str], ...]:
        """Chains, and why: interference or blocking."""

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
        """There is no bound."""

@final
class ExecutorsAnswer:
    @property
    def guaranteed(self) -> bool: ...
    @property
    def settled(self) -> bool: ...
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
        """Without a bound: the chain that failed first, which may be this one."""
    @property
    def reached_ns(self) -> int:
        """What that would take at least, against limit_ns; 0: it was not looked at."""
    @property
    def limit_ns(self) -> int: ...
    @property
    def reached_parts(self) -> tuple[tuple[str, int, str | None], ...]:
        """What it would be made of."""
    @property
    def lateness_ns(self) -> int: ...
    @property
    def up(self) -> tuple[int, int]:
        """Of a chain that has a bound: instances whose messages to the agent are queued, under way or not acknowledged
        at the same time, and frames of its stream without an acknowledgment, at most."""
    @property
    def down(self) -> tuple[int, int]: ...
    @property
    def parts(self) -> tuple[tuple[str, int, str | None], ...]:
        """Kind, time, and the chain whose it is; they add up to the bound."""
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
    """Of a message on a link whose quantum is its MTU."""

def bound_executors(
    document: dict[str, Any],
    *,
    refine: bool = False,
    joint: bool = False,
    cap_running: bool = False,
    sharpen: bool = False,
) -> ExecutorsAnswer:
    """By the safe analysis that fits each executor; the options are those of tools/analysis/threads.h."""

def compare_executors(
    document: dict[str, Any], *, refine: bool = False, joint: bool = False, cap_running: bool = False
) -> tuple[ChainAnswer, ...]:
    """By every analysis that applies, published ones included; each executor for itself, without paths."""

def bound_link(document: dict[str, Any]) -> LinkAnswer:
    """Chains between a microcontroller and ROS 2 over a serial line."""

def judge_random_sets(recipe: dict[str, Any], *, first: int, count: int, only_safe: bool = False) -> dict[str, int]:
    """How many of the random chain sets with the seeds first to first + count - 1 each analysis of reentrant callbacks
    finds schedulable: as published, safe and as tight as it can be; only_safe: the safe ones, with nothing refined.
    recipe: utilisation, threads, chains, callbacks, shortest_ms, longest_ms, periods, priorities, shares,
    most_utilisation (Recipe in tools/analysis/trials.h)."""
