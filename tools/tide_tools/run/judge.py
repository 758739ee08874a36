# SPDX-License-Identifier: Apache-2.0
"""The answer of a run for every premise of its bounds: held, broken, or not observable in this run.

An answer applies to the chains whose bounds depend on the premise. Where possible, premises are judged by executor; if
the verdicts differ, a premise has several answers. If a time was longer than described, the analysis is repeated with
the observed time: only bounds that rise are void, because all others are thereby proved for the observed times. If a
broken premise is not a number in the analysis, this is not possible, and all bounds that may depend on it are void.
Rejected: one answer for all chains, because then a broken premise of a logger's node would void the guarantee of an
e-stop. Also rejected: to void all bounds that a time may affect. In nearly every robot these are all bounds, because
each bound relies on other chains to end in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Literal

from tide_tools.analysis.bounds import AnalysisError, bounds_of
from tide_tools.analysis.lower import NoBoundError, described_executor
from tide_tools.analysis.premises import Reach, of_executors, places_of, reaches_of
from tide_tools.analysis.result import Assumption, Bounds, ChainBound
from tide_tools.report.results import TOLERATED_NS, Answer, ChainResult, Run, counted
from tide_tools.run.plan import NODE_DEPTH, Variant, is_given, limit_ns, maker_of
from tide_tools.system.model import Callback, Chain, System, nanoseconds
from tide_tools.system.places import Executor, Line

Word = Literal["held", "broken", "not observable here"]
HELD: Word = "held"
BROKEN: Word = "broken"
UNSEEN: Word = "not observable here"
_NAMED = 3  # most names in a text
_CLOCKS_DIFFER = 1.001  # greatest ratio of a board's clock rate to this machine's
_CLOCK_NS = 500_000  # precision of the line's log for the distance of two frames
Verdict = tuple[Word, str, float | None]  # the verdict, the text of the counter, and the margin


def _milliseconds(value_ns: float) -> str:
    return f"{value_ns / 1e6:.3f} ms"


def _share(value: float, limit: float) -> float | None:
    """The unused share of the limit; None if there is no limit."""
    return round(1 - value / limit, 4) if limit > 0 else None


def _within(value: int, limit: int, counter: str) -> Verdict:
    return (HELD if value <= limit else BROKEN), counter, _share(value, limit)


_NS = 1_000_000  # nanoseconds of a millisecond
_WATCH_TOLD = 0.02  # the least share of a processor taken by the watch of pauses that a run mentions
_BY_EXECUTOR = {
    *("execution", "shortest_execution", "digestion", "release_jitter", "agent", "return", "losses", "pools"),
    *("line_on_time", "depth", "shared_agent"),
    *("undescribed", "interrupts", "loads", "cores", "events"),
}
_METHODS = (  # premises with a method of the same name in _Judge
    *("execution", "shortest_execution", "digestion", "release_jitter", "escapes", "sizes", "losses", "pools", "depth"),
    *("line_alone", "heard_at_start", "timers_run", "over_in_time", "machine", "events", "loads", "undescribed"),
    *("interrupts", "other_real_time", "line_on_time", "shared_agent", "delays", "own_cores", "work_conserving"),
)


class _Judge:
    """Judges the premises of a run. at: the executors that are being judged."""

    def __init__(self, system: System, bounds: Bounds, run: Run) -> None:
        self.system, self.bounds, self.run, self.seen = system, bounds, run, run.evidence
        self.reaches: dict[str, Reach] = reaches_of(system, bounds)
        self.at: frozenset[str] = frozenset()
        self.ways: dict[str, Callable[[dict[str, int]], Verdict]] = {
            **{name: getattr(self, name) for name in _METHODS},
            "agent": lambda values: self.host("agent", values["agent_ns"]),
            "return": lambda values: self.host("return", values["return_ns"]),
            "client_questions": lambda values: self.questions("client_questions", values),
            "agent_questions": lambda values: self.questions("agent_questions", values),
            "placeholders": lambda _: (UNSEEN, "a run cannot tell what your callbacks take", None),
        }

    def answers(self, assumption: Assumption) -> list[Answer]:
        """The answers for one premise: one for each different verdict, the worst first."""
        places = places_of(self.system, assumption.id, assumption.places)
        every = frozenset(one.name for one in self.system.executors)
        if assumption.id == "release_jitter":
            places = frozenset(self.system.path(chain)[0].executor for chain in self.system.chains)
        if places and assumption.id in _BY_EXECUTOR:
            told = [(frozenset({one}), self.verdict(assumption, frozenset({one}))) for one in sorted(places)]
        else:
            told = [(every if places is None else places, self.verdict(assumption, places or every))]
        if assumption.id == "over_in_time" and self.seen.get("in_time", {}).get("unseen"):
            told.append((every, (UNSEEN, "instances of programs of yours are not recorded", None)))
        found = []
        for word in (BROKEN, UNSEEN, HELD):
            own = [(where, one) for where, one in told if one[0] == word]
            if own:
                where = None if places is None else frozenset[str]().union(*(one for one, _ in own))
                _, counter, margin = min((one for _, one in own), key=lambda one: 1.0 if one[2] is None else one[2])
                chains = self.chains_of(assumption, word, where)
                answer = Answer(id=assumption.id, text=assumption.text, verdict=word, counter=counter, margin=margin)
                found.append(answer.model_copy(update={"chains": chains}))
        return found

    def verdict(self, assumption: Assumption, places: frozenset[str]) -> Verdict:
        way = self.ways.get(assumption.id)
        self.at = places
        return way(assumption.values) if way else (UNSEEN, "this run has no counter for it", None)

    def chains_of(self, assumption: Assumption, word: Word, where: frozenset[str] | None) -> list[str] | None:
        """The chains to which an answer applies; None: all chains. These are the chains whose bounds depend on the
        executors `where` or, for the premise over_in_time, on chains with late instances."""
        if word == BROKEN and (raised := self.raised(assumption.id)) is not None:
            return raised
        late = self.seen.get("in_time", {}).get("over" if word == BROKEN else "unseen", [])
        shares = self.seen.get("in_time", {}).get("shares", {})
        if word == BROKEN and assumption.id == "over_in_time":
            late = [one for one in late if one not in assumption.values or shares.get(one, 0) > assumption.values[one]]
        if assumption.id == "over_in_time" and late and not self.count("session", "reconnects"):
            found = [name for name, reach in self.reaches.items() if reach.chains.intersection(late)]
        elif where is None:
            return None
        else:
            found = [name for name, reach in self.reaches.items() if reach.executors & where]
        return None if len(found) == len(self.reaches) else found

    def raised(self, premise: str) -> list[str] | None:
        """The chains whose bounds rise or disappear if the analysis is repeated with the observed times. None: it
        cannot be repeated, because the premise is not about a time of the description, the observed times do not change
        the description, or no analysis supports the changed one."""
        told = _TIMES[premise](self) if premise in _TIMES else self.system
        if told == self.system:
            return None
        losses = next((one.values["losses"] for one in self.bounds.assumptions if one.id == "losses"), 0)
        try:
            after = bounds_of(told, self.bounds.executor, losses)
        except (NoBoundError, AnalysisError):
            return None
        found = []
        for one in self.bounds.chains:
            again = after.chain(one.name)
            if again.bound_ns is None or again.bound_ns > (one.bound_ns or 0):
                found.append(one.name)
        return found

    def with_executions(self) -> System:
        """The description with the observed longest and shortest execution times, where these are beyond the described
        ones."""
        known = self.seen.get("executions", {})

        def changed(one: Callback) -> Callback:
            times = known.get(f"{maker_of(self.system, one).name}/{one.name}")
            if times is None:
                return one
            over_ns = max(0, times["most_ns"] - limit_ns(self.system, one))
            least_ms = min(one.least_ms, Decimal(times["least_ns"]) / _NS)
            return one.model_copy(
                update={"execution_ms": one.execution_ms + Decimal(over_ns) / _NS, "least_ms": least_ms}
            )

        return self.system.with_callbacks(changed)

    def with_links(self) -> System:
        links = {one.name: one for one in self.system.links}
        for board, ways in self.seen.get("handed", {}).items():
            link = self.system.link_of_board(self.system.executor(board))
            for way, told in ways.items() if link else ():
                assert link is not None
                most = max(getattr(links[link.name], f"{way}_ms") or 0, Decimal(told["sure_ns"]) / _NS)
                links[link.name] = links[link.name].model_copy(update={f"{way}_ms": most})
        return self.system.model_copy(update={"links": tuple(links.values())})

    def with_jitter(self) -> System:
        late = self.seen.get("start_late_ns", {})
        chains = tuple(
            one.model_copy(update={"jitter_ms": max(one.jitter_ms, Decimal(late.get(one.name, 0)) / _NS)})
            for one in self.system.chains
        )
        return self.system.model_copy(update={"chains": chains})

    def by_others(self, assumption: Assumption, answers: Iterable[list[Answer]]) -> Answer:
        """The answer for the premise about times that the description omits and that therefore count as 0: the worst of
        the answers about these times."""
        ids = {_ANSWERED_BY[name] for name in assumption.values if name in _ANSWERED_BY}
        places = places_of(self.system, assumption.id, assumption.places)
        chains = self.chains_of(assumption, UNSEEN, places)
        told = [
            one
            for several in answers
            for one in several
            if one.id in ids and (chains is None or one.chains is None or set(chains) & set(one.chains))
        ]
        unseen = Answer(id=assumption.id, text=assumption.text, verdict=UNSEEN, counter="")
        worst = next((one for word in (BROKEN, UNSEEN, HELD) for one in told if one.verdict == word), unseen)
        return worst.model_copy(update={"id": assumption.id, "text": assumption.text, "chains": chains})

    def measured(self) -> list[tuple[Chain, Callback, dict[str, int]]]:
        known = self.seen.get("executions", {})
        return [
            (chain, callback, known.get(f"{chain.name}/{callback.name}", {}))
            for chain in self.system.chains
            for callback in chain.callbacks
            if callback.executor in self.at
        ]

    def not_measured(self) -> Verdict | None:
        """The verdict if some callbacks were not observed, in which case the times of all others cannot show that the
        premise held. None: all callbacks were observed."""
        every = self.measured()
        missing = [f"{chain.name}/{callback.name}" for chain, callback, times in every if not times]
        if not missing:
            return None if every else (HELD, "no callback runs there", None)
        if len(missing) == len(every):
            return UNSEEN, "execution times were not measured", None
        return UNSEEN, f"execution times of {', '.join(missing[:_NAMED])} were not measured", None

    def execution(self, _: dict[str, int]) -> Verdict:
        return self.times("most_ns", 1, lambda one: limit_ns(self.system, one), "{} took {} of {} at most")

    def shortest_execution(self, _: dict[str, int]) -> Verdict:
        return self.times("least_ns", -1, lambda one: one.least_ns, "{} took {} at least, least_ms is {}")

    def times(self, which: str, sign: int, limit: Callable[[Callback], int], text: str) -> Verdict:
        """The verdict about execution times, from the callback that exceeds its limit most or comes closest to it.
        sign: 1 for longest times, -1 for shortest times."""
        every = [
            (sign * (times[which] - limit(callback)), f"{chain.name}/{callback.name}", times[which], limit(callback))
            for chain, callback, times in self.measured()
            if times
        ]
        over_ns, name, took_ns, most_ns = max(every, default=(0, "", 0, 0))
        if over_ns <= 0 and (missing := self.not_measured()):
            return missing
        said = text.format(name, _milliseconds(took_ns), _milliseconds(most_ns))
        return (BROKEN if over_ns > 0 else HELD), said, _share(took_ns, most_ns) if sign > 0 else None

    def digestion(self, values: dict[str, int]) -> Verdict:
        """The verdict on the time to process a received frame. Only an answer that arrived alone can contradict this
        time; an answer with others before it may have waited for them."""
        board, limit_ns = next(iter(self.at)), values["process_ns"]
        alone_ns, most_ns = (self.seen.get(key, {}).get(board) for key in ("taken_by", "taken_most"))
        if alone_ns is None and most_ns is None:
            return UNSEEN, "no answer was seen to wait for a free processor", None
        text = f"{_milliseconds(max(alone_ns or 0, most_ns or 0))} from an answer to its callback on a free processor"
        if max(alone_ns or 0, most_ns or 0) <= limit_ns:
            return _within(max(alone_ns or 0, most_ns or 0), limit_ns, f"{text}, of {_milliseconds(limit_ns)}")
        if (alone_ns or 0) - limit_ns > self.line_late_ns():
            return BROKEN, text, None
        return UNSEEN, f"{text}, in which it may have taken over several frames{self.line_was_late()}", None

    def release_jitter(self, values: dict[str, int]) -> Verdict:
        """The verdict on the delays of timers. For a timer that never expired while its board was idle, the other
        timers of the board are evidence."""
        known = self.seen.get("start_late_ns", {})
        begun = [one.name for one in self.system.chains if self.system.path(one)[0].executor in self.at]
        late = {name: known[name] for name in begun if name in known}
        if not late:
            return UNSEEN, "no timer expired on an idle processor", None
        name = max(late, key=lambda chain: late[chain] - values.get(chain, 0))
        limit_ns = values.get(name, 0)
        text = f"{name} started {_milliseconds(late[name])} after an expiry, its jitter_ms is {_milliseconds(limit_ns)}"
        hidden = [one for one in begun if one not in late and max(late.values()) > values.get(one, 0)]
        if late[name] <= limit_ns and hidden:
            return UNSEEN, f"{', '.join(hidden[:_NAMED])} never began on an idle processor; {text}", None
        return _within(late[name], limit_ns, text)

    def work_conserving(self, _: dict[str, int]) -> Verdict:
        return self.release_jitter({one.name: one.jitter_ns for one in self.system.chains})

    def own_cores(self, _: dict[str, int]) -> Verdict:
        kept = self.seen.get("kept")
        if kept is None or any(is_given(one) for one in self.system.executors if one.where == "host"):
            return UNSEEN, "how long threads waited for a processor is not known", None
        text = f"the thread of {kept['callback']} was without a processor for {_milliseconds(max(0, kept['most_ns']))}"
        return (BROKEN if kept["most_ns"] > TOLERATED_NS else HELD), text, None

    def host(self, way: str, limit_ns: int) -> Verdict:
        seen = self.seen.get("handed", {}).get(next(iter(self.at)), {}).get(way)
        if seen is None:
            return UNSEEN, "no trace tells which frame belongs to which instance", None
        counts = {int(upto_us): count for upto_us, count in seen["upto_us"].items()}
        hidden = sum(count for upto_us, count in counts.items() if upto_us * 1000 > limit_ns)
        every = sum(counts.values())
        text = f"{_milliseconds(seen['sure_ns'])} of {_milliseconds(limit_ns)}, {counted(every, 'message')}"
        text += f", {hidden} of them hidden by a line or a node that was busy" if hidden else ""
        if seen["sure_ns"] <= limit_ns and hidden == every:
            return UNSEEN, text, None
        text += self.line_was_late() if seen["sure_ns"] > limit_ns else ""
        return _within(seen["sure_ns"], limit_ns, text)

    def delays(self, _: dict[str, int]) -> Verdict:
        """The verdict on measured delays, with how often messages were late. A run cannot prove a probability, so the
        verdict is never "held"."""
        told = []
        for board in sorted(self.at):
            link = self.system.link_of_board(self.system.executor(board))
            for way, seen in self.seen.get("handed", {}).get(board, {}).items():
                counts = {int(upto_us): count for upto_us, count in seen["upto_us"].items()}
                for share, delay_ms in getattr(link, f"{way}_quantiles_ms", ()):
                    late = sum(count for upto_us, count in counts.items() if upto_us * 1000 > nanoseconds(delay_ms))
                    told.append(
                        f"{late} of {counted(sum(counts.values()), 'message')} of {board} took longer than "
                        f"{delay_ms:f} ms, {1 - share:f} of them may"
                    )
        return UNSEEN, f"{'; '.join(told) or 'no trace tells the delay of a message'}: a run shows no probability", None

    def escapes(self, values: dict[str, int]) -> Verdict:
        seen = self.of_lines()
        if not self.serial_boards():
            return HELD, "a network adds no escape bytes", None
        if seen is None:
            return UNSEEN, "the line kept no log", None
        most = max((one["escaped_bytes"] or 0 for one in seen), default=0)
        limit, frames = values.get("escaped_bytes"), sum(one["frames"] for one in seen)
        if limit is not None and any(one["escaped_bytes"] is None for one in seen):
            return UNSEEN, "the line's log shows no whole frame", None
        if limit is None:
            return HELD, f"{most} bytes of a frame at most, {frames} frames", None
        return _within(most, limit, f"{most} of {limit} bytes of a frame at most, {frames} frames")

    def sizes(self, values: dict[str, int]) -> Verdict:
        if "in_time" not in self.seen or any(map(is_given, self.users_of(self.at))):
            return UNSEEN, "the line's log does not tell what a message is", None
        return HELD, "tide plays all that sends there, with messages of the described sizes", None

    def count(self, part: str, name: str) -> int:
        """The sum of a counter over the boards in `at` that have reported it; if none has, the counter of the whole
        run."""
        counters = self.run.counters.get(part, {})
        own = [one[part] for board, one in self.boards().items() if board in self.at and part in one]
        return sum(int(one.get(name, 0)) for one in own or [counters] if isinstance(one, dict))

    def boards(self) -> dict[str, Any]:
        return dict(self.run.counters.get("boards", {}))

    def counts_frames(self) -> bool:
        return "transmitter" in self.run.counters or any(one in self.boards() for one in self.at)

    def losses(self, values: dict[str, int]) -> Verdict:
        limit = values["losses"]
        if not self.counts_frames():
            return UNSEEN, "this run does not count frames", None
        damaged = self.count("receiver", "checksum_errors") + self.count("agent", "checksum_errors")
        again = self.count("transmitter", "retransmissions") + self.count("rtps", "resent")
        lines = self.of_lines() or []
        dropped = (
            sum(int(one["dropped"]) for one in lines) + self.count("receiver", "gaps") + self.count("rtps", "lost")
        )
        text = f"{counted(dropped, 'frame')} lost, {damaged} damaged, {again} sent again"
        if limit == 0 and max(damaged, again, dropped):
            return BROKEN, text, None
        begun = self.seen.get("in_time", {"missing": 1})
        if len(lines) < len(self.at) and (begun["missing"] or begun.get("unseen")):  # a network has no log
            return UNSEEN, f"{text}; best-effort messages that the agent missed are not counted", None
        if limit == 0:
            return HELD, text, None
        if not lines or not all("lost_by_instance" in one for one in lines):
            return UNSEEN, f"{text}; of which instances is not known", None
        most = max(int(one["lost_by_instance"]) for one in lines)
        if max(damaged, again) > 0 and dropped == 0:
            return UNSEEN, f"{text}; of which instances is not known", None
        return _within(most, limit, f"{text}; {most} of {limit} of one instance at most")

    def questions(self, side: str, values: dict[str, int]) -> Verdict:
        lines = self.of_lines()
        if not lines:
            sent = self.count("transmitter", "heartbeats") if side == "client_questions" else None
            quiet = self.counts_frames() and sent == 0
            return (HELD, "no HEARTBEAT was sent", None) if quiet else (UNSEEN, "the line kept no log", None)
        asked = [one[side] for one in lines if one[side]["soonest_ns"] is not None]
        seen = {
            "count": sum(one["count"] for one in asked),
            "soonest_ns": min((one["soonest_ns"] for one in asked), default=None),
        }
        if seen["soonest_ns"] is None:
            return HELD, "no HEARTBEAT was sent", None
        text = f"{counted(seen['count'], 'HEARTBEAT')}, the soonest after {_milliseconds(seen['soonest_ns'])}"
        if seen["soonest_ns"] + _CLOCK_NS >= values["delay_ns"]:
            return HELD, text, None
        verdict = BROKEN if seen["soonest_ns"] + _CLOCK_NS + self.line_late_ns() < values["delay_ns"] else UNSEEN
        return verdict, text + self.line_was_late(), None

    def line_late_ns(self) -> int:
        """The greatest delay of the emulated lines, whose logs have the times at which bytes should have passed."""
        ways = [line[way] for line in self.lines() for way in ("a_to_b", "b_to_a") if way in line]
        woken_ns = max((int(way.get("late_maximum_ns", 0)) for way in ways), default=0)
        return max([woken_ns, *(int(one.get("behind_ns", 0)) for one in self.of_lines() or ())])

    def serial_boards(self) -> list[str]:
        boards = [board for board in self.system.boards() if board.name in self.at]
        return [board.name for board in boards if isinstance(self.system.link_of_board(board), Line)]

    def lines(self) -> list[dict[str, Any]]:
        """The counters of the emulated lines of the boards in `at`."""
        own = [self.run.counters.get("lines", {}).get(name) for name in self.serial_boards()]
        return [one for one in own if isinstance(one, dict)]

    def of_lines(self) -> list[dict[str, Any]] | None:
        """The evidence from the logs of these boards' lines. None: one of these boards has no such log."""
        known = self.seen.get("lines", {})
        boards = self.serial_boards()
        return [known[one] for one in boards] if all(one in known for one in boards) else None

    def users_of(self, boards: Iterable[str]) -> list[Executor]:
        """All executors that a chain visits which also visits one of these boards."""
        visited = [{one.executor for one in self.system.path(chain)} for chain in self.system.chains]
        names = set[str]().union(*(one for one in visited if one & set(boards)))
        return [self.system.executor(name) for name in sorted(names)]

    def shared_agent(self, _: dict[str, int]) -> Verdict:
        """The verdict on the agent's times while all boards of the run sent messages through it."""
        link = self.system.link_of_board(self.system.executor(next(iter(self.at))))
        limits = {"agent": link.agent_ms, "return": link.return_ms} if link else {}
        ways = self.seen.get("handed", {}).get(next(iter(self.at)), {})
        found = {way: self.host(way, nanoseconds(limits[way] or Decimal(0))) for way in ways if way in limits}
        for word in (BROKEN, UNSEEN, HELD):
            for way, told in found.items():
                if told[0] == word:
                    return word, f"as {way}_ms, while every board sent through it", told[2]
        return UNSEEN, "no trace tells which frame belongs to which instance", None

    def line_on_time(self, _: dict[str, int]) -> Verdict:
        if len(self.lines()) < len(self.serial_boards()):
            return UNSEEN, "a line that is not emulated here keeps no times", None
        if not self.serial_boards():
            return HELD, "no serial line is there", None
        late_ns = self.line_late_ns()
        return _within(late_ns, _CLOCK_NS, f"{_milliseconds(late_ns)} late at most, {_milliseconds(_CLOCK_NS)} allowed")

    def too_often(self) -> str:
        """A text about a topic that the user's programs on these executors published more often than described, so that
        the callback must have run more often; empty: there is none. Bursts, and messages that were late by up to the
        deadline, are allowed for."""
        makers = Counter(
            sent.topic for chain in self.system.chains for one in chain.callbacks for sent in one.publishes
        )
        for chain in self.system.chains:
            spare = 1 + self.system.timer_of(chain).burst + chain.deadline_ns // chain.period_ns
            own = {sent.topic for one in chain.callbacks if one.executor in self.at for sent in one.publishes}
            for rate in self.seen.get("topics", ()):
                topic, gaps = rate["topic"], rate["count"] - 1
                if topic not in own or makers[topic] > 1 or gaps < 1:
                    continue
                if gaps > rate["mean_ns"] * gaps / rate["described_ns"] * _CLOCKS_DIFFER + spare:
                    came, said = map(_milliseconds, (rate["mean_ns"], rate["described_ns"]))
                    return f"{topic} came every {came}, {said} described"
        return ""

    def undescribed(self, _: dict[str, int]) -> Verdict:
        if often := self.too_often():
            return BROKEN, often, None
        found = self.seen.get("undescribed")
        if found is None:
            return UNSEEN, "nobody looked for endpoints that are not described", None
        if found:
            return UNSEEN, f"may run, and is in no bound: {'; '.join(found)}", None
        given = self.given()
        if given:
            return UNSEEN, f"no other endpoint was found; timers of {', '.join(given)} cannot be seen", None
        return HELD, "tide plays the executor, with the callbacks described", None

    def events(self, _: dict[str, int]) -> Verdict:
        if self.given():
            return UNSEEN, f"events of {', '.join(self.given())} are not counted here", None
        return HELD, "tide plays an event, or a burst, each time that one may come", None

    def reported_loads(self) -> list[dict[str, Any]]:
        """The loads of played boards, as these reported them at their end."""
        return [
            {**told, "asks": described.agent_bytes > 0, "limit_ns": described.execution_ns}
            for board in self.system.boards()
            if board.name in self.at or not self.at
            for told, described in zip(self.boards().get(board.name, {}).get("loads", ()), board.loads, strict=False)
        ]

    def loads(self, _: dict[str, int]) -> Verdict:
        if self.given():
            return UNSEEN, f"loads of {', '.join(self.given())} are not counted here", None
        told = self.reported_loads()
        described = sum(len(board.loads) for board in self.system.boards() if board.name in self.at)
        silent = [one["name"] for one in told if not one["runs"]]
        if len(told) < described:
            return UNSEEN, "a load was not recorded", None
        if not described:
            return HELD, "no load is described there", None
        worst = max(told, key=lambda one: one["most_ns"] / one["limit_ns"])
        text = f"{worst['name']} took {_milliseconds(worst['most_ns'])} of {_milliseconds(worst['limit_ns'])} at most"
        if silent and worst["most_ns"] <= worst["limit_ns"]:
            return UNSEEN, f"{', '.join(silent[:_NAMED])} never ran; {text}", None
        return _within(worst["most_ns"], worst["limit_ns"], text)

    def given(self) -> list[str]:
        return [one.name for one in self.system.executors if is_given(one) and one.name in self.at]

    def interrupts(self, _: dict[str, int]) -> Verdict:
        if "undescribed" not in self.seen or self.given():
            return UNSEEN, "interrupts of a board are not counted here", None
        return HELD, "boards that are played have a thread for their link, and no interrupts", None

    def other_real_time(self, _: dict[str, int]) -> Verdict:
        found = self.seen.get("other_real_time")
        if found is None:
            return UNSEEN, "the threads of this machine are not visible here", None
        if found:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            return (BROKEN, f"{counted(len(found), 'thread')}: {', '.join(found[:_NAMED])}{more}", None)
        return HELD, "no other thread has a real-time priority", None

    def line_was_late(self) -> str:
        late_ns = self.line_late_ns()
        return (
            f"; the line of this machine was itself up to {_milliseconds(late_ns)} late" if late_ns > _CLOCK_NS else ""
        )

    def pools(self, _: dict[str, int]) -> Verdict:
        if not self.counts_frames():
            return UNSEEN, "this run does not count pools", None
        full = self.count("transmitter", "refused_full") + self.count("receiver", "overflow_dropped")
        full += self.count("rtps", "full")
        own = [one for board, one in self.boards().items() if board in self.at] or [self.run.counters]
        failed = sum(int(one.get("publish_failures", 0)) for one in own)
        text = f"full {counted(full, 'time')}, {counted(failed, 'publish call')} refused"
        return (BROKEN if full or failed else HELD), text, None

    def line_alone(self, _: dict[str, int]) -> Verdict:
        lines = self.of_lines()
        if lines is None or not self.serial_boards():
            return UNSEEN, "the line kept no log" if lines is None else "traffic of a network is not counted", None
        strangers, frames = sum(one["strangers"] for one in lines), sum(one["frames"] for one in lines)
        text = f"{strangers} of {frames} frames are not of these chains"
        return (BROKEN if strangers else HELD), text, None

    def heard_at_start(self, _: dict[str, int]) -> Verdict:
        lines = self.of_lines()
        if lines is None or not self.serial_boards():
            return UNSEEN, "questions of a board are not counted here", None
        own = sum(load["runs"] for load in self.reported_loads() if load["asks"])  # pings of described loads
        asked = max(0, sum(one["signs_of_life"] for one in lines) - own)
        return (BROKEN if asked else HELD), f"the board asked {counted(asked, 'time')} whether the agent is there", None

    def machine(self, _: dict[str, int]) -> Verdict:
        seen = self.seen.get("pauses")
        if seen is None:
            return UNSEEN, "pauses were not watched, which needs the right to real-time priorities", None
        least, longest = _milliseconds(seen["least_ns"]), _milliseconds(seen["longest_ns"])
        text = f"{counted(seen['count'], 'pause')} of {least} or more, {longest} at most"
        text += f", {seen['share'] * 100:.2f} % of the time"
        text += f"; {seen['left_out']} more had no room" if seen["left_out"] else ""
        watch = seen["look_ns"] / seen["step_ns"]
        text += f"; their watch itself takes {watch * 100:.0f} % of each processor" if watch >= _WATCH_TOLD else ""
        word, kept, _none = self.own_cores({})
        text += f"; {kept}" if word == BROKEN else ""
        return (BROKEN if seen["count"] or word == BROKEN else HELD), text, None

    def timers_run(self, _: dict[str, int]) -> Verdict:
        begun = self.seen.get("in_time")
        if begun is None or begun.get("unseen"):
            return UNSEEN, "starts of timers were not recorded", None
        missing = int(begun["missing"])
        return (UNSEEN if missing else HELD), f"{counted(missing, 'instance')} of timers missing", None

    def depth(self, values: dict[str, int]) -> Verdict:
        if self.seen.get("in_time") is None:
            return UNSEEN, "instances were not recorded", None
        if self.given():
            return UNSEEN, f"the depth of subscriptions of {', '.join(self.given())} cannot be seen", None
        return _within(max(values.values()), NODE_DEPTH, f"nodes of a run keep {NODE_DEPTH} messages")

    def over_in_time(self, several: dict[str, int]) -> Verdict:
        """The verdict on the premise that instances end before the next release. several: the chains that may take
        longer, each with the number of periods."""
        seen = self.seen.get("in_time")
        if seen is None:
            return UNSEEN, "instances were not recorded", None
        shares = seen["shares"]
        chain = max(shares, key=lambda one: shares[one] / several.get(one, 1), default="")
        share, count = shares.get(chain, 0.0), several.get(chain, 1)
        text = f"{counted(seen['missing'], 'instance')} did not end; the longest took {share * 100:.1f} % of its period"
        text += f", of {count * 100} %" if count > 1 else ""
        text += f" ({chain})" if chain else ""
        players = [*self.boards().values(), *self.run.counters.get("hosts", {}).values()]
        if late := sum(int(one.get("unexpected", 0)) for one in players):
            text += f"; {late} messages came so late that their instance is not known, which counts as unanswered"
        reconnects = self.count("session", "reconnects")
        broken = seen["missing"] or share > count or reconnects
        return (BROKEN if broken else HELD), text, round(1 - share / count, 4)


