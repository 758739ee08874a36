# SPDX-License-Identifier: Apache-2.0
"""`tide run` of whole descriptions, without starting programs: plans, messages of any type, and the results for made-up
observations."""

from __future__ import annotations

import random
import re
import signal
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message

import descriptions as d
from commands import tide
from tide_tools.programs.child import Child, RunError
from tide_tools.programs.patience import Patience
from tide_tools.run.messages import MODULI, MessageError, Number, message_class, sample_of
from tide_tools.run.plan import (
    COUNTED,
    WARM_UP_INSTANCES,
    Message,
    counted_of,
    instances_of,
    plan_of,
    timing_of,
    unplayable,
    with_stand_ins,
)
from tide_tools.run.robot import Recorded, Robot
from tide_tools.run.seen import sections_seen, seen_of
from tide_tools.system.load import SystemFileError, load, parse
from tide_tools.system.model import Callback, Publication, System

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/systems").glob("*.toml"))
MS = 1_000_000
TYPES = (
    "std_msgs/msg/String",
    "std_msgs/msg/Bool",
    "std_msgs/msg/Int8",
    "std_msgs/msg/UInt16",
    "std_msgs/msg/Int64",
    "std_msgs/msg/Float32",
    "std_msgs/msg/Empty",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/ByteMultiArray",
    "sensor_msgs/msg/Image",
    "sensor_msgs/msg/PointCloud2",
    "sensor_msgs/msg/JointState",
    "geometry_msgs/msg/PoseArray",
    "diagnostic_msgs/msg/DiagnosticArray",
)


# ---- messages ----


@settings(max_examples=150)
@given(st.sampled_from(TYPES), st.integers(1, 3000), st.integers(0, 10**9), st.integers(0, 10**6))
def test_a_message_is_of_its_type_and_carries_its_number(name: str, size: int, latest: int, behind: int) -> None:
    try:
        sample = sample_of(name, size)
    except MessageError as error:
        assert "at least" in str(error)
        return
    assert 0 < len(sample.body) <= size
    modulus = MODULI[sample.number.kind]
    index = latest - behind % min(modulus, latest + 1)
    body = bytearray(sample.body)
    sample.number.written(body, index)
    assert sample.number.instance(bytes(body), latest) == (index if modulus > 1 else latest)
    message = deserialize_message(b"\0\1\0\0" + bytes(body), message_class(name))
    assert isinstance(message, message_class(name))


@given(st.sampled_from(sorted(MODULI)), st.integers(0, 40), st.binary(max_size=30), st.integers(0, 10**9))
def test_no_bytes_are_read_as_an_instance_that_may_not_be(kind: str, offset: int, data: bytes, latest: int) -> None:
    found = Number(kind, offset).instance(data, latest)
    assert found <= latest and (found < 0 or latest - found < MODULI[kind])


# ---- plans ----


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_each_callback_is_planned_once_with_what_it_takes_and_sends(file: Path) -> None:
    system = load(file)
    planned = {
        (chain.name, callback.name): (executor.name, callback)
        for executor in system.executors
        for chain in plan_of(system, executor, 3)
        for callback in chain.callbacks
    }
    count = 0
    for chain in system.chains:
        inputs = [_sent(one) for one in system.inputs(chain)]
        before = inputs[0] if inputs else None
        for callback in chain.callbacks:
            executor, found = planned[chain.name, callback.name]
            assert executor == callback.executor and found.execution_ns == callback.execution_ns
            assert (found.takes and _of(found.takes)) == before
            joined = inputs[1:] if callback is chain.callbacks[0] else []
            assert [_of(one) for one in found.joins] == joined
            before = _sent(callback)
            assert [_of(one) for one in found.sends] == ([] if before is None else [before])
            count += 1
    assert count == len(planned)


def _sent(callback: Callback) -> tuple[str, str, int] | None:
    """The topic, type and bytes of the message that the callback sends at its end."""
    sent = callback.sends
    if sent is None:
        return None
    name = sent.topic if isinstance(sent, Publication) else sent.service
    return name, sent.type, callback.sent_bytes


def _of(message: Message) -> tuple[str, str, int]:
    one = message.publication
    return one.topic, one.type, one.payload_bytes


def robot(name: str) -> str:
    return (ROOT / f"examples/systems/{name}.toml").read_text(encoding="utf-8")


