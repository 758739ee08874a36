# SPDX-License-Identifier: Apache-2.0
"""The premises of bounds: who answers for each, and its name in a few words. `tide check` prints them, `tide run` says
of each whether it held. Their texts come from the analysis that needs them; those that every bound needs stand here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tide.system.fields import MEASURED

if TYPE_CHECKING:
    from tide.system.model import System

Group = Literal["your numbers and programs", "tide", "the machine"]
YOURS: Group = "your numbers and programs"
TIDE: Group = "tide"
MACHINE: Group = "the machine"
GROUPS = (YOURS, TIDE, MACHINE)
OF_CODE = ("model", "work_conserving")  # properties of an executor's code: proved, hunted, not observable in a run

_KNOWN: dict[str, tuple[Group, str]] = {
    "placeholders": (YOURS, "times of tide init"),
    "execution": (YOURS, "execution times"),
    "shortest_execution": (YOURS, "shortest execution times"),
    "digestion": (YOURS, "time to take over a frame"),
    "not_given": (YOURS, "times that the description leaves out"),
    "release_jitter": (YOURS, "timers on time"),
    "agent": (YOURS, "agent_ms"),
    "return": (YOURS, "return_ms"),
    "shared_agent": (YOURS, "one agent for all boards"),
    "dds": (YOURS, "DDS between executors"),
    "sizes": (YOURS, "message sizes"),
    "losses": (YOURS, "lost frames"),
    "line_alone": (YOURS, "nobody else on the line"),
    "interrupts": (YOURS, "time of interrupts"),
    "undescribed": (YOURS, "nothing undescribed runs"),
    "locks": (YOURS, "locks"),
    "servers": (YOURS, "shared services"),
    "sampling": (YOURS, "values between chains"),
    "joining": (YOURS, "joined messages"),
    "over_in_time": (YOURS, "over before the next release"),
    "model": (TIDE, "the executor's order"),
    "work_conserving": (TIDE, "free threads take ready callbacks"),
    "escapes": (TIDE, "escaped bytes"),
    "client_questions": (TIDE, "questions of the client"),
    "agent_questions": (TIDE, "questions of the agent"),
    "windows": (TIDE, "windows of reliable streams"),
    "pools": (TIDE, "pools never full"),
    "heard_at_start": (TIDE, "no silence before the start"),
    "machine": (MACHINE, "processors present"),
    "own_cores": (MACHINE, "a core for each thread"),
    "other_real_time": (MACHINE, "no other real-time thread"),
    "line_on_time": (MACHINE, "kernel and line on time"),
}


@dataclass(frozen=True)
class Origins:
    """Where the times of a description are from. least_runs, most_margin: of those that were measured."""

    count: int
    measured: int
    placeholders: int
    least_runs: int
    margins: tuple[float, float]

    @property
    def text(self) -> str:
        first = f"{self.measured} of {self.count} times were measured"
        if self.measured:
            low, high = self.margins
            margin = f"{low:g} %" if low == high else f"{low:g} to {high:g} %"
            first += f" ({self.least_runs} runs at least, margin {margin})"
        guessed = self.count - self.measured - self.placeholders
        rest = [f"{self.placeholders} are placeholders of tide init"] if self.placeholders else []
        rest += [f"{guessed} are estimates"] if guessed else []
        return "; ".join((first, *rest))


def origins_of(system: System) -> Origins:
    """Execution times of callbacks, costs of boards, delays of links."""
    times = [(one.source, 1) for chain in system.chains for one in chain.callbacks]
    times += [(one.source, 2) for one in system.boards()]  # submit_ms, process_ms
    times += [(one.source, 2) for one in system.links]  # agent_ms, return_ms
    found = [(match, count) for source, count in times if (match := MEASURED.match(source))]
    margins = [float(match[2]) for match, _ in found]
    return Origins(
        count=sum(count for _, count in times),
        measured=sum(count for _, count in found),
        placeholders=sum(count for source, count in times if source == "placeholder"),
        least_runs=min((int(match[1]) for match, _ in found), default=0),
        margins=(min(margins, default=0), max(margins, default=0)),
    )


def of_every_bound(system: System) -> list[tuple[str, str]]:
    """Id and text of what no analysis asks for, because each takes it for granted."""
    found = [
        (
            "undescribed",
            "executors run nothing but the callbacks described: no other timer, service or parameter server",
        ),
        ("machine", "the processors are there all the time: no hypervisor, sleep state or throttling takes them away"),
        ("other_real_time", "no other thread of real-time priority, and no long interrupt, runs on these processors"),
    ]
    numbers = origins_of(system)
    if numbers.placeholders:
        found.insert(
            0, ("placeholders", f"{numbers.placeholders} of {numbers.count} times are placeholders of tide init")
        )
    boards = [one.name for one in system.boards() if not one.interrupt_ms]
    if boards:
        text = f"interrupts take no time on {', '.join(boards)}: the description gives no interrupt_ms"
        found.append(("interrupts", text))
    if any(link.kind == "serial" for link in system.links):
        found.append(("line_on_time", "the kernel and the driver of the serial line pass bytes on when they come"))
    return found


def short(premise: str) -> str:
    return _known(premise)[1]


def group_of(premise: str) -> Group:
    return _known(premise)[0]


def _known(premise: str) -> tuple[Group, str]:
    """A new one of an analysis has its own name until it gets a better one here (a test looks)."""
    return _KNOWN.get(premise, (YOURS, premise.replace("_", " ")))
