# SPDX-License-Identifier: Apache-2.0
"""Every assumption of the bounds, answered by what a run counted: held, broken, or not observable in that run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from tide.analysis.bounds import Assumption, Bounds
from tide.report.results import Answer, Run
from tide.run.evidence import Evidence
from tide.run.times import limit_ns
from tide.system.model import Callback, Chain, System
from tide.system.places import SerialLink

Word = Literal["held", "broken", "not observable here"]
HELD: Word = "held"
BROKEN: Word = "broken"
UNSEEN: Word = "not observable here"
_PADDING = 4  # DDS fills a message up to a multiple of it
_NAMED = 3  # of threads
_CLOCK_NS = 500_000  # between a frame and a question after it: how exact the log of the line is
Verdict = tuple[Word, str, float | None]  # verdict, the counter, its margin


def _milliseconds(value_ns: float) -> str:
    return f"{value_ns / 1e6:.3f} ms"


def _share(value: float, limit: float) -> float | None:
    """What is left of the limit; none where there is no limit to leave something of."""
    return round(1 - value / limit, 4) if limit > 0 else None


def _within(value: int, limit: int, counter: str) -> Verdict:
    return (HELD if value <= limit else BROKEN), counter, _share(value, limit)


class _Judge:
    def __init__(self, system: System, run: Run, evidence: Evidence) -> None:
        self.system, self.run, self.seen = system, run, evidence
        self.ways: dict[str, Callable[[dict[str, int]], Verdict]] = {
            "execution": self.execution,
            "shortest_execution": self.shortest_execution,
            "digestion": self.digestion,
            "release_jitter": self.release_jitter,
            "agent": lambda values: self.host("agent", values["agent_ns"]),
            "return": lambda values: self.host("return", values["return_ns"]),
            "escapes": self.escapes,
            "sizes": self.sizes,
            "losses": self.losses,
            "client_questions": lambda values: self.questions("client_questions", values),
            "agent_questions": lambda values: self.questions("agent_questions", values),
            "pools": self.pools,
            "line_alone": self.line_alone,
            "heard_at_start": self.heard_at_start,
            "over_in_time": self.over_in_time,
            "machine": self.machine,
            "placeholders": lambda _: (UNSEEN, "a run cannot tell what your callbacks take", None),
            "undescribed": self.undescribed,
            "interrupts": self.interrupts,
            "other_real_time": self.other_real_time,
            "line_on_time": self.line_on_time,
        }

    def answer(self, assumption: Assumption) -> Answer:
        way = self.ways.get(assumption.id)
        verdict, counter, margin = way(assumption.values) if way else (UNSEEN, "this run has no counter for it", None)
        return Answer(id=assumption.id, text=assumption.text, verdict=verdict, counter=counter, margin=margin)

    def measured(self) -> list[tuple[Chain, Callback, dict[str, int]]]:
        known = self.seen.get("executions", {})
        return [
            (chain, callback, known[name])
            for chain in self.system.chains
            for callback in chain.callbacks
            if (name := f"{chain.name}/{callback.name}") in known
        ]

    def execution(self, _: dict[str, int]) -> Verdict:
        every = [
            (times["most_ns"] - limit_ns(self.system, callback), f"{chain.name}/{callback.name}", times, callback)
            for chain, callback, times in self.measured()
        ]
        if not every:
            return UNSEEN, "execution times were not measured", None
        over_ns, name, times, callback = max(every, key=lambda one: one[0])
        most_ns = limit_ns(self.system, callback)
        text = f"{name} took {_milliseconds(times['most_ns'])} of {_milliseconds(most_ns)} at most"
        return (HELD if over_ns <= 0 else BROKEN), text, _share(times["most_ns"], most_ns)

    def shortest_execution(self, _: dict[str, int]) -> Verdict:
        every = [
            (times["least_ns"] - callback.least_ns, f"{chain.name}/{callback.name}", times, callback)
            for chain, callback, times in self.measured()
        ]
        if not every:
            return UNSEEN, "execution times were not measured", None
        spare_ns, name, times, callback = min(every, key=lambda one: one[0])
        text = (
            f"{name} took {_milliseconds(times['least_ns'])} at least, least_ms is {_milliseconds(callback.least_ns)}"
        )
        return (HELD if spare_ns >= 0 else BROKEN), text, None

    def digestion(self, values: dict[str, int]) -> Verdict:
        taken: dict[str, int] = self.seen.get("taken_ns", {})
        if not taken:
            return UNSEEN, "no answer was seen to wait for a free processor", None
        frame_ns = values["process_ns"]
        most_ns = max(taken.values())
        text = f"{_milliseconds(most_ns)} from an answer to its callback on a free processor"
        if most_ns <= frame_ns:
            return _within(most_ns, frame_ns, f"{text}, of {_milliseconds(frame_ns)}")
        over = [count for count, value_ns in taken.items() if value_ns > int(count) * frame_ns]
        if over:
            return BROKEN, f"{text}, with {over[0]} frames{self.line_was_late()}", None
        return UNSEEN, f"{text}, in which it took over more than one frame", None

    def release_jitter(self, values: dict[str, int]) -> Verdict:
        late: dict[str, int] = self.seen.get("start_late_ns", {})
        if not late:
            return UNSEEN, "no timer expired on an idle processor", None
        name = max(late, key=lambda chain: late[chain] - values.get(chain, 0))
        limit_ns = values.get(name, 0)
        text = f"{name} started {_milliseconds(late[name])} of {_milliseconds(limit_ns)} after an expiry"
        return _within(late[name], limit_ns, text)

    def host(self, way: str, limit_ns: int) -> Verdict:
        seen = self.seen.get(way)
        if seen is None:
            return UNSEEN, "no log of the line tells which frame belongs to which instance", None
        counts = {int(upto_us): count for upto_us, count in seen["upto_us"].items()}
        hidden = sum(count for upto_us, count in counts.items() if upto_us * 1000 > limit_ns)
        text = f"{_milliseconds(seen['sure_ns'])} of {_milliseconds(limit_ns)}, {sum(counts.values())} messages"
        text += f", {hidden} of them hidden by a line or a node that was busy" if hidden else ""
        if seen["sure_ns"] <= limit_ns and hidden == sum(counts.values()):
            return UNSEEN, text, None
        text += self.line_was_late() if seen["sure_ns"] > limit_ns else ""
        return _within(seen["sure_ns"], limit_ns, text)

    def escapes(self, values: dict[str, int]) -> Verdict:
        most = self.seen.get("escaped_bytes")
        if most is None:
            return UNSEEN, "the line kept no log", None
        limit, frames = values.get("escaped_bytes"), self.seen["frames"]
        if limit is None:
            return HELD, f"{most} bytes of a frame at most, {frames} frames", None
        return _within(most, limit, f"{most} of {limit} bytes of a frame at most, {frames} frames")

    def sizes(self, values: dict[str, int]) -> Verdict:
        sizes = self.seen.get("sizes", {"messages": {}, "fragments": 0})
        if not sizes["messages"] or sizes["fragments"]:
            return UNSEEN, "the line's log shows no whole message", None
        texts = []
        for chain in self.system.chains:
            stated = {
                "up" if self.system.where(callback) == "mcu" else "down": callback.publishes.payload_bytes
                for callback in chain.callbacks
                if callback.publishes is not None
            }
            for way, payload in stated.items():
                found = sizes["messages"].get(f"{chain.name} {way}")
                if found is None:
                    continue
                padded = -(-payload // _PADDING) * _PADDING
                exact = found["least"] >= payload or not values["exact"]
                if found["most"] > padded or not exact:
                    texts.append(f"{chain.name} {way}: {found['least']} to {found['most']} bytes, stated {payload}")
        return (
            BROKEN if texts else HELD,
            "; ".join(texts) or f"{len(sizes['messages'])} kinds of messages, none of another size",
            None,
        )

    def count(self, part: str, name: str) -> int:
        counters = self.run.counters.get(part, {})
        return int(counters.get(name, 0)) if isinstance(counters, dict) else 0

    def losses(self, values: dict[str, int]) -> Verdict:
        limit = values["losses"]
        if "transmitter" not in self.run.counters:
            return UNSEEN, "this run does not count frames", None
        damaged = self.count("receiver", "checksum_errors") + self.count("agent", "checksum_errors")
        again = self.count("transmitter", "retransmissions")
        dropped = int(self.seen.get("dropped", 0))
        text = f"{dropped} frames lost, {damaged} damaged, {again} sent again"
        if limit == 0:
            return (BROKEN if max(damaged, again, dropped) else HELD), text, None
        if "lost_by_instance" not in self.seen:
            return UNSEEN, f"{text}; of which instances is not known", None
        most = int(self.seen["lost_by_instance"])
        if max(damaged, again) > 0 and dropped == 0:
            return UNSEEN, f"{text}; of which instances is not known", None
        return _within(most, limit, f"{text}; {most} of {limit} of one instance at most")

    def questions(self, side: str, values: dict[str, int]) -> Verdict:
        seen = self.seen.get(side)
        if seen is None:
            return UNSEEN, "the line kept no log", None
        if seen["soonest_ns"] is None:
            return HELD, "no HEARTBEAT was sent", None
        text = f"{seen['count']} HEARTBEATs, the soonest after {_milliseconds(seen['soonest_ns'])}"
        if seen["soonest_ns"] + _CLOCK_NS >= values["delay_ns"]:
            return HELD, text, None
        verdict = BROKEN if seen["soonest_ns"] + _CLOCK_NS + self.line_late_ns() < values["delay_ns"] else UNSEEN
        return verdict, text + self.line_was_late(), None

    def line_late_ns(self) -> int:
        """How late an emulated line was at most: its log has the times at which bytes should have passed."""
        ways = [line[way] for line in self.lines() for way in ("a_to_b", "b_to_a") if way in line]
        woken_ns = max((int(way.get("late_maximum_ns", 0)) for way in ways), default=0)
        return max(woken_ns, int(self.seen.get("line_behind_ns", 0)))

    def lines(self) -> list[dict[str, Any]]:
        """What emulated lines counted: that of a comparison, or those of a whole description."""
        counters = self.run.counters
        return [one for one in (counters.get("line"), *counters.get("lines", {}).values()) if isinstance(one, dict)]

    def line_on_time(self, _: dict[str, int]) -> Verdict:
        boards = [board for board in self.system.boards() if isinstance(self.system.link_of_board(board), SerialLink)]
        if len(self.lines()) < len(boards):
            return UNSEEN, "a line that is not emulated here keeps no times", None
        late_ns = self.line_late_ns()
        return _within(late_ns, _CLOCK_NS, f"{_milliseconds(late_ns)} late at most, {_milliseconds(_CLOCK_NS)} allowed")

    def undescribed(self, _: dict[str, int]) -> Verdict:
        found = self.seen.get("undescribed")
        if found is None:
            return UNSEEN, "nobody looked for endpoints that are not described", None
        if found:
            return UNSEEN, f"may run, and is in no bound: {'; '.join(found)}", None
        given = self.given()
        if given:
            return UNSEEN, f"no other endpoint was found; timers of {', '.join(given)} cannot be seen", None
        return HELD, "tide plays every executor, with the callbacks described", None

    def given(self) -> list[str]:
        return [one.name for one in self.system.executors if one.command or one.image or one.attach]

    def interrupts(self, _: dict[str, int]) -> Verdict:
        if "undescribed" not in self.seen or any(one.name in self.given() for one in self.system.boards()):
            return UNSEEN, "interrupts of a board are not counted here", None
        return HELD, "boards that are played have a thread for their link, and no interrupts", None

    def other_real_time(self, _: dict[str, int]) -> Verdict:
        found = self.seen.get("other_real_time")
        if found is None:
            return UNSEEN, "the threads of this machine are not visible here", None
        if found:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            return BROKEN, f"{len(found)} threads: {', '.join(found[:_NAMED])}{more}", None
        return HELD, "no other thread has a real-time priority", None

    def line_was_late(self) -> str:
        late_ns = self.line_late_ns()
        return (
            f"; the line of this machine was itself up to {_milliseconds(late_ns)} late" if late_ns > _CLOCK_NS else ""
        )

    def pools(self, _: dict[str, int]) -> Verdict:
        if "transmitter" not in self.run.counters:
            return UNSEEN, "this run does not count pools", None
        full = self.count("transmitter", "refused_full") + self.count("receiver", "overflow_dropped")
        failed = int(self.run.counters.get("publish_failures", 0))
        return (BROKEN if full or failed else HELD), f"full {full} times, {failed} publishes refused", None

    def line_alone(self, _: dict[str, int]) -> Verdict:
        strangers = self.seen.get("strangers")
        if strangers is None:
            return UNSEEN, "the line kept no log", None
        text = f"{strangers} of {self.seen['frames']} frames are not of these chains"
        return (BROKEN if strangers else HELD), text, None

    def heard_at_start(self, _: dict[str, int]) -> Verdict:
        asked = self.seen.get("signs_of_life")
        if asked is None:
            return UNSEEN, "the line kept no log", None
        return (BROKEN if asked else HELD), f"the board asked {asked} times whether the agent is there", None

    def machine(self, _: dict[str, int]) -> Verdict:
        seen = self.seen.get("pauses")
        if seen is None:
            return UNSEEN, "pauses were not watched, which needs the right to real-time priorities", None
        least, longest = _milliseconds(seen["least_ns"]), _milliseconds(seen["longest_ns"])
        text = f"{seen['count']} pauses of {least} or more, {longest} at most, {seen['share'] * 100:.2f} % of the time"
        text += f"; {seen['left_out']} more had no room" if seen["left_out"] else ""
        return (BROKEN if seen["count"] else HELD), text, None

    def over_in_time(self, _: dict[str, int]) -> Verdict:
        seen = self.seen.get("in_time")
        if seen is None:
            return UNSEEN, "instances were not recorded", None
        text = f"{seen['missing']} instances did not end; the longest took {seen['share'] * 100:.1f} % of its period"
        text += f" ({seen['chain']})" if seen["chain"] else ""
        reconnects = self.count("session", "reconnects")
        broken = seen["missing"] or seen["share"] > 1 or reconnects
        return (BROKEN if broken else HELD), text, round(1 - seen["share"], 4)


_ANSWERED_BY = {
    "agent_ms": "agent",
    "return_ms": "return",
    "submit_ms": "execution",
    "process_ms": "digestion",
}


def judge(system: System, bounds: Bounds, run: Run) -> list[Answer]:
    """One for each model and assumption of the bounds, in their order."""
    judges = _Judge(system, run, run.evidence)
    found = [judges.answer(one) for one in bounds.assumptions if one.id != "not_given"]
    by_id = {one.id: one for one in found}
    models = [
        Answer(
            id="model",
            text=f"executor '{one.executor}': {one.text}",
            verdict=UNSEEN,
            counter="a property of the executor's code, which tide hunt looks for",
        )
        for one in bounds.models
    ]
    return models + [
        _by_others(one, [by_id[_ANSWERED_BY[name]] for name in one.values if _ANSWERED_BY.get(name) in by_id])
        if one.id == "not_given"
        else by_id[one.id]
        for one in bounds.assumptions
    ]


def _by_others(assumption: Assumption, others: Iterable[Answer]) -> Answer:
    """What is 0 as nobody said more is answered where it is used."""
    told = list(others)
    worst = next((one for verdict in (BROKEN, UNSEEN, HELD) for one in told if one.verdict == verdict), None)
    if worst is None:
        return Answer(id=assumption.id, text=assumption.text, verdict=UNSEEN, counter="", margin=None)
    return Answer(
        id=assumption.id, text=assumption.text, verdict=worst.verdict, counter=worst.counter, margin=worst.margin
    )


def broken(answers: Iterable[Answer]) -> list[Answer]:
    return [one for one in answers if one.verdict == BROKEN]