def test_what_the_user_gives_counts_its_messages() -> None:
    text = robot("rover_udp")
    system = parse(text.replace('name = "drive"\n', 'name = "drive"\ncommand = "node"\n'))
    taken = {
        callback.name: callback.takes
        for chain in plan_of(system, system.executor("rover"), 3)
        for callback in chain.callbacks
    }
    assert taken["encoders"] is None
    assert taken["motors"] is not None and taken["motors"].sample.number == COUNTED


def test_types_that_are_not_installed_are_played_by_others_of_their_size() -> None:
    """A type is replaced only if no program of the user reads its messages. Otherwise the description must say how each
    message is made that cannot be."""
    system = load(ROOT / "examples/systems/robots/fishbot.toml")
    found, names = with_stand_ins(system)
    assert names == ["fishbot_interfaces/srv/FishBotConfig"] and not list(unplayable(found))
    for before, after in zip(system.chains, found.chains, strict=True):
        for one, other in zip(before.callbacks, after.callbacks, strict=True):
            assert (one.sent_bytes, one.name) == (other.sent_bytes, other.name)
    refused = list(unplayable(system))
    assert [(one.path[-1], one.path[0]) for one in refused] == [("requests", "chains"), ("replies", "chains")]
    assert all("fishbot_interfaces" in one.what and one.remedy for one in refused)
    text = (ROOT / "examples/systems/robots/fishbot.toml").read_text(encoding="utf-8")
    given = parse(text.replace('name = "teleop"\n', 'name = "teleop"\ncommand = "node"\n'))
    assert with_stand_ins(given) == (given, [])


def test_each_event_of_a_burst_is_told_apart_by_its_message() -> None:
    """A Bool has only one bit for the number of its instance, so one of three simultaneous events would seem to have no
    answer."""
    stop = {"publishes": {"topic": "stop", "type": "std_msgs/msg/Bool", "payload_bytes": 1}, "kind": "event"}
    text = d.described(d.board("m"), d.line("l"), d.host("h"), d.chain("stop", 1, ("m", 1, stop), ("h", 1), burst=3))
    system, names = with_stand_ins(parse(text))
    (plan,) = plan_of(system, system.executor("h"), 5)
    taken = plan.callbacks[0].takes
    assert taken is not None and names == []
    assert len({taken.sample.number.instance(bytes([one]), 8) for one in (6, 7, 8)}) == 3


def test_what_is_beyond_a_board_that_is_played_is_refused_with_its_line(tmp_path: Path) -> None:
    file, rover = tmp_path / "system.toml", robot("rover_udp")
    large = rover.replace('executor = "vision"\nexecution_ms = 20', 'executor = "mast"\nexecution_ms = 20')
    large = large.replace('reliability = "best_effort"', 'reliability = "reliable"')
    wide = rover.replace('kind = "udp"', 'kind = "udp"\nmtu_bytes = 9000')
    cut = rover.replace('kind = "udp"', 'kind = "udp"\nquantum_bytes = 400')
    for name in (*EXAMPLES, *(ROOT / "examples/systems/robots").glob("*.toml")):
        assert not list(unplayable(with_stand_ins(load(name))[0])), name
    for text, word, says in (
        (large, "run", "board 'mast' has 300000 bytes in a message; one that is played has at most"),
        (wide, "run", "9000 bytes of MTU on link 'wifi'"),
        (cut, "run", "leave quantum_bytes out"),
        (cut, "simulate", "leave quantum_bytes out"),
    ):
        file.write_text(text, encoding="utf-8")
        status, told = tide(word, file)
        assert status == 2 and re.search(rf"{file}:\d+: .*{says}", told), told


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "rover"\nwhere', 'name = "rover"\ncommand = "a"\nimage = "b"\nwhere', "'rover' has command and image"),
        ('name = "rover"\nwhere', 'name = "rover"\nimage = "b"\nwhere', "board 'rover' is an image on a network"),
        ('name = "rover"\nwhere', 'name = "rover"\nattach = "1"\nwhere', 'write attach = "8888"'),
        ('name = "drive"\n', 'name = "drive"\nattach = "/dev/x"\n', "on the host, which has no attach"),
        ('name = "drive"\n', 'name = "drive"\ncommand = ""\n', "'command' is ''"),
    ],
)
def test_programs_that_do_not_fit_are_refused(old: str, new: str, says: str) -> None:
    text = robot("rover_udp")
    assert old in text
    with pytest.raises(SystemFileError, match=says):
        parse(text.replace(old, new, 1))


