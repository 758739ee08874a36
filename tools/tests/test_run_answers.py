# SPDX-License-Identifier: Apache-2.0
"""What a run reports about the premises of its bounds, and how it divides the time of an instance into parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import descriptions as d
from commands import results_of, tide
from tide_tools.analysis.bounds import CLIENT_EXECUTORS, bounds_of
from tide_tools.analysis.premises import of_executors
from tide_tools.report.results import NAMES, Run, running, summarise, write
from tide_tools.run import evidence
from tide_tools.run.evidence import (
    Frame,
    Instance,
    Traced,
    board_starts,
    frame_of,
    of_lines,
    parts_of,
    period_of,
    split,
)
from tide_tools.run.judge import BROKEN, HELD, UNSEEN, _Judge, bounded, judge, shares
from tide_tools.system.load import load, parse
from tide_tools.system.model import System
from tide_tools.trace.step import Step

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/three_chains/system.toml"
SYSTEM = load(EXAMPLE)
MS = 1_000_000

times = st.integers(0, 50 * MS)
BRAKE = SYSTEM.chain("brake")
LINE = SYSTEM.links[0].name


def step(place: str, start_ns: int, end_ns: int, chain: str = "brake", index: int = 0, what: str = "message") -> Step:
    return Step(chain, index, start_ns, end_ns, place, what, 0)


@st.composite
def instances(draw: st.DrawFn) -> tuple[Instance, list[Step], list[Frame]]:
    """An instance with its steps and frames. Each is recorded from a clock of its own, so a frame may begin before the
    callback that sent it has ended."""
    release = draw(st.integers(0, 10**12))
    sample = release + draw(times)
    sample_end = sample + draw(times)
    up = sample + draw(times), sample + draw(st.integers(50 * MS, 80 * MS))
    node = up[1] + draw(st.integers(-MS, 50 * MS))
    node_end = node + draw(times)
    down = node_end + draw(times), node_end + draw(st.integers(50 * MS, 80 * MS))
    act = max(sample_end, down[1] + draw(st.integers(-MS, 50 * MS)))
    runs = (sample, sample_end, draw(times)), (node, node_end, draw(times)), (act, act + draw(times), draw(times))
    crossings = [step(f"{LINE}, to the host", *up), step(f"{LINE}, to the board", *down)]
    known = [one if draw(st.booleans()) else None for one in crossings]
    others = [step("host", *sorted((release + draw(times), release + draw(times))), "steer") for _ in range(2)]
    frames = [Frame("up", up[0] + draw(times), up[1], draw(st.booleans())) for _ in range(draw(st.integers(0, 3)))]
    return Instance(release, BRAKE.callbacks, runs, known), [*crossings, *others], frames


@given(instances())
def test_the_parts_of_an_instance_add_up_to_its_latency(drawn: tuple[Instance, list[Step], list[Frame]]) -> None:
    one, steps, frames = drawn
    parts = split(one, Traced(SYSTEM, steps), {"client": frames})
    assert set(parts) == set(NAMES)
    assert sum(parts.values()) == one.latency_ns
    assert min(parts.values()) >= 0
    assert parts["start"] == one.runs[0][0] - one.release_ns


def test_parts_are_what_they_are_called() -> None:
    up, down = step(f"{LINE}, to the host", 14 * MS, 35 * MS), step(f"{LINE}, to the board", 45 * MS, 48 * MS)
    runs = (1 * MS, 12 * MS, 10 * MS), (37 * MS, 38 * MS, MS), (60 * MS, 72 * MS, 10 * MS)
    one = Instance(0, BRAKE.callbacks, runs, [up, down])
    host = BRAKE.callbacks[1].executor
    others = [step(host, 36 * MS, 37 * MS, "steer"), step(f"{LINE}, to the board", 39 * MS, 44 * MS, "steer")]
    frames = [Frame("up", 14 * MS, 24 * MS, True), Frame("up", 25 * MS, 35 * MS, False)]
    parts = split(one, Traced(SYSTEM, [up, down, *others]), {"client": frames})
    assert {name: value // MS for name, value in parts.items() if value} == {
        "start": 1,
        "execution": 20,
        "processor_wait": 1 + 12 + 2,
        "wire_wait": 2 + 5,
        "repair": 11,
        "wire": 13,
        "agent": 1,
        "node_wait": 1,
        "node": 1,
        "return": 2,
    }
    most = {part.name: (part.most_ns, part.slowest_ns) for part in parts_of([one], Traced(SYSTEM, []), {})}
    assert most["wire"] == (24 * MS, 24 * MS) and "repair" not in most


def test_the_spans_of_a_period_are_those_of_the_traces() -> None:
    """A preempted callback has a gap, in which the one that preempts it is drawn."""
    steps = [step("client", 0, 30 * MS, "battery", what="read"), step("client", 10 * MS, 20 * MS, "steer", what="read")]
    steps += [
        step("client", 0, MS, what="read"),
        step(f"{LINE}, to the host", 2 * MS, 3 * MS),
        step("agent", 3 * MS, 4 * MS),
    ]
    steps.append(step("client", BRAKE.period_ns, BRAKE.period_ns + 1, index=1, what="read"))
    period = period_of(Traced(SYSTEM, steps), BRAKE, 0, 5 * MS)
    assert {one.track for one in period.spans} == {"mcu", "up"} and len(period.spans) == 4
    board = [(one.chain, one.start_ns // MS, one.end_ns // MS) for one in running(period.spans) if one.track == "mcu"]
    assert board == [("brake", 0, 1), ("battery", 1, 10), ("steer", 10, 20), ("battery", 20, 30)]


# ---- frames of the line ----


def wire(message: bytes) -> bytes:
    plain = b"\x01\x00" + len(message).to_bytes(2, "little") + message + b"\x12\x34"
    escaped = b"".join(bytes([0x7D, byte ^ 0x20]) if byte in (0x7D, 0x7E) else bytes([byte]) for byte in plain)
    return b"\x7e" + escaped


def data(index: int, payload: int = 100, kind: int = 7, filler: bytes = b".", sequence: int = 4) -> bytes:
    text = f"{index:05d}".encode().ljust(payload - 5, filler)
    body = bytes([0, 0x2C, 0, 0x15]) + (payload - 4).to_bytes(4, "little") + text + b"\0"
    return (
        bytes([0x81, 0x83]) + sequence.to_bytes(2, "little") + bytes([kind, 1]) + len(body).to_bytes(2, "little") + body
    )


def frame(message: bytes, track: str = "up", start: int = 0, dropped: bool = False) -> Frame:
    raw = wire(message)
    return frame_of(track, start, start + len(raw) * 86_806, dropped, raw[:32], len(raw))


@given(st.integers(0, 99_999), st.integers(10, 400), st.binary(min_size=1, max_size=1), st.integers(0, 65_535))
def test_frames_tell_what_they_carry(index: int, payload: int, filler: bytes, sequence: int) -> None:
    message = data(index, payload, filler=filler, sequence=sequence)
    found = frame(message)
    assert (found.is_data, found.stream, found.session, found.sequence) == (True, 0x83, 0x81, sequence)
    escapes = sum(byte in (0x7D, 0x7E) for byte in wire(message)[1:]) - wire(message)[1:].count(0x7E)
    assert found.escaped_bytes == escapes


def test_questions_and_strangers_are_counted() -> None:
    heartbeat = bytes([0x81, 0, 0, 0, 11, 1, 5, 0, 4, 0, 5, 0, 0x83])  # about the frames 4 and 5
    other = bytes([0x81, 0, 0, 0, 11, 1, 5, 0, 4, 0, 4, 0, 0x82])  # of a stream without messages
    frames = [frame(data(1)), frame(other, start=20 * MS), frame(data(2, sequence=5), start=30 * MS)]
    frames.append(frame(heartbeat, start=45 * MS))
    seen = evidence.of_frames(frames, 0, 100 * MS)
    assert seen["client_questions"] == {"count": 1, "soonest_ns": 45 * MS - frames[0].end_ns}
    assert (seen["frames"], seen["strangers"], seen["dropped"]) == (4, 0, 0)
    stranger = bytes([0x82, 0x83, 0, 0]) + data(1)[4:]
    assert evidence.of_frames([*frames, frame(stranger)], 0, 100 * MS)["strangers"] == 1
    create = bytes([0x81, 0x80, 0, 0, 1, 1, 5, 0, 1, 0, 1, 0, 0])
    assert evidence.of_frames([*frames, frame(create)], 0, 100 * MS)["strangers"] == 1


# ---- answers ----


def handed(**changed: Any) -> dict[str, Any]:
    ways = {
        "agent": {"sure_ns": 900_000, "upto_us": {"800": 10, "2600": 4}},
        "return": {"sure_ns": 300_000, "upto_us": {"450": 1, "2200": 13}},
    }
    return {"client": ways | changed}


def on_lines(**changed: Any) -> dict[str, Any]:
    line = {"frames": 100, "dropped": 0, "lost_by_instance": 0, "behind_ns": 0, "escaped_bytes": 2, "strangers": 0}
    line |= {"signs_of_life": 0, "client_questions": {"count": 0, "soonest_ns": None}}
    return {"client": line | {"agent_questions": {"count": 2, "soonest_ns": 101 * MS}} | changed}


def sound() -> dict[str, Any]:
    """What a run records in which every premise held."""
    executions = {
        f"{chain.name}/{callback.name}": {"count": 9, "least_ns": callback.least_ns, "most_ns": callback.execution_ns}
        for chain in SYSTEM.chains
        for callback in chain.callbacks
    }
    return {
        "executions": executions,
        "start_late_ns": {"brake": 60_000},
        "taken_by": {"client": 40_000},
        "handed": handed(),
        "lines": on_lines(),
        "in_time": {"shares": {"battery": 0.12}, "missing": 0},
        "pauses": {
            "count": 0,
            "least_ns": 250_000,
            "longest_ns": 0,
            "share": 0,
            "step_ns": 250_000,
            "look_ns": 2_500,
            "left_out": 0,
        },
        "undescribed": [],
        "other_real_time": [],
    }


COUNTERS = {
    "lines": {"client": {"a_to_b": {"late_maximum_ns": 90_000}, "b_to_a": {"late_maximum_ns": 20_000}}},
    "transmitter": {"retransmissions": 0, "refused_full": 0},
    "receiver": {"checksum_errors": 0},
    "session": {},
}


def run_with(seen: dict[str, Any], counters: dict[str, Any] | None = None, executor: str = "tide") -> Run:
    chains = [
        summarise(one.name, one.priority, one.reliability, one.deadline_ns, [40 * MS, 41 * MS], 0)
        for one in SYSTEM.chains
    ]
    told = {**COUNTERS, **(counters or {})}
    return Run(executor=executor, send="asynchronous", periods=2, chains=chains, evidence=seen, counters=told)


def verdicts(run: Run, system: System = SYSTEM, executor: str = "tide", losses: int = 0) -> dict[str, str]:
    """The verdict on each premise: the worst one, if there are several."""
    return {one.id: one.verdict for one in reversed(judge(system, bounds_of(system, executor, losses), run))}


@pytest.mark.parametrize("executor", CLIENT_EXECUTORS)
@pytest.mark.parametrize("losses", [0, 2])
def test_every_assumption_that_check_prints_has_an_answer(executor: str, losses: int) -> None:
    bounds = bounds_of(SYSTEM, executor, losses)
    answers = judge(SYSTEM, bounds, run_with(sound()))
    assert [one.text for one in answers] == of_executors(bounds) + [one.text for one in bounds.assumptions]
    assert {one.verdict for one in answers if one.id != "model"} == {HELD}, answers
    words = ("--executor", executor, "--losses", str(losses), "--details")
    printed = tide("check", EXAMPLE, *words, COLUMNS="400")[1]
    lines = {line.strip()[2:] for line in printed.splitlines() if line.startswith("  - ")}
    assert lines == {one.text for one in answers}
    assert all(one.counter for one in answers)
    unseen = judge(SYSTEM, bounds, Run(executor=executor, send="", periods=2, chains=[], counters={}))
    assert {one.verdict for one in unseen} == {UNSEEN} and all(one.counter for one in unseen)


def changed(seen: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return {**seen, name: value}


BREAKS: list[tuple[str, str, Any]] = [
    ("execution", "executions", {"brake/act": {"count": 9, "least_ns": 10 * MS, "most_ns": 12 * MS}}),
    ("shortest_execution", "executions", {"brake/act": {"count": 9, "least_ns": 9 * MS, "most_ns": 10 * MS}}),
    ("digestion", "taken_by", {"client": 600_000}),
    ("release_jitter", "start_late_ns", {"brake": 1_100_000}),
    ("agent", "handed", handed(agent={"sure_ns": 3_100_000, "upto_us": {"800": 10, "3100": 1}})),
    ("return", "handed", handed(**{"return": {"sure_ns": 1_500_000, "upto_us": {"450": 1, "1500": 13}}})),
    ("escapes", "lines", on_lines(escaped_bytes=5)),
    ("losses", "lines", on_lines(dropped=1)),
    ("client_questions", "lines", on_lines(client_questions={"count": 1, "soonest_ns": 15 * MS})),
    ("agent_questions", "lines", on_lines(agent_questions={"count": 1, "soonest_ns": 40 * MS})),
    ("line_alone", "lines", on_lines(strangers=3)),
    ("line_on_time", "lines", on_lines(behind_ns=2 * MS)),
    ("heard_at_start", "lines", on_lines(signs_of_life=1)),
    ("over_in_time", "in_time", {"shares": {"battery": 0.2}, "missing": 1}),
    ("over_in_time", "in_time", {"shares": {"battery": 1.01}, "missing": 0}),
]


@pytest.mark.parametrize(("broken", "name", "value"), BREAKS)
def test_what_breaks_an_assumption_is_told_of_that_one_alone(broken: str, name: str, value: Any) -> None:
    found = verdicts(run_with({**sound(), name: value}))
    assert {one for one, verdict in found.items() if verdict == BROKEN} == {broken}


@pytest.mark.parametrize(
    ("counters", "broken"),
    [
        ({"transmitter": {"retransmissions": 1}}, "losses"),
        ({"receiver": {"checksum_errors": 1}}, "losses"),
        ({"transmitter": {"refused_full": 1}}, "pools"),
        ({"receiver": {"overflow_dropped": 2}}, "pools"),
        ({"publish_failures": 1}, "pools"),
        ({"session": {"reconnects": 1}}, "over_in_time"),
    ],
)
def test_counters_of_the_client_break_theirs(counters: dict[str, Any], broken: str) -> None:
    found = verdicts(run_with(sound(), counters))
    assert {one for one, verdict in found.items() if verdict == BROKEN} == {broken}


def test_losses_that_the_bounds_take_are_no_break() -> None:
    seen = {**sound(), "lines": on_lines(dropped=5, lost_by_instance=2)}
    counters = {"transmitter": {"retransmissions": 5}}
    assert verdicts(run_with(seen, counters), losses=2)["losses"] == HELD
    assert verdicts(run_with(seen, counters), losses=1)["losses"] == BROKEN
    hidden = {key: value for key, value in sound().items() if key != "lines"}
    assert verdicts(run_with(hidden, counters), losses=1)["losses"] == UNSEEN


def test_what_others_hide_is_not_called_held() -> None:
    for way_back in ("return", "agent"):
        seen = {**sound(), "handed": handed(**{way_back: {"sure_ns": 200_000, "upto_us": {"9000": 14}}})}
        assert verdicts(run_with(seen))[way_back] == UNSEEN


def test_a_line_that_was_late_itself_proves_no_early_question() -> None:
    seen = {**sound(), "lines": on_lines(client_questions={"count": 1, "soonest_ns": 15 * MS})}
    late = {"lines": {"client": {"a_to_b": {"late_maximum_ns": 70 * MS}, "b_to_a": {"late_maximum_ns": 0}}}}
    (answer,) = [one for one in judge(SYSTEM, bounds_of(SYSTEM), run_with(seen, late)) if one.id == "client_questions"]
    assert answer.verdict == UNSEEN and "itself up to 70.000 ms late" in answer.counter


def test_what_the_description_does_not_give_is_answered_by_what_uses_it(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("agent_ms = 3\nreturn_ms = 1\n", "")
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    system = load(file)
    answers = judge(system, bounds_of(system), run_with(sound()))
    (answer,) = [one for one in answers if one.id == "not_given"]
    assert answer.verdict == BROKEN and "0.900 ms of 0.000 ms" in answer.counter


@pytest.mark.parametrize(
    ("premise", "name", "value", "verdict", "says"),
    [
        ("machine", "pauses", None, UNSEEN, "pauses were not watched"),
        (
            "undescribed",
            "undescribed",
            ["peer serves /reset"],
            UNSEEN,
            "may run, and is in no bound: peer serves /reset",
        ),
        ("undescribed", "undescribed", None, UNSEEN, "nobody looked"),
        ("other_real_time", "other_real_time", ["a (1)", "b (2)", "c (3)", "d (4)"], BROKEN, "4 threads: a (1), b (2)"),
        ("other_real_time", "other_real_time", None, UNSEEN, "not visible"),
    ],
)
def test_what_every_bound_supposes_is_answered(premise: str, name: str, value: Any, verdict: str, says: str) -> None:
    answers = judge(SYSTEM, bounds_of(SYSTEM), run_with({**sound(), name: value}))
    (answer,) = [one for one in answers if one.id == premise]
    assert answer.verdict == verdict and says in answer.counter, answer


def test_a_line_of_this_machine_that_was_late_breaks_its_premise() -> None:
    late = {"lines": {"client": {"a_to_b": {"late_maximum_ns": 70 * MS}}}}
    assert verdicts(run_with(sound(), late))["line_on_time"] == BROKEN
    assert verdicts(run_with(sound(), {"lines": {}}))["line_on_time"] == UNSEEN


def test_programs_of_the_user_may_have_more_than_can_be_seen() -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace('where = "mcu"', 'where = "mcu"\ncommand = "x {device}"', 1)
    found = verdicts(run_with(sound()), parse(text))
    assert (found["undescribed"], found["interrupts"]) == (UNSEEN, UNSEEN)


# ---- evidence from one place proves nothing about other places ----


def two_boards(**of_arm: Any) -> System:
    """A system with a board that has a load, another board, and a node that may be a program of the user."""
    steps = ("base", 1), ("nodes", 1), ("base", 1)
    others = ("arm", 1), ("nodes", 1), ("arm", 1)
    load = {"name": "flash", "execution_ms": 5, "period_ms": 1000}
    return parse(
        d.described(
            d.board("base", link="a", loads=[load], **of_arm),
            d.board("arm", link="b"),
            d.host("nodes", **of_arm),
            d.line("a", agent_ms=2, return_ms=2),
            d.line("b", agent_ms=2, return_ms=2),
            d.chain("drive", 9, *steps),
            d.chain("grip", 8, *others),
            d.chain("look", 7, *steps, jitter_ms=1),
        )
    )


def told_of(system: System, premise: str, seen: dict[str, Any], counters: dict[str, Any]) -> dict[str, str]:
    """The verdicts on a premise, each with its counter. Nothing else is in the record of the run."""
    run = Run(executor="described", send="", periods=2, chains=[], evidence=seen, counters=counters)
    return {one.verdict: one.counter for one in judge(system, bounds_of(system), run) if one.id == premise}


LOAD = {"name": "flash", "runs": 4, "most_ns": 4 * MS}
TOLD = {"sure_ns": MS, "upto_us": {"900": 3}}
PLACES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "a load": ("loads", {}, {"boards": {"base": {"loads": [LOAD]}}}, {HELD: "flash took 4"}),
    "a load that never ran": (
        "loads", {}, {"boards": {"base": {"loads": [LOAD | {"runs": 0, "most_ns": 0}]}}},
        {UNSEEN: "flash never ran", HELD: "no load"},
    ),
    "a load that was not recorded": (
        "loads", {}, {"boards": {"base": {"loads": []}}}, {UNSEEN: "a load was not", HELD: "no load"}
    ),
    "frames of one board": ("digestion", {"taken_by": {"base": 0}}, {}, {HELD: "0.000 ms", UNSEEN: "no answer"}),
    "the agent for one board": (
        "shared_agent", {"handed": {"arm": {"agent": TOLD, "return": TOLD}}}, {},
        {HELD: "as agent_ms", UNSEEN: "no trace"},
    ),
    "a timer whose delay was hidden": (
        "release_jitter", {"start_late_ns": {"look": MS // 2, "grip": 0}}, {}, {HELD: "grip", UNSEEN: "drive never"}
    ),
    "a timer whose delay was hidden, and others on time": (
        "release_jitter", {"start_late_ns": {"drive": 0, "grip": 0}}, {}, {HELD: "grip"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_no_place_is_judged_by_another(name: str) -> None:
    premise, seen, counters, expected = PLACES[name]
    told = told_of(two_boards(), premise, seen, counters)
    assert told.keys() == expected.keys(), told
    assert all(says in told[word] for word, says in expected.items()), told


NETWORK = parse(
    d.described(
        d.board("m"),
        d.host("h"),
        d.entry("links", name="net", kind="udp", agent_ms=2, return_ms=2, heartbeat_delay_ms=20),
        d.chain("c", 1, ("m", 1), ("h", 1), ("m", 1), reliability="reliable"),
    )
)
QUIET = {"transmitter": {"heartbeats": 0, "retransmissions": 0}, "receiver": {"gaps": 0, "checksum_errors": 0}}


@pytest.mark.parametrize(
    ("missing", "counters", "losses", "client"),
    [
        (0, QUIET, HELD, HELD),
        (1, QUIET, UNSEEN, HELD),
        (0, QUIET | {"receiver": {"gaps": 1}}, BROKEN, HELD),
        (0, QUIET | {"transmitter": {"heartbeats": 1}}, HELD, UNSEEN),
    ],
)
def test_a_network_without_a_log_is_judged_by_counters_alone(
    missing: int, counters: dict[str, Any], losses: str, client: str
) -> None:
    seen = {"in_time": {"shares": {"c": 0.1}, "missing": missing}}
    assert told_of(NETWORK, "losses", seen, counters).keys() == {losses}
    assert told_of(NETWORK, "client_questions", seen, counters).keys() == {client}
    assert told_of(NETWORK, "agent_questions", seen, counters).keys() == {UNSEEN}


def test_what_is_the_users_is_not_judged_by_what_is_played() -> None:
    system = two_boards(command="./mine")
    assert told_of(system, "depth", {"in_time": {"shares": {"grip": 0.1}, "missing": 0}}, {}).keys() == {UNSEEN}


# ---- runs with bounds ----


def test_shares_of_all_parts_make_up_the_bound() -> None:
    bounds = bounds_of(SYSTEM, "lanes")
    for chain in SYSTEM.chains:
        bound = bounds.chain(chain.name)
        assert bound is not None and bound.bound_ns is not None and not bound.hidden
        assert sum(shares(SYSTEM, chain, bound).values()) == bound.bound_ns


def test_what_a_run_broke_is_in_its_answers_its_verdicts_and_the_report(tmp_path: Path) -> None:
    late = run_with({**sound(), "handed": handed(agent={"sure_ns": 9 * MS, "upto_us": {"9000": 1}})})
    run = bounded(SYSTEM, late, bounds_of(SYSTEM, "tide"))
    (broken,) = [one for one in run.answers if one.verdict == BROKEN]
    assert broken.id == "agent" and "9.000 ms of 3.000 ms" in broken.counter
    reasons = {reason for one in run.verdicts for reason in one.reasons}
    assert any("agent_ms (9.000 ms of 3.000 ms" in one for one in reasons)
    write(results_of(run), tmp_path / "results.json")
    said = " ".join(tide("report", tmp_path, "--details")[1].split())
    assert f"broken: {broken.text} ({broken.counter})" in said and "held: no frame is lost" in said
    (kept,) = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["runs"]
    assert kept["evidence"]["lines"]["client"]["frames"] == 100


# ---- lines of boards whose frames do not identify their chains ----


def on_line(track: str, end_ms: float, kind: int = 7, session: int = 1) -> Frame:
    end_ns = int(end_ms * 1e6)
    return Frame(track, end_ns - 100_000, end_ns, False, kind, session, 1, 2, 1)


def test_each_line_of_several_boards_answers_for_its_own() -> None:
    up, down = [on_line("up", 10), on_line("up", 20)], [on_line("down", 12, kind=9)]
    traced = Traced(load(ROOT / "examples/systems/arm_and_base.toml"), [])
    seen = of_lines({"base": up + down, "arm": [*up, on_line("up", 30, kind=14)]}, 0, 10**9, traced)
    assert {board: (one["frames"], one["strangers"]) for board, one in seen.items()} == {"base": (3, 0), "arm": (3, 1)}
    assert all(one["escaped_bytes"] == 2 for one in seen.values())
    judged = _Judge(SYSTEM, bounds_of(SYSTEM), run_with({**sound(), "lines": {"client": seen["arm"]}}))
    judged.at = frozenset({"client"})
    assert judged.line_alone({})[:2] == (BROKEN, "1 of 3 frames are not of these chains")
    assert judged.heard_at_start({})[0] == HELD and judged.escapes({"escaped_bytes": 1})[0] == BROKEN
    judged.seen.pop("lines")
    assert {judged.line_alone({})[0], judged.escapes({})[0], judged.questions("agent_questions", {})[0]} == {UNSEEN}


@pytest.mark.parametrize(("track", "to"), [("up", "to the host"), ("down", "to the board")])
def test_a_frame_that_the_emulator_got_late_makes_its_line_late(track: str, to: str) -> None:
    """Frames as a board or the agent records them. In the agent's record, a lost frame has no end."""
    given_ms = [(10, 12, "message"), (20, 20, "lost message"), (40, 42, "message")]
    steps = [Step("brake", 1, a * MS, b * MS, f"uart, {to}", what, 0) for a, b, what in given_ms]
    traced = Traced(SYSTEM, steps)

    def behind_ms(*starts_ms: float) -> float:
        frames = [on_line(track, start_ms + 0.1) for start_ms in starts_ms]
        return float(of_lines({"client": frames}, 0, 10**9, traced)["client"]["behind_ns"]) / MS

    assert behind_ms(10, 20, 40) == 0
    assert behind_ms(11.5, 20, 40) == 1.5
    assert behind_ms(10, 25, 40) == 5