_TIMES: dict[str, Callable[[_Judge], System]] = {
    "execution": _Judge.with_executions,
    "shortest_execution": _Judge.with_executions,
    "agent": _Judge.with_links,
    "return": _Judge.with_links,
    "release_jitter": _Judge.with_jitter,
}
_ANSWERED_BY = {"agent_ms": "agent", "return_ms": "return", "submit_ms": "execution", "process_ms": "digestion"}


def judge(system: System, bounds: Bounds, run: Run) -> list[Answer]:
    """The answers for all models and assumptions of the bounds, in their order."""
    judges = _Judge(system, bounds, run)
    models = [
        Answer(
            id="model",
            text=text,
            verdict=UNSEEN,
            counter="a property of the executor's code, which tide lab hunt looks for",
        )
        for text in of_executors(bounds)
    ]
    answers = {number: judges.answers(one) for number, one in enumerate(bounds.assumptions) if one.id != "not_given"}
    for number, one in enumerate(bounds.assumptions):
        if one.id == "not_given":
            answers[number] = [judges.by_others(one, answers.values())]
    return models + [answer for number in range(len(bounds.assumptions)) for answer in answers[number]]


# ---- a run with its bounds ----

_PROCESSOR = ("jitter", "client_interference", "client_blocking", "new_data", "lock_blocking", "interrupts")
_WIRE_WAIT = ("line_interference", "line_blocking", "control", "window")