def test_executors_are_compared_only_where_all_are_played(tmp_path: Path) -> None:
    text = (ROOT / "examples/three_chains/system.toml").read_text(encoding="utf-8")
    file = tmp_path / "system.toml"
    file.write_text(text.replace('where = "host"', 'where = "host"\ncommand = "true"'), encoding="utf-8")
    status, told = tide("run", file, "--executor", "tide", "--out", tmp_path / "out")
    assert status == 2 and "is a program of yours; executors are compared where all are played" in told
    host = ROOT / "examples/systems/host_pipeline.toml"
    status, told = tide("run", host, "--executor", "all", "--out", tmp_path / "out")
    assert status == 2 and "no chain touches a board, whose executor a comparison replaces" in told


# ---- observations ----


def played(system: System, periods: int, source: random.Random) -> tuple[Recorded, dict[str, list[int]]]:
    """A run of which some instances do not reach their end. Returns its records, and the latencies of the other
    instances."""
    recorded = Recorded(1000 * MS)
    wanted: dict[str, list[int]] = {}
    for chain in system.chains:
        wanted[chain.name] = []
        named = () if chain.branches_from is None else (chain.branches_from, *chain.joins)
        for index in range(instances_of(system, chain, periods)):
            at_ns = release_ns = recorded.start_ns + timing_of(system.timer_of(chain)).release_ns(index)
            ends = source.choice([0, 1, 9, 9, 9])
            before = [recorded.runs.get(one, {}).get(index) for one in named]
            if any(one is None for one in before):
                continue
            at_ns = max([at_ns, *(one[1] for one in before if one is not None)])
            if not named and ends == 0 and system.where(chain.callbacks[0]) == "mcu":
                recorded.skipped.add((chain.name, index))
            for callback in chain.callbacks[:ends]:
                start_ns = at_ns + source.randrange(MS)
                at_ns = start_ns + source.randrange(MS)
                recorded.runs.setdefault((chain.name, callback.name), {})[index] = (start_ns, at_ns, 7)
            if ends >= len(chain.callbacks) and index >= WARM_UP_INSTANCES:
                wanted[chain.name].append(at_ns - release_ns)
    return recorded, wanted


@settings(max_examples=30)
@given(st.sampled_from(EXAMPLES), st.randoms(use_true_random=False))
def test_instances_that_are_played_are_known_by_number(file: Path, source: random.Random) -> None:
    system = load(file)
    recorded, wanted = played(system, 4, source)
    for chain, seen in zip(system.chains, seen_of(system, recorded, 4), strict=True):
        assert seen.latencies_ns == wanted[chain.name]
        counted = instances_of(system, chain, 4) - WARM_UP_INSTANCES
        assert len(seen.latencies_ns) + seen.lost + seen.skipped == counted
        assert not seen.part and not seen.unseen
        longest = sum(leg.most_ns for leg in seen.legs if not leg.what.endswith("execution"))
        assert not wanted[chain.name] or longest <= max(wanted[chain.name]) * len(system.path(chain))
        for section in sections_seen(system, chain, recorded, counted_of(system, chain, 4)):
            assert section.samples >= len(seen.latencies_ns)


def given_rover(*names: str) -> System:
    text = robot("rover_udp")
    for name in names:
        text = text.replace(f'name = "{name}"\nwhere', f'name = "{name}"\ncommand = "x"\nwhere')
    return parse(text)


def ended(periods: int) -> Recorded:
    """A run of this many periods, each of 100 ms."""
    return Recorded(0, end_ns=periods * 100 * MS, seen_until_ns=periods * 100 * MS)


@given(st.lists(st.tuples(st.integers(0, 40 * MS), st.integers(0, 40 * MS)), min_size=4, max_size=50))
def test_messages_of_programs_are_matched_by_time(delays: list[tuple[int, int]]) -> None:
    """The latencies found are exact if each instance ends before the next one begins."""
    system = given_rover("rover", "drive")
    recorded = ended(len(delays) + 2)
    encoders = [100 * MS * (n + 1) + before for n, (before, _) in enumerate(delays)]
    recorded.topics = {
        "/encoders": encoders,
        "/cmd_vel": [at_ns + after for at_ns, (_, after) in zip(encoders, delays, strict=True)],
    }
    wheels, _, battery = seen_of(system, recorded, 3)
    assert wheels.part == "/encoders to /cmd_vel"
    assert wheels.latencies_ns == [after for _, after in delays][WARM_UP_INSTANCES:]
    assert [(rate.topic, rate.count) for rate in wheels.rates] == [
        ("/encoders", len(delays)),
        ("/cmd_vel", len(delays)),
    ]
    assert battery.unseen == "only /battery can be seen" and not battery.latencies_ns