def test_only_what_leaves_no_doubt_tells_how_late_a_board_starts() -> None:
    ms = 1_000_000
    down = [on_line("down", at_ms, kind) for at_ms, kind in ((15, 9), (40, 9), (40.5, 9), (71, 9), (80, 10), (80.2, 9))]
    runs: dict[str, list[tuple[str, int | None, int, int]]] = {
        "base": [
            ("brake", 0, 200_000, 2 * ms),  # 0.2 ms late: the lane was idle
            ("brake", 10 * ms, 10 * ms + 100_000, 14 * ms),
            ("act", None, 15 * ms + 300_000, 16 * ms),  # 0.3 ms late: one frame, and the lane was idle
            ("act", None, 41 * ms, 42 * ms),  # not counted: two frames
            ("act", None, 42 * ms + 150_000, 43 * ms),  # the second frame, 0.15 ms after the callback before
            ("brake", 50 * ms, 50 * ms + 50_000, 60 * ms),
            ("steer", 55 * ms, 60 * ms + 50_000, 61 * ms),  # not counted: brake ran
            ("brake", 70 * ms, 72 * ms, 73 * ms),  # not counted: a frame came in between
            # at least 0.7 ms late, because the other frame may be an ACKNACK
            ("act", None, 80 * ms + 900_000, 81 * ms),
        ],
        "other": [("lamp", 0, 9 * ms, 10 * ms)],  # not counted: its inputs are unknown
    }
    told = board_starts(runs, {"base": down})
    assert told["start_late_ns"] == {"brake": 200_000}
    assert (told["taken_by"], told["taken_most"]) == ({"base": 300_000}, {"base": 700_000})


@pytest.mark.parametrize(
    ("alone_ms", "most_ms", "verdict"),
    [(0.3, None, HELD), (None, 0.3, HELD), (0.3, 0.7, UNSEEN), (0.7, 0.3, BROKEN), (None, None, UNSEEN)],
)
def test_an_answer_that_waited_for_others_proves_no_slow_board(
    alone_ms: float | None, most_ms: float | None, verdict: str
) -> None:
    times = {"taken_by": alone_ms, "taken_most": most_ms}
    seen = {key: {} if one is None else {"client": int(one * MS)} for key, one in times.items()}
    assert verdicts(run_with({**sound(), **seen}))["digestion"] == verdict
