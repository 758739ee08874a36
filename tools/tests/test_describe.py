# SPDX-License-Identifier: Apache-2.0
"""tide trace describe: systems derived from traces of ROS 2. The trace is the text that babeltrace2 2.0.4 prints for a
CTF trace, which babeltrace2's own writer has made."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.errors import UsageError
from tide_tools.system.load import load
from tide_tools.system.load import parse as parse_system
from tide_tools.system.model import System
from tide_tools.trace.describe import described as description
from tide_tools.trace.describe import parse

DATA = Path(__file__).parent / "data/describe"
TRACE = DATA / "ros2_trace.txt"


run = partial(tide, "trace", "describe")


def described(folder: Path, *words: str | Path) -> System:
    file = folder / "seen.toml"
    status, output = run(*words, "--out", file)
    assert status == 0, output
    return load(file)


def test_a_trace_becomes_chains(tmp_path: Path) -> None:
    system = described(tmp_path, TRACE, "--margin", "0")
    assert [(one.name, one.lanes) for one in system.executors] == [("sensors", 1), ("drive", 2)]
    names = {chain.name: [one.name for one in chain.callbacks] for chain in system.chains}
    assert names == {
        "camera_timer": ["camera_timer", "planner_image", "motor_cmd_vel"],  # the pointers of both processes are equal
        "logger_image": ["logger_image"],
        "logger_timer": ["logger_timer"],
    }
    camera, logger, own = (system.chain(name) for name in names)
    assert [one.name for one in system.path(logger)] == ["camera_timer", "logger_image"]
    assert (camera.period_ns, own.period_ns) == (50_000_000, 200_000_000)
    assert camera.priority > logger.priority > own.priority
    timer, planner, motor = camera.callbacks
    assert (timer.least_ns, timer.execution_ns) == (4_000_000, 4_500_000)
    assert (planner.least_ns, planner.execution_ns) == (6_000_000, 6_500_000)
    assert [one.topic for one in timer.publishes] == ["image"]
    assert not motor.publishes
    assert bounds_of(system).met


def test_the_margin_is_added_to_what_was_seen(tmp_path: Path) -> None:
    system = described(tmp_path, TRACE, "--margin", "50", "--name", "robot")
    assert system.name == "robot"
    timer = system.chain("camera_timer").callbacks[0]
    assert (timer.least_ns, timer.execution_ns) == (4_000_000, 6_750_000)


def test_each_number_has_its_source_and_guesses_guarantee_nothing(tmp_path: Path) -> None:
    system = described(tmp_path, TRACE)
    assert {chain.source for chain in system.chains} == {"guessed"}, "no trace knows a deadline"
    assert system.chain("camera_timer").callbacks[0].source.startswith("measured 6 times on ")
    text = (tmp_path / "seen.toml").read_text(encoding="utf-8")
    for mark in (
        "period_ms = 50 # stated",
        "deadline_ms = 50 # guessed",
        "payload_bytes = 1 } # guessed",
        "lanes = 2 # ",
    ):
        assert mark in text
    status, output = tide("check", tmp_path / "seen.toml")
    assert status == 1 and output.startswith("no guarantee yet: with the guesses of tide trace describe")


def test_times_of_day_pass_midnight() -> None:
    lines = [
        "[23:59:59.999999000] (+?.?????????) robot ros2:callback_start: { vpid = 1, vtid = 2 }, { callback = 0x1F }",
        "[00:00:00.000001000] (+0.000002000) robot ros2:callback_end: { vpid = 1, vtid = 2 }, { callback = 0x1F }",
        "something else",
    ]
    start, end = parse(lines)
    assert end.time_ns - start.time_ns == 2000
    assert start.fields == {"vpid": 1, "vtid": 2, "callback": 31}


def event(time_us: int, name: str, fields: str) -> str:
    return f'[{time_us / 1e6:.6f}] (+0.0) host ros2:{name}: {{ vpid = 7, vtid = 7, procname = "a b" }}, {{ {fields} }}'


LOOP = [
    event(1, "rcl_node_init", 'node_handle = 1, node_name = "n", namespace = "/left/arm"'),
    event(2, "rcl_publisher_init", 'publisher_handle = 2, node_handle = 1, topic_name = "/t"'),
    event(3, "rcl_timer_init", "timer_handle = 3, period = 1000000"),
    event(4, "rclcpp_timer_callback_added", "timer_handle = 3, callback = 4"),
    event(5, "rclcpp_timer_link_node", "timer_handle = 3, node_handle = 1"),
    event(6, "rcl_subscription_init", 'subscription_handle = 5, node_handle = 1, topic_name = "/t"'),
    event(7, "rclcpp_subscription_init", "subscription_handle = 5, subscription = 6"),
    event(8, "rclcpp_subscription_callback_added", "subscription = 6, callback = 7"),
    event(10, "callback_start", "callback = 4"),
    event(11, "rcl_publish", "publisher_handle = 2"),
    event(12, "callback_end", "callback = 4"),
    event(13, "callback_end", "callback = 4"),  # its start is not in the trace
    event(20, "callback_start", "callback = 7"),
    event(21, "rcl_publish", "publisher_handle = 2"),
    event(22, "callback_end", "callback = 7"),
    event(30, "callback_start", "callback = 99"),  # created before the trace began
    event(31, "callback_end", "callback = 99"),
]


def read(lines: list[str]) -> tuple[System, list[str]]:
    """The description and its notes."""
    text = description(parse(lines), "seen", 0)
    return parse_system(text), [line for line in text.splitlines() if line.startswith("# ")][2:]


def test_a_loop_is_cut_and_said_so() -> None:
    system, notes = read(LOOP)
    (chain,) = system.chains
    assert [(one.name, one.execution_ns) for one in chain.callbacks] == [
        ("left_arm_n_timer", 2000),
        ("left_arm_n_t", 2000),
    ]
    assert notes == ["# left_arm_n_t triggers itself again: the chain is cut there."]
    assert system.executors[0].name == "a_b"


def test_services_are_named_as_what_is_missing() -> None:
    services = [
        event(7, "rcl_service_init", f'service_handle = {number}, node_handle = 1, service_name = "{name}"')
        for number, name in ((8, "/arm/close"), (9, "/left/arm/n/get_parameters"))
    ]
    _, notes = read([*services, *LOOP])
    assert notes[0].startswith("# /arm/close is a service that no chain here requests")
    assert not any("get_parameters" in note for note in notes)


ASKING = [
    event(1, "rcl_node_init", 'node_handle = 1, node_name = "arm", namespace = "/"'),
    event(2, "rcl_timer_init", "timer_handle = 3, period = 1000000"),
    event(2, "rclcpp_timer_callback_added", "timer_handle = 3, callback = 4"),
    event(3, "rclcpp_timer_link_node", "timer_handle = 3, node_handle = 1"),
    event(3, "rcl_client_init", 'client_handle = 8, node_handle = 1, rmw_client_handle = 9, service_name = "/grip"'),
    event(4, "rcl_publisher_init", 'publisher_handle = 2, node_handle = 1, topic_name = "/held"'),
    event(
        4, "rcl_service_init", 'service_handle = 10, node_handle = 1, rmw_service_handle = 11, service_name = "/grip"'
    ),
    event(5, "rclcpp_service_callback_added", "service_handle = 10, callback = 12"),
    event(6, "rcl_subscription_init", 'subscription_handle = 5, node_handle = 1, topic_name = "/held"'),
    event(7, "rclcpp_subscription_init", "subscription_handle = 5, subscription = 6"),
    event(8, "rclcpp_subscription_callback_added", "subscription = 6, callback = 7"),
    event(10, "callback_start", "callback = 4"),
    event(11, "rmw_send_request", "rmw_client_handle = 9, request = 1, sequence_number = 1"),
    event(12, "callback_end", "callback = 4"),
    event(13, "callback_start", "callback = 12"),
    event(18, "callback_end", "callback = 12"),
    event(19, "rmw_take_response", "rmw_client_handle = 9, response = 1, sequence_number = 1, taken = 1"),
    event(20, "rcl_publish", "publisher_handle = 2"),
    event(22, "callback_start", "callback = 7"),
    event(23, "callback_end", "callback = 7"),
]


def test_a_request_and_its_reply_are_callbacks_of_their_chain() -> None:
    system, notes = read(ASKING)
    (chain,) = system.chains
    assert [(one.name, one.kind) for one in chain.callbacks] == [
        ("arm_timer", "timer"),
        ("arm_grip", "service"),
        ("arm_grip_reply", "client"),
        ("arm_held", "subscription"),
    ]
    asks, serves, takes, _ = chain.callbacks
    assert asks.requests is not None and serves.replies is not None
    assert (asks.requests.service, serves.replies.service, takes.publishes[0].topic) == ("grip", "grip", "held")
    assert (serves.execution_ns, takes.execution_ns, takes.source) == (5000, 50_000, "guessed")
    assert notes == []
    system, notes = read([line for line in ASKING if "rmw_take_response" not in line])
    assert [len(one.callbacks) for one in system.chains] == [1]
    assert "# arm_timer requests /grip, and no reply was seen: it is in no chain here." in notes


def test_a_trace_without_timers_says_what_to_record() -> None:
    with pytest.raises(UsageError, match="no timer's callback ran"):
        read(LOOP[:9])
    with pytest.raises(UsageError, match="record the context vpid and vtid"):
        read([LOOP[0].replace("vpid", "pid")])


@given(st.lists(st.sampled_from(LOOP), max_size=40), st.integers(0, 60))
def test_any_part_of_a_trace_is_read_or_refused(lines: list[str], cut: int) -> None:
    try:
        text = description(parse([line[: len(line) - cut] for line in lines]), "part", 0)
    except UsageError:
        return
    assert "[[chains]]" in text


def test_a_folder_is_read_by_babeltrace2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ctf"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    status, output = run(folder)
    assert (status, "babeltrace2 is not installed" in output) == (2, True)
    program = tmp_path / "babeltrace2"
    program.write_text(f'#!/bin/sh\n[ "$1" = --clock-seconds ] && {shutil.which("cat", path=os.defpath)} {TRACE}\n')
    program.chmod(0o755)
    status, output = run(folder)
    assert status == 0 and 'name = "planner_image"' in output
    program.write_text("#!/bin/sh\necho 'no such trace' >&2; exit 1\n")
    status, output = run(folder)
    assert (status, output.strip()) == (2, f"{folder}: babeltrace2 cannot read it: no such trace")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("absent.txt",), "cannot be read"),
        ((str(DATA / "ros2_trace.txt"), "--out", "/absent/out.toml"), "cannot be written"),
        ((str(Path(__file__)),), "no timer's callback ran"),
    ],
)
def test_what_cannot_be_described_is_one_line(words: tuple[str, ...], what: str) -> None:
    status, output = run(*words)
    assert status == 2
    assert what in output and len(output.strip().splitlines()) == 1
