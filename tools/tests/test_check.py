# SPDX-License-Identifier: Apache-2.0
"""tide check: verdicts, explanations and comparisons, and what it says about systems that it cannot check."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import descriptions as d
from commands import tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.premises import Origins, origins_of
from tide_tools.check.table import bounds_table
from tide_tools.system.load import load, parse

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tools/tests/data/systems/three_chains.toml"

HOST = d.described(
    d.host("first", lanes=2),
    d.host("second"),
    d.chain("plan", 2, ("first", 5, {"name": "see"}), ("second", 7, {"name": "decide"}), deadline_ms=90),
    d.chain("show", 1, ("first", 4, {"name": "draw"}), period_ms=50),
    name="host_only",
)


run = partial(tide, "check")


def checked(*words: str | Path) -> dict[str, Any]:
    status, output = run(*words, "--json")
    assert status in (0, 1), output
    data: dict[str, Any] = json.loads(output)
    assert data["met"] == (status == 0)
    return data


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example, but with fixed execution times, without escaped bytes, and with best-effort messages, so that its
    bounds are tight."""
    text = EXAMPLE.read_text(encoding="utf-8")
    text = text.replace("ms = 10\n", "ms = 10.5\n").replace('"reliable"', '"best_effort"')
    text = text.replace(
        "agent_ms = 2\nreturn_ms = 1\nescaped_bytes = 4\nexact_sizes = true", "escaped_bytes = 0\nagent_ms = 1"
    )
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    return file


def edited(file: Path, old: str, new: str) -> Path:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


def test_every_deadline_is_met(example: Path) -> None:
    data = checked(example)
    assert data["met"]
    assert [chain["name"] for chain in data["chains"]] == ["brake", "steer", "battery"]
    brake = data["chains"][0]
    # The chain's own callbacks and frames and the agent; then a less urgent callback before each of its two callbacks,
    # and a less urgent answer. The node's callback takes no time, which counts as a nanosecond.
    own_ns = 2 * 10_500_000 + 1 + 10_329_862 + 2_517_362 + 1_000_000
    assert brake["bound_ns"] == own_ns + 2 * 10_500_000 + 2_517_362
    assert brake["slack_ns"] == brake["deadline_ns"] - brake["bound_ns"]
    status, output = run(example)
    assert status == 0
    assert "every deadline is guaranteed" in output
    assert "lost frames" in output and "no frame is lost" in run(example, "--details")[1]


def test_a_missed_deadline_is_status_1(example: Path) -> None:
    status, output = run(edited(example, "deadline_ms = 60", "deadline_ms = 55"))
    assert status == 1
    assert "no guarantee for: brake" in output


def test_parts_add_up(example: Path) -> None:
    for word in ("tide", "lanes", "batch", "batch_blocking"):
        for chain in checked(example, "--executor", word)["chains"]:
            if chain["bound_ns"] is not None:
                assert sum(part["value_ns"] for part in chain["parts"]) == chain["bound_ns"], (word, chain["name"])


def test_explain_names_what_the_time_is_made_of(example: Path, tmp_path: Path) -> None:
    picture = tmp_path / "every.svg"
    status, output = run(example, "--explain", "steer", "--plot", picture)
    assert status == 0
    for words in (
        "its own callbacks",
        "callbacks of brake",
        "a less urgent callback that has begun",
        "Holds as long as",
    ):
        assert words in output
    assert picture.read_text(encoding="utf-8").startswith("<svg ")
    drawn = tmp_path / "parts.svg"
    for words, expected in ((("--explain", "steer"), True), ((), False)):
        assert run(example, *words, "--plot", drawn)[0] == 0
        # the waiting is a part of a bar
        assert ("callbacks of brake: " in drawn.read_text(encoding="utf-8")) == expected
    only = checked(example, "--explain", "steer")
    assert [chain["name"] for chain in only["chains"]] == ["steer"]
    assert only["chains"][0]["depends_on"] == ["brake", "battery"]