def shares(system: System, chain: Chain, bound: ChainBound) -> dict[str, int]:
    """The parts of a bound, by the names of the parts of a latency (tide_tools.report.results). `start` contains all
    waits for the processor, so `processor_wait` is empty. If callbacks hide the time on the line, the part of the wire
    is empty. The parts of agent, return and node are the described times. All other parts follow `tide check
    --explain`. In a run, a part may exceed its value while another one is smaller: only the sum is a bound."""
    if bound.bound_ns is None:
        return {}
    by_kind: dict[str, int] = {}
    for kind, value_ns, *_ in bound.parts:
        by_kind[kind] = by_kind.get(kind, 0) + value_ns
    found = {
        "start": sum(by_kind.get(kind, 0) for kind in _PROCESSOR),
        "execution": by_kind.get("execution", 0),
        "node_wait": by_kind.get("host_wait", 0),
        "repair": by_kind.get("losses", 0),
    }
    if not bound.hidden:
        found |= {"wire_wait": sum(by_kind.get(kind, 0) for kind in _WIRE_WAIT), "wire": by_kind.get("line", 0)}
    link = system.link_of(chain)
    if isinstance(link, Line):
        hosts = [callback for callback in chain.callbacks if system.where(callback) == "host"]
        made_ns = {one.name: nanoseconds(one.submit_ms) for one in system.executors}
        found |= {
            "agent": nanoseconds(link.agent_ms),
            "return": nanoseconds(link.return_ms),
            "node": sum(one.execution_ns + made_ns[one.executor] * one.count_sent for one in hosts),
        }
    return found


def described_label(system: System) -> str:
    """The label of the run with the described executor."""
    executor = described_executor(system)
    return Variant.named("tide-preemptive" if executor == "lanes" else executor).label


def bounded(system: System, run: Run, bounds: Bounds | None) -> Run:
    """Adds to a run the bounds of its chains and parts, and the answers for the premises."""
    if bounds is None:
        return run
    chains = [_chain(system, one, bounds) for one in run.chains]
    known = {
        f"{what} of {one.name}": getattr(one, f"{what}_ns") for one in bounds.paths for what in ("reaction", "age")
    }
    paths = [one.model_copy(update={"bound_ns": known[one.name]}) for one in run.paths]
    answers = judge(system, bounds, run) if run.evidence else []
    return run.model_copy(update={"chains": chains, "paths": paths, "answers": answers})


def _chain(system: System, result: ChainResult, bounds: Bounds) -> ChainResult:
    bound = bounds.chain(result.name)
    limits = shares(system, system.chain(result.name), bound)
    parts = [one.model_copy(update={"bound_ns": limits.get(one.name)}) for one in result.parts]
    return result.model_copy(update={"bound_ns": bound.bound_ns, "parts": parts})
