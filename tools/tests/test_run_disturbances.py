# SPDX-License-Identifier: Apache-2.0
"""To which instances of a run bounds apply, and by how much time a stand-in for a callback is shortened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import descriptions as d
from tide_tools.programs.binaries import find_binary
from tide_tools.programs.child import may_use_fifo
from tide_tools.programs.pauses import Span, pauses_of, pauses_told
from tide_tools.report.results import Answer
from tide_tools.run.nodes import Reserve
from tide_tools.run.plan import WARM_UP_INSTANCES, instances_of
from tide_tools.run.results import Outcome, outcome_of, sentences, undisturbed_table
from tide_tools.run.robot import Recorded
from tide_tools.run.seen import UnderWay, reached, release_ns_of, undisturbed
from tide_tools.system.load import parse
from tide_tools.system.model import System

MS = 1_000_000
PERIODS = 10
SYSTEM = d.described(
    d.host("node"),
    d.host("other"),
    d.chain("work", 2, ("node", 2, {"name": "begin"}), period_ms=20),
    d.chain("apart", 1, ("other", 2, {"name": "sit"}), period_ms=20),
    name="two",
)


# ---- affected instances ----


@st.composite
def instances(draw: st.DrawFn) -> list[UnderWay]:
    found = []
    for number in range(draw(st.integers(0, 12))):
        from_ns, length = draw(st.integers(0, 30)), draw(st.integers(0, 8))
        shared = frozenset(draw(st.sets(st.sampled_from("abc"), min_size=1)))
        late_ns = draw(st.none() | st.integers(from_ns, from_ns + length))
        found.append(
            UnderWay("one", number, from_ns, from_ns + length, True, draw(st.integers(0, 5)) == 0, shared, late_ns)
        )
    return found


def spread_by_the_moment(every: list[UnderWay], pauses: list[Span], blamed: dict[int, int]) -> list[bool]:
    """Which instances are affected. ``blamed`` has the instances that are late by themselves, each with the time from
    which it affects others."""
    reaching = [False] * len(every)
    for now in range(50):
        under_way = [number for number, one in enumerate(every) if one.from_ns <= now <= one.until_ns]
        for number in under_way:
            is_paused = any(from_ns <= now <= until_ns for from_ns, until_ns in pauses)
            reaching[number] |= every[number].is_broken or is_paused
            reaching[number] |= number in blamed and blamed[number] <= now
        for _ in under_way:
            for number in under_way:
                shared = every[number].shared
                others = [other for other in under_way if other != number and shared & every[other].shared]
                reaching[number] |= number not in blamed and any(reaching[other] for other in others)
    return [yes and number not in blamed for number, yes in enumerate(reaching)]


def by_the_moment(every: list[UnderWay], pauses: list[Span]) -> list[bool]:
    """Which instances are affected, computed by evaluating the definition moment by moment."""
    blamed: dict[int, int] = {}
    found = spread_by_the_moment(every, pauses, blamed)
    late = sorted((one.late_from_ns, number) for number, one in enumerate(every) if one.late_from_ns is not None)
    for late_ns, number in late:
        if not found[number]:
            blamed[number] = late_ns
            found = spread_by_the_moment(every, pauses, blamed)
    return found


@settings(max_examples=300)
@given(instances(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=3))
def test_what_was_broken_reaches_whom_it_meets(every: list[UnderWay], starts: list[tuple[int, int]]) -> None:
    pauses = [(from_ns, from_ns + length) for from_ns, length in starts]
    assert reached(every, pauses) == by_the_moment(every, pauses)


def test_what_is_reached_again_before_reaches_more() -> None:
    """At time 10, the third instance affects the second one. At time 3, the first instance, which is late, has affected
    the second one already. The fourth instance was active at that time, so the second one passes the effect on to
    it."""

    def one(from_ns: int, until_ns: int, shared: str, *, broken: bool = False, late_ns: int | None = None) -> UnderWay:
        return UnderWay("one", 0, from_ns, until_ns, True, broken, frozenset(shared), late_ns)

    every = [one(0, 8, "a", late_ns=3), one(0, 20, "ab"), one(10, 12, "a", broken=True), one(0, 5, "b")]
    assert reached(every, []) == [False, True, True, True] == by_the_moment(every, [])
    assert reached(every[1:], []) == [True, True, False]


# ---- a run ----


def run_of(system: System, spent_ms: int = 2) -> Recorded:
    """A run in which each chain begins at its release and takes the given time."""
    recorded = Recorded(10**9)
    for chain in system.chains:
        each_ns = spent_ms * MS // len(chain.callbacks)
        for place, callback in enumerate(chain.callbacks):
            runs = recorded.runs.setdefault((chain.name, callback.name), {})
            for index in range(instances_of(system, chain, PERIODS)):
                start_ns = release_ns_of(system, chain, recorded, index) + place * each_ns
                runs[index] = (start_ns, start_ns + each_ns, each_ns)
    return recorded


def late_run(late_ms: int) -> tuple[System, Recorded]:
    """A run in which one instance of the chain "work" pauses between its two callbacks, which nothing explains."""
    steps = (("node", 1, {"name": "begin"}), ("node", 1, {"name": "finish"}))
    apart = d.chain("apart", 1, ("other", 2, {"name": "sit"}), period_ms=20)
    work = d.chain("work", 2, *steps, period_ms=20)
    system = parse(d.described(d.host("node"), d.host("other"), work, apart, name="two"))
    recorded = run_of(system)
    start_ns, end_ns, spent_ns = recorded.runs["work", "finish"][5]
    recorded.runs["work", "finish"][5] = (start_ns + late_ms * MS, end_ns + late_ms * MS, spent_ns)
    return system, recorded


def outcome(system: System, recorded: Recorded) -> Outcome:
    return outcome_of(system, recorded, PERIODS)


def test_an_execution_that_is_too_long_disturbs_its_instance_alone() -> None:
    system = parse(SYSTEM)
    recorded = run_of(system)
    runs = recorded.runs["work", "begin"]
    place = WARM_UP_INSTANCES + 2
    start_ns, end_ns, _ = runs[place]
    runs[place] = (start_ns, end_ns + 9 * MS, 11 * MS)
    found = undisturbed(system, recorded, PERIODS)
    every = set(range(WARM_UP_INSTANCES, WARM_UP_INSTANCES + PERIODS))
    assert set(found["work"]) == every - {place} and set(found["apart"]) == every
    assert max(found["work"].values()) == 2 * MS
    told = outcome(system, recorded)
    assert told.run.chains[0].undisturbed[-1].samples == PERIODS - 1
    assert told.is_disturbed and undisturbed_table(told).row_count == 2
    assert any("above its bound" in one for one in told.run.verdicts[0].reasons)
    assert "nothing was seen to disturb" not in " ".join(sentences(told))


def test_what_a_run_tolerates_refutes_no_bound() -> None:
    """The start of an idle thread is late by 0.09 ms, and the callback is interrupted for 0.09 ms."""
    system = parse(SYSTEM)
    recorded = run_of(system)
    start_ns, end_ns, spent_ns = recorded.runs["work", "begin"][5]
    recorded.runs["work", "begin"][5] = (start_ns + 90_000, end_ns + 180_000, spent_ns)
    run = outcome(system, recorded).run
    assert run.chains[0].undisturbed[-1].max_ns == 2_180_000 and not run.refuted


@pytest.mark.parametrize("late_ms", [6, 30])
def test_what_nothing_explains_is_told(late_ms: int) -> None:
    """An instance that is late without a known cause must be reported, even if it ends after the next release."""
    system, recorded = late_run(late_ms)
    told = outcome(system, recorded)
    assert told.run.chains[0].undisturbed[-1].samples == (PERIODS if late_ms < 20 else PERIODS - 1)
    assert told.run.chains[0].undisturbed[-1].is_above and not told.run.chains[1].undisturbed[-1].is_above
    assert "work was longer than its bound in an instance that nothing was seen to disturb" in " ".join(sentences(told))


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "premise", "says"),
    [
        (6, 6, "work_conserving", "work started 6.000 ms after an expiry, its jitter_ms is 0.000 ms"),
        (0, 6, "own_cores", "the thread of work/begin was without a processor for 6.000 ms"),
    ],
)
def test_a_thread_that_waits_for_a_processor_disturbs_its_instance(
    start_ms: int, end_ms: int, premise: str, says: str
) -> None:
    """It starts late although its executor is idle, or it stops while it runs."""
    system = parse(SYSTEM)
    recorded = run_of(system)
    start_ns, end_ns, spent_ns = recorded.runs["work", "begin"][5]
    recorded.runs["work", "begin"][5] = (start_ns + start_ms * MS, end_ns + end_ms * MS, spent_ns)
    run = outcome(system, recorded).run
    assert [one.undisturbed[-1].samples for one in run.chains] == [PERIODS - 1, PERIODS] and not run.refuted
    answers = {one.id: one for one in run.answers}
    assert (answers[premise].verdict, answers[premise].counter) == ("broken", says)
    other = "own_cores" if premise == "work_conserving" else "work_conserving"
    assert answers[other].verdict == "held"


@pytest.mark.parametrize("lanes", [1, 2])
def test_the_only_thread_of_a_board_is_judged_alike(lanes: int) -> None:
    """A lane of several may wait for a more urgent one."""
    system = parse(SYSTEM.replace(d.host("node"), d.board("node", lanes=lanes)))
    recorded = run_of(system)
    start_ns, end_ns, spent_ns = recorded.runs["work", "begin"][5]
    recorded.runs["work", "begin"][5] = (start_ns, end_ns + MS, spent_ns)
    assert (5 in undisturbed(system, recorded, PERIODS)["work"]) == (lanes > 1)


@pytest.mark.parametrize(("look_ns", "refuted"), [(0, ["work"]), (100_000, ["work"]), (180_000, [])])
def test_the_watch_of_pauses_may_explain_an_excess(look_ns: int, refuted: list[str]) -> None:
    """It interrupts an instance of 8 ms in 34 looks at most. Its bound is 2 ms."""
    system, recorded = late_run(6)
    looks = {"pauses": [], "left_out": 0, "looks": 1000, "own_ns": 1000 * look_ns}
    recorded.pauses = {"step_ns": MS // 4, "least_ns": MS // 4, "awake": True, "processors": [looks]}
    run = outcome(system, recorded).run
    assert run.refuted == refuted
    pauses = {name: one for name, one in run.evidence["pauses"].items() if name not in ("look_ns", "step_ns")}
    assert run.model_copy(update={"evidence": {**run.evidence, "pauses": pauses}}).refuted == ["work"]  # older results
    (machine,) = (one for one in run.answers if one.id == "machine")
    assert machine.counter.endswith(f"takes {look_ns * 100 // (MS // 4)} % of each processor") == (look_ns > 0)


def test_what_broke_at_no_known_time_may_have_disturbed_any_instance() -> None:
    """An example of such a premise is a load that is longer than described: the board reports it only at its end,
    without a time."""
    system, recorded = late_run(6)
    run = outcome(system, recorded).run
    assert run.refuted == ["work"]
    load = Answer(id="loads", text="", verdict="broken", counter="flash took 7 ms of 5 ms at most", chains=["work"])
    for name in ("loads", "line_on_time", "other_real_time"):
        told = load.model_copy(update={"id": name})
        assert run.model_copy(update={"answers": [*run.answers, told]}).refuted == []
    held = load.model_copy(update={"verdict": "held"})
    assert run.model_copy(update={"answers": [*run.answers, held]}).refuted == ["work"]


def test_a_pause_disturbs_all_that_was_under_way() -> None:
    system = parse(SYSTEM)
    recorded = run_of(system)
    at_ns = release_ns_of(system, system.chains[0], recorded, 7) + MS
    told = {"step_ns": MS // 4, "least_ns": MS // 4, "awake": True}
    spans = [[[at_ns, at_ns + MS]], [[at_ns + 10 * MS, at_ns + 11 * MS]]]
    told["processors"] = [{"pauses": pauses, "left_out": 3, "looks": 1, "own_ns": 0} for pauses in spans]
    recorded.pauses = told
    found = undisturbed(system, recorded, PERIODS)
    assert 7 not in found["work"] and 7 not in found["apart"]
    assert len(found["work"]) == len(found["apart"]) == PERIODS - 1
    answers = {one.id: one for one in outcome(system, recorded).run.answers}
    assert answers["machine"].verdict == "broken" and answers["machine"].counter.startswith("2 pauses of 0.250 ms")
    assert answers["machine"].counter.endswith("; 6 more had no room")
    seen = pauses_told(told, at_ns + 2 * MS, at_ns + 12 * MS)
    assert (seen["count"], seen["longest_ns"], seen["share"]) == (1, MS, 0.05)


def test_a_lost_instance_disturbs_those_it_may_have_met() -> None:
    system = parse(SYSTEM)
    recorded = run_of(system)
    del recorded.runs["work", "begin"][6]
    found = undisturbed(system, recorded, PERIODS)
    assert 6 not in found["work"] and 7 not in found["work"] and 6 in found["apart"]


# ---- the time by which a simulated callback is shortened ----


@given(
    st.integers(0, 10 * MS),
    st.integers(0, 100),
    st.lists(st.tuples(st.integers(-MS, 20 * MS), st.integers(0, 5 * MS)), max_size=20),
    st.integers(0, MS),
)
def test_work_is_no_longer_than_described_and_no_shorter_than_said(
    execution_ns: int, least_percent: int, seen: list[tuple[int, int]], before_ns: int
) -> None:
    least_ns = execution_ns * least_percent // 100
    reserve = Reserve(execution_ns, least_ns, sends=True)
    for lead_ns, spent_ns in seen:
        reserve.led(0, lead_ns)
        reserve.published(spent_ns)
        work_ns = reserve.work_ns(0, before_ns)
        assert 0 <= work_ns <= execution_ns
        assert work_ns + before_ns >= least_ns or work_ns == 0
        assert work_ns + before_ns >= execution_ns // 2 or work_ns == 0


def test_what_surrounds_a_callback_is_left_free() -> None:
    reserve = Reserve(20 * MS, 0, sends=True)
    reserve.led(0, 3 * MS)
    reserve.led(0, 2 * MS)  # the shortest lead is what the executor itself takes
    reserve.led(1, MS)
    reserve.published(4 * MS)
    assert 20 * MS - 2 * MS - 4 * MS - MS <= reserve.work_ns(0, 0) < 20 * MS - 2 * MS - 4 * MS
    assert reserve.work_ns(1, 0) == reserve.work_ns(0, 0) + MS
    for _ in range(200):
        reserve.published(MS)
    assert reserve.work_ns(0, 0) > 16 * MS
    assert Reserve(20 * MS, 0, sends=False).work_ns(0, 0) > 19 * MS


# ---- the program ----


@pytest.mark.full  # it measures this machine
def test_a_processor_that_stands_still_is_seen() -> None:
    """The program itself is stopped, which looks to its threads like a pause of their processor. The machine may pause
    just before, so that the recorded pause begins earlier."""
    if not may_use_fifo():
        done = subprocess.run([find_binary("tide-pauses")], capture_output=True, text=True)
        assert done.returncode == 1 and "no real-time priority" in done.stderr
        return
    from_ns = time.monotonic_ns()
    process = subprocess.Popen([find_binary("tide-pauses")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"event": "watching"}
    os.kill(process.pid, signal.SIGSTOP)
    threads = list(Path(f"/proc/{process.pid}/task").iterdir())
    while not all("State:\tT" in (thread / "status").read_text(encoding="ascii") for thread in threads):
        time.sleep(0.001)  # clock: between two looks
    stopped_ns = time.monotonic_ns()
    time.sleep(0.05)  # clock: the pause has at least this length
    resumed_ns = time.monotonic_ns()
    os.kill(process.pid, signal.SIGCONT)
    while time.monotonic_ns() < resumed_ns + 50 * MS:
        time.sleep(0.01)  # clock: time in which the program continues
    process.stdin.close()  # ends the program, as SIGTERM would
    told = json.loads(process.stdout.read())
    assert process.wait() == 0
    assert len(told["processors"]) == len(os.sched_getaffinity(0))
    for one in told["processors"]:
        assert one["looks"] > 0 and one["left_out"] == 0 and one["own_ns"] > 0
        assert any(from_ns <= begin <= stopped_ns and end >= resumed_ns - MS for begin, end in one["pauses"])
    assert pauses_of(told) == sorted(pauses_of(told)) and pauses_of(None) == []


LIMITED = """
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
int sched_setscheduler(pid_t process, int policy, const struct sched_param *wanted) {
  (void)process, (void)policy;
  if (wanted->sched_priority <= 90) return 0;
  errno = EPERM;
  return -1;
}
int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *wanted) {
  (void)thread, (void)policy;
  return wanted->sched_priority <= 90 ? 0 : EPERM;
}
int getrlimit(__rlimit_resource_t resource, struct rlimit *limit) {
  if (resource != RLIMIT_RTPRIO) return prlimit(0, resource, NULL, limit);
  limit->rlim_cur = limit->rlim_max = 90;
  return 0;
}
"""


def test_a_user_whose_limit_is_lower_may_watch(tmp_path: Path) -> None:
    """The limit is the rtprio 90 that `tide doctor` recommends."""
    library = tmp_path / "limited.so"
    (tmp_path / "limited.c").write_text(LIMITED, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "limited.c"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    done = subprocess.run([find_binary("tide-pauses")], env=environment, input="", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "pauses"


@pytest.mark.parametrize("words", [["--priority", "0"], ["--priority", "no"], ["word"]])
def test_words_that_it_does_not_know_are_refused_in_one_line(words: list[str]) -> None:
    done = subprocess.run([find_binary("tide-pauses"), *words], capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not done.stdout