def test_compare_shows_what_is_gained(example: Path) -> None:
    data = checked(example, "--compare")
    bounds = {one["executor"]: one["chains"][0]["bound_ns"] for one in data["compared"]}
    assert list(bounds) == ["tide", "lanes", "batch", "batch_stock", "batch_blocking"]
    assert bounds["tide"] < bounds["batch"] < bounds["batch_blocking"]
    status, output = run(example, "--compare")
    assert status == 0
    assert "bounds in ms by executor" in output


def test_executors_without_an_analysis_do_not_hide_the_others() -> None:
    file = ROOT / "examples/systems/robots/linorobot2.toml"  # this board pings the agent in its loop
    data = checked(file, "--compare")
    assert [one["executor"] for one in data["compared"]] == ["tide", "lanes", "batch"]
    assert list(data["refused"]) == ["batch_stock", "batch_blocking"]
    status, output = run(file, "--compare")
    assert status == 0 and "bounds in ms by executor" in output
    assert output.count("batch_stock, batch_blocking cannot be compared: ") == 1
    assert "there is no bound there for chains that branch: imu, odom; use tide, or batch (and 1 more reason)" in output


def test_parts_that_only_order_messages_are_not_shown() -> None:
    """In the analysis, each message of a callback is a chain of its own, in which the callback takes a nanosecond."""
    file = ROOT / "examples/systems/robots/px4_offboard.toml"
    _, output = run(file, "--explain", "vehicle_odometry")
    assert "frames of vehicle_attitude" in output and " 0.000 " not in output


def test_losses_and_heartbeats_cost(example: Path) -> None:
    text = example.read_text(encoding="utf-8").replace('"best_effort"', '"reliable"')
    text = text.replace("period_ms = 500", "period_ms = 20_000")
    text = text.replace(
        'kind = "serial"', 'kind = "serial"\nheartbeat_delay_ms = 20'
    )  # a measured round trip may be up to 2 s
    example.write_text(text, encoding="utf-8")

    def brake(*words: str) -> int:
        value = checked(example, *words)["chains"][0]["bound_ns"]
        assert isinstance(value, int)
        return value

    bounds = [brake(), brake("--losses", "1"), brake("--losses", "2")]
    example.write_text(text.replace('kind = "serial"', 'kind = "serial"\nagent_heartbeat_ms = 0'), encoding="utf-8")
    bounds.insert(1, brake())  # it sends a HEARTBEAT for every answer
    assert bounds == sorted(set(bounds))


def test_why_there_is_no_bound_is_one_line(example: Path) -> None:
    text = example.read_text(encoding="utf-8")

    def told(changed: str, chain: str, *words: str) -> str:
        example.write_text(changed, encoding="utf-8")
        status, output = run(example, *words)
        assert status == 1
        start = f"{chain} has no bound: "
        found = next(line.removeprefix(start) for line in output.splitlines() if line.startswith(start))
        assert re.match(rf"{re.escape(str(example))}:\d+: ", found)
        return found.split(": ", 1)[1]

    slow = text.replace("baud = 115_200", "baud = 6400")
    ask = "it and the more urgent chains ask for "
    assert told(slow, "battery").startswith(ask)
    assert "of the line to the agent at 6400 baud; raise 'baud' or send less" in told(slow, "battery")
    busy = text.replace('where = "mcu"', 'where = "mcu"\nsubmit_ms = 200\nprocess_ms = 300')
    assert told(busy, "brake") == "it asks for 104.2 % of the microcontroller"
    reliable = text.replace('"best_effort"', '"reliable"')
    repair = told(reliable, "brake", "--losses", "1")
    assert "the repair of lost frames may take" in repair
    assert "a measured HEARTBEAT delay may be 2 s: give 'heartbeat_delay_ms'" in repair


def words_of(example: Path) -> str:
    return " ".join(run(example, "--details")[1].split())