def test_what_is_played_of_a_chain_bounds_its_way() -> None:
    """A chain of which parts are simulated is measured from the release of its timer to the end of its last
    callback."""
    system = given_rover("drive")
    recorded = ended(8)
    starts = [100 * MS * n for n in range(8)]
    recorded.runs["wheels", "encoders"] = {n: (at_ns + 1, at_ns + 2, 1) for n, at_ns in enumerate(starts)}
    recorded.runs["wheels", "motors"] = {n: (at_ns + 8, at_ns + 9, 1) for n, at_ns in enumerate(starts)}
    recorded.topics = {"/encoders": [at_ns + 3 for at_ns in starts], "/cmd_vel": [at_ns + 6 for at_ns in starts]}
    wheels = seen_of(system, recorded, 3)[0]
    assert wheels.part == "its release to the end of motors"
    assert wheels.latencies_ns == [9] * (8 - WARM_UP_INSTANCES)
    assert [leg.most_ns for leg in wheels.legs] == [3, 3, 3]
    assert (wheels.lost, wheels.skipped) == (0, 0)
    recorded.end_ns = recorded.seen_until_ns = 1000 * MS
    assert seen_of(system, recorded, 3)[0].skipped == 2, "a board that falls silent reports nothing"
    recorded.end_ns = recorded.seen_until_ns = 800 * MS
    recorded.topics["/cmd_vel"] = []
    silent = seen_of(system, recorded, 3)[0]
    assert (silent.latencies_ns, silent.lost, silent.unseen) == ([], 8 - WARM_UP_INSTANCES, "")


@given(st.lists(st.sampled_from(["answered", "unanswered", "skipped"]), min_size=8, max_size=24), st.integers(1, 9))
def test_an_answer_is_not_that_of_an_instance_before_one_that_was_lost(ends: list[str], step: int) -> None:
    """The board only counts answers, so after a lost one it assigns each answer to an earlier instance. The times must
    not be affected by this."""
    system = given_rover("drive")
    recorded = ended(len(ends))
    answered = [100 * MS * n for n, end in enumerate(ends) if end == "answered"]
    begun = [n for n, end in enumerate(ends) if end != "skipped"]
    recorded.skipped = {("wheels", n) for n, end in enumerate(ends) if end == "skipped"}
    recorded.unfinished = {("wheels", n) for n in begun[len(answered) :]}
    told = list(zip(begun, answered, strict=False))
    recorded.runs["wheels", "encoders"] = {n: (100 * MS * n + 1, 100 * MS * n + 2, 1) for n, _ in told}
    recorded.runs["wheels", "motors"] = {n: (at_ns + 3 * step - 1, at_ns + 3 * step, 1) for n, at_ns in told}
    recorded.topics = {
        "/encoders": [100 * MS * n + step for n in begun],
        "/cmd_vel": [at_ns + 2 * step for at_ns in answered],
    }
    wheels = seen_of(system, recorded, 3)[0]
    if not answered:
        assert not wheels.latencies_ns and wheels.lost == ends[WARM_UP_INSTANCES:].count("unanswered")
        return
    counted = ends[WARM_UP_INSTANCES:]
    assert wheels.latencies_ns == [3 * step] * counted.count("answered")
    assert (wheels.lost, wheels.skipped) == (counted.count("unanswered"), counted.count("skipped"))


class Told:
    """Stands for a child process that prints some lines on SIGTERM and ends."""

    name = "observer"

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.process = self

    def send_signal(self, number: int) -> None:
        assert number == signal.SIGTERM

    def next_line(self, patience: Patience) -> str | None:
        return self.lines.pop(0) if self.lines else None

    def ending(self) -> str:
        return "exit code 1"

    def tail(self) -> str:
        return "--- end of observer.log ---"


def test_what_an_observer_saw_is_not_nothing_when_it_failed_to_tell() -> None:
    run = Robot.__new__(Robot)
    run.players, run.hosts = {}, []
    seen = '{"topic": "/encoders", "times_ns": [7], "missed": [], "publishers": 1, "bytes": 4}'
    with pytest.raises(RunError, match=r"observer ended without telling what it saw \(exit code 1\)"):
        run._gather(0, cast(Child, Told(seen)))
    assert run._gather(0, cast(Child, Told(seen, '{"event": "told"}'))).topics == {"/encoders": [7]}