def test_what_the_description_does_not_give_is_named(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert "submit_ms and process_ms of executor 'client' are 0 ms: the description gives none" in words_of(example)
    example.write_text(text.replace("\nagent_ms = 1", ""), encoding="utf-8")
    assert "agent_ms and return_ms of link 'uart' are 0 ms: the description gives none" in words_of(example)


def test_host_systems_use_the_published_shape_in_its_safe_form(tmp_path: Path) -> None:
    file = tmp_path / "host.toml"
    file.write_text(HOST, encoding="utf-8")
    data = checked(file)
    assert data["executor"] == "default"
    assert data["met"]
    assert {part["executor"] for part in data["chains"][0]["parts"]} == {"first", "second"}
    for chain in data["chains"]:
        assert sum(part["value_ns"] for part in chain["parts"]) == chain["bound_ns"]
    status, output = run(file, "--explain", "plan")
    assert status == 0 and "its last callback, on second" in output
    compared = checked(file, "--compare")["compared"]
    assert [one["executor"] for one in compared] == ["default", "priority", "rclcpp", "events", "any_order"]
    assert run(file, "--executor", "tide")[0] == 2


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('kind = "serial"\nbaud = 115_200\nmtu_bytes = 512\nescaped_bytes = 0\nagent_ms = 1', 'kind = "udp"', "is UDP"),
        (
            "[[links]]",
            '[[executors]]\nname = "more"\nwhere = "mcu"\n\n[[links]]',
            "'client' and 'more' are two microcontrollers",
        ),
        ("least_ms = 10.5", "least_ms = 11", "shortest run of 'sample' is longer"),
        ("period_ms = 500", "period_ms = 0", "'period_ms' is 0"),
        ("payload_bytes = 100", "payload_bytes = 600", "best effort knows no fragments"),
    ],
)
def test_what_cannot_be_checked_is_one_line_with_its_place(example: Path, old: str, new: str, what: str) -> None:
    status, output = run(edited(example, old, new))
    assert status == 2
    lines = output.strip().splitlines()
    assert len(lines) == 1, output
    assert lines[0].startswith(str(example))
    assert what in lines[0]
    assert re.match(rf"{re.escape(str(example))}:\d+: ", lines[0])


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--explain", "brakes"), "there is no chain 'brakes'"),
        (("--executor", "priority"), "does not fit this system"),
        (("--plot", "parts.nonsense"), "cannot be written"),
    ],
)
def test_wrong_options_are_status_2(example: Path, words: tuple[str, str], what: str) -> None:
    status, output = run(example, *words)
    assert status == 2
    assert what in output
    assert len(output.strip().splitlines()) == 1


def test_times_of_0_are_counted_and_nothing_is_green_that_was_not_measured(example: Path) -> None:
    example.write_text(re.sub(r"(execution|least)_ms = [\d.]+", r"\1_ms = 0", example.read_text(encoding="utf-8")))
    status, output = run(example)
    assert status == 0 and "are estimates, and 9 execution times are 0" in output
    bounds = bounds_of(load(example))
    for numbers, colours in ((origins_of(load(example)), {"yellow"}), (Origins(7, 7, 0, 0, 10, (0, 0)), {"green"})):
        cells = map(str, bounds_table(bounds, numbers=numbers).columns[-1].cells)
        assert {re.sub(r"\[(\w+)\].*", r"\1", one) for one in cells} == colours
    status, output = run(example, "--require-measured")
    assert status == 1 and output.startswith("no guarantee: not all times were measured; each bound is within")


def test_missing_file(tmp_path: Path) -> None:
    status, output = run(tmp_path / "absent.toml")
    assert status == 2
    assert "cannot be read" in output


# ---- numbers that the firmware also contains ----

FIRMWARE = """
#include "system.h" /* tide_chain_init("old", 1, 2, 3) in a comment is none */
#define BRAKE_LEVEL 3
enum { PERIOD_MS = 500, };
static void chains(void) {
  tide_chain_init(&brake, "brake", BRAKE_LEVEL, RCL_MS_TO_NS(PERIOD_MS), RCL_MS_TO_NS(60));
  if (tide_chain_init(&steer, "steer", CHAIN_STEER_LEVEL, CHAIN_STEER_PERIOD_NS, CHAIN_STEER_DEADLINE_NS) != 0) stop();
  tide_chain_init(&battery, "battery", 1u, 500000000LL, RCL_US_TO_NS(500000));
}
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", ""),
        ("RCL_MS_TO_NS(60)", "RCL_MS_TO_NS(50)", ":6: chain 'brake': its deadline is 50 ms, the description has 60 ms"),
        ("500000000LL", "400000000LL", ":8: chain 'battery': its period is 400 ms, the description has 500 ms"),
        ("BRAKE_LEVEL 3", "BRAKE_LEVEL 2", ":6: chain 'brake': its level is 2, the description has 3"),
        ("CHAIN_STEER_LEVEL", "CHAIN_BRAKE_LEVEL", ":7: chain 'steer': its level 'CHAIN_BRAKE_LEVEL' cannot be read"),
        ("PERIOD_MS)", "period())", ":6: chain 'brake': its period 'RCL_MS_TO_NS(period())' cannot be read here"),
        ('"battery"', '"lamp"', "main.c: chain 'battery' is not declared"),
        ('"battery"', "name", ":8: the name of this chain is no string"),
        ("tide_chain_init", "init", "main.c: no tide_chain_init"),
    ],
)
def test_chains_of_a_firmware_are_those_of_the_description(
    example: Path, tmp_path: Path, old: str, new: str, says: str
) -> None:
    source = tmp_path / "main.c"
    source.write_text(FIRMWARE.replace(old, new) if old else FIRMWARE, encoding="utf-8")
    status, output = run(example, "--firmware", source)
    assert status == (1 if says else 0) and says in output, output
    assert ("main.c" in output) == bool(says)
    answer = "no guarantee: the firmware is not as described; " if says else "every deadline is guaranteed, if "
    assert output.startswith(answer), "the first line says what the status says"


def test_a_firmware_that_cannot_be_read_is_one_line(example: Path, tmp_path: Path) -> None:
    status, output = run(example, "--firmware", tmp_path / "none.c")
    assert status == 2 and output.splitlines()[-1].startswith(f"--firmware {tmp_path}/none.c: cannot be read: ")
    (tmp_path / "board.elf").write_bytes(b"\x7fELF\x01\x01")
    status, output = run(example, "--firmware", tmp_path / "board.elf")
    assert status == 2 and "is a compiled program without readable numbers; give the C source" in output


def busy(priority: int) -> str:
    """A description in which a fast chain keeps the board and the line busy, and another chain calls a service once a
    second."""
    told = {"service": "arm", "type": "std_srvs/srv/SetBool", "payload_bytes": 20}
    publishes = [{"topic": f"t{size}", "payload_bytes": size} for size in (320, 81, 80)]
    load = {"name": "loop", "execution_ms": 0.8, "period_ms": 2.5}
    return d.described(
        d.board("m", submit_ms=0.03, loads=[load]),
        d.host("h"),
        d.line("l", baud=2_000_000, escaped_bytes=30, agent_ms=2, return_ms=2),
        d.chain("imu", 9, ("m", 0.2, {"publishes": publishes}), ("h", 0.1, {"topic": "t320"}), period_ms=5),
        d.chain(
            "arm",
            priority,
            ("h", 0.1, {"requests": told, "publishes": None}),
            ("m", 1, {"kind": "service", "replies": told, "publishes": None}),
            ("h", 0.1, {"kind": "client"}),
            period_ms=1000,
            reliability="reliable",
        ),
    )


def test_a_chain_that_is_never_acknowledged_in_time_needs_a_higher_priority(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(busy(3), encoding="utf-8")
    status, told = tide("check", file)
    assert status == 1 and "arm has no bound: " in told
    assert "so busy that nothing bounds when its messages are acknowledged: it and the more urgent chains" in told
    assert "; raise 'baud' or send less, or raise its priority" in told and "the largest part" not in told
    assert all(one.bound_ns for one in bounds_of(parse(busy(20))).chains), "the advice helps"


def test_a_bound_that_does_not_settle_names_the_load(tmp_path: Path) -> None:
    """Two sensors leave 6 % of the line. Nevertheless, in the simulator no message of the third chain waits for as long
    as its period."""
    values = [{"topic": f"remote{n}", "type": "std_msgs/msg/Bool", "payload_bytes": 1} for n in range(5)]
    system = d.described(
        d.board("m", submit_ms=0.05, process_ms=0.05),
        d.host("h"),
        d.line("l", baud=1_000_000, escaped_bytes=24, agent_ms=1, return_ms=1),
        d.chain("imu", 9, ("m", 0.6, {"publishes": {"topic": "imu", "payload_bytes": 324}}), ("h", 0.4), period_ms=5),
        d.chain("wheels", 8, ("m", 0.2, {"publishes": {"topic": "w", "payload_bytes": 360}}), ("h", 0.4), period_ms=20),
        d.chain("remote", 1, ("m", 0.1, {"publishes": values}), ("h", 0.2, {"topic": "remote0"}), period_ms=50),
    )
    file = tmp_path / "system.toml"
    file.write_text(system, encoding="utf-8")
    status, told = tide("check", file)
    assert status == 1 and "remote has no bound: " in told
    asked = re.search(
        r"did not settle: it and the more urgent chains ask for (9\d\.\d) % of the line to the agent", told
    )
    assert asked and told.count("; raise 'baud' or send less") == 1


@pytest.mark.parametrize(
    ("link", "payload", "answer"),
    [
        (
            {"baud": 50_000},
            300,
            "of the line to the agent at 50000 baud if every .*; give 'escaped_bytes', raise 'baud' or send less",
        ),
        (
            {"kind": "usb_cdc", "bytes_per_s": 5000},
            300,
            "of the line to the agent at 5000 bytes/s if every .*; give 'escaped_bytes' or send less",
        ),
        ({"kind": "usb_cdc", "bytes_per_s": 3100, "escaped_bytes": 0}, 300, "at 3100 bytes/s; send less"),
        (
            {"kind": "usb_cdc", "bytes_per_s": 2000},
            300,
            "of its 2000 bytes/s to the host, payload alone; shorten payload_bytes or lengthen periods",
        ),
        ({"kind": "usb_cdc", "bytes_per_s": 1000, "mtu_bytes": 4096}, 3000, "for 4000 ms; lower mtu_bytes or agent_ms"),
        (
            {"kind": "rtps", "mbit_per_s": 1, "more_readers": 40, "to_host_ms": 1, "to_board_ms": 1},
            300,
            "of the interface to the nodes at 1 Mbit/s; raise 'mbit_per_s' or send less",
        ),
    ],
)
def test_an_overload_is_reported_in_the_words_of_its_link(
    tmp_path: Path, link: dict[str, Any], payload: int, answer: str
) -> None:
    """The advice names only keys that the link has."""
    period_ms = 100 if payload < 1000 else 30_000
    if link.get("kind") != "rtps":
        link = {"agent_ms": 1, "return_ms": 1} | link
    if "baud" not in link:
        link["baud"] = None
    chain = d.chain("c", 1, ("m", 1), ("h", 1), payload=payload, period_ms=period_ms, reliability="reliable")
    file = tmp_path / "system.toml"
    file.write_text(d.described(d.board("m"), d.host("h"), d.line("l", **link), chain), encoding="utf-8")
    status, told = tide("check", file)
    assert status in (1, 2) and re.search(answer + "$", told, re.MULTILINE), told


def test_a_board_whose_publishing_waits_is_advised_another_executor(tmp_path: Path) -> None:
    """A longer period of one chain does not help, as the periods of the others count, too."""

    def stock(policy: str, period_ms: int) -> str:
        ups = [
            d.chain(f"c{n}", n, ("b", 1), ("h", 1), payload=200, period_ms=30 + 5 * n, reliability="reliable")
            for n in (1, 2, 3)
        ]
        down = d.chain("cmd", 9, ("h", 1), ("b", 1), payload=48, period_ms=period_ms, reliability="reliable")
        line = d.line("l", agent_ms=3, return_ms=3, escaped_bytes=12)
        return d.described(d.board("b", policy=policy), d.host("h"), line, *ups, down)

    file = tmp_path / "system.toml"
    file.write_text(stock("batch_stock", 30), encoding="utf-8")
    status, told = tide("check", file)
    assert status == 1 and "cmd has no bound: " in told
    assert '; use policy = "tide" or "batch", or lengthen the periods of all chains of the board' in told
    assert not bounds_of(parse(stock("batch_stock", 200))).chain("cmd").bound_ns, "a longer period alone does not help"
    for policy in ("tide", "batch"):
        assert all(one.bound_ns for one in bounds_of(parse(stock(policy, 30))).chains), "the advice helps"


SERVED = {"service": "s", "type": "std_srvs/srv/SetBool", "payload_bytes": 9}


@pytest.mark.parametrize(
    ("chain", "answer"),
    [
        (
            d.chain("c", 1, ("h", 1), ("g", 9), period_ms=50, deadline_ms=55, deadline_from="event"),
            "executes for longer than its deadline of 55 ms, of which its period leaves 5 ms to an event; lengthen",
        ),
        (d.chain("c", 1, ("h", 1), ("g", 9), deadline_ms=5), "executes for longer than its deadline of 5 ms; lengthen"),
        (
            d.chain("c", 1, ("h", 1, {"kind": "service", "replies": SERVED}), reliability="reliable"),
            "begins with the service 'b0', so nothing starts it",
        ),
    ],
)
def test_a_refusal_has_the_numbers_of_the_file_and_names_a_cause_once(tmp_path: Path, chain: str, answer: str) -> None:
    file = tmp_path / "system.toml"
    file.write_text(d.described(d.host("h"), d.host("g"), chain), encoding="utf-8")
    status, told = tide("check", file)
    assert status == 2 and answer in told and len(told.splitlines()) == 1, told


def test_hold_counts_for_less_urgent_chains_only() -> None:
    """While a reliable message of a chain with `hold` waits for its acknowledgment, frames of less urgent chains do not
    start; frames of other chains do."""

    def bounds(*holding: str) -> dict[str, int | None]:
        def reporting(name: str, priority: int, execution_ms: float, **more: Any) -> str:
            sent = {"publishes": {"topic": name, "payload_bytes": 8}}
            fields = {"reliability": "reliable", "period_ms": 100, **more}
            return d.chain(name, priority, ("m", execution_ms, sent), ("h", 0.1), hold=name in holding, **fields)

        system = d.described(
            d.board("m", lanes=3, submit_ms=0.02),
            d.host("h"),
            d.line("l", baud=2_000_000, escaped_bytes=24, agent_ms=0.5, return_ms=0.5),
            reporting("stop", 9, 0.02),
            reporting("imu", 8, 0.4, period_ms=2.5, reliability="best_effort"),
            reporting("battery", 1, 3),
        )
        return {one.name: one.bound_ns for one in bounds_of(parse(system)).chains}

    free, held = bounds(), bounds("stop")
    assert bounds("imu") == free  # a best-effort message waits for no acknowledgment
    assert {**bounds("battery"), "battery": free["battery"]} == free
    for name in ("imu", "battery"):
        assert (held[name] or 0) > (free[name] or 0) > 0
