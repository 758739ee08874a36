# SPDX-License-Identifier: Apache-2.0
"""Descriptions that once revealed a defect: a response exceeded its printed bound, a reason was wrong, or the
description could not be simulated. Each is checked and run in virtual time. The docstrings of the tests say what was
wrong then."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from test_pools import BATCH, bound_ms, chain, played, system

from bounded import MS
from commands import tide
from descriptions import board, described, entry, host, line
from descriptions import chain as hosted
from tide_tools.analysis.bounds import CLIENT_EXECUTORS, HOST_POLICIES, bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.simulate.described import simulate_description
from tide_tools.system.load import SystemFileError, parse
from tide_tools.system.model import System


def _fan(listeners: int, baud: int, period_ms: int) -> System:
    """A message of the type Imu that several nodes receive."""
    branches = (
        chain(f"log{n}", n + 1, period_ms, f"{'ijklno'[n]}", (), 'branches_from = "imu.b0"') for n in range(listeners)
    )
    return system(chain("imu", 90, period_ms, "mh", (312,)), *branches, baud=baud)


def _host(executors: int, chains: int, lanes: int, letters: int) -> System:
    every = [hosted(f"c{n}_{'x' * letters}", n + 1, (f"e{n % executors}", 0.1)) for n in range(chains)]
    return parse(described(*(host(f"e{n}", lanes=lanes) for n in range(executors)), *every))


def _services(count: int) -> list[str]:
    """Chains of nodes that call one service of a board, with requests of 8 frames each."""
    every = []
    for n in range(count):
        one = chain(f"c{n}", n + 1, 900, f"{'hijk'[n]}m{'hijk'[n]}", (4000, 20))
        asks = 'requests = { service = "plan", type = "nav_msgs/srv/GetPlan", payload_bytes = 4000 }'
        gives = 'replies = { service = "plan", type = "nav_msgs/srv/GetPlan", payload_bytes = 20 }'
        one = one.replace(f'publishes = {{ topic = "c{n}/t0", payload_bytes = 4000 }}', asks)
        one = one.replace(f'publishes = {{ topic = "c{n}/t1", payload_bytes = 20 }}', gives)
        one = one.replace('name = "b1"\nkind = "subscription"', 'name = "b1"\nkind = "service"')
        every.append(one.replace('name = "b2"\nkind = "subscription"', 'name = "b2"\nkind = "client"'))
    return every


def _udp(*chains: str, agent: float, back: float, policy: str | None = None) -> System:
    link = line("l", kind="udp", baud=None, agent_ms=agent, return_ms=back)
    hosts = sorted(set(re.findall(r'executor = "([a-z])"', "".join(chains))) - {"m"})
    return parse(described(board("m", policy=policy), *map(host, hosts), link, *chains))


def _stock_text(reliability: str = "best_effort") -> str:
    """Firmware with rclc's stock executor: a callback that publishes two topics, a command, and a ping."""
    topics = [{"topic": f"t/t{n}", "payload_bytes": 40} for n in (0, 1)]
    state = (("m", 0.2, {"publishes": topics}), ("h", 0.1, {"topic": "t/t0"}))
    return described(
        board("m", policy="batch_stock", submit_ms=0.01, process_ms=0.01),
        entry("executors.loads", name="ping", execution_ms=1, period_ms=1000, agent_bytes=24),
        *(host("h"), line("l", escaped_bytes=12, agent_ms=1, return_ms=1)),
        hosted("state", 3, *state, period_ms=50, reliability=reliability),
        hosted(
            "log", 2, ("h", 0.1, {"topic": "t/t1"}), period_ms=50, branches_from="state.b0", reliability=reliability
        ),
        hosted("cmd", 1, ("h", 0.1), ("m", 0.1), period_ms=60, reliability="reliable"),
    )


def _stock_best_effort() -> System:
    return parse(_stock_text())


def _cameras(period_ms: float) -> System:
    """A third callback joins two rectified pictures, on four lanes without groups."""
    topics = [{"topic": f"raw/{side}", "payload_bytes": 1000} for side in ("left", "right")]
    times = {"period_ms": period_ms, "deadline_ms": 100}
    sides = [("p", 8, {"topic": one["topic"], "publishes": {**one, "topic": f"{one['topic']}/rect"}}) for one in topics]
    last = ("p", 20), ("v", 10)
    return parse(
        described(
            *(host("d"), host("p", lanes=4), host("v")),
            hosted("left", 3, ("d", 5, {"publishes": topics}), sides[0], **times),
            hosted("right", 2, sides[1], branches_from="left.b0", **times),
            hosted("disp", 1, *last, branches_from="left.b1", joins=["right.b0"], **times),
        )
    )


def _best_effort(text: str) -> str:
    return text.replace('"reliable"', '"best_effort"')


def _stock(period_ms: int) -> System:
    """A board that publishes two messages every 20 ms in the usual way of rclc, and a command of a node."""
    out = chain("imu", 4, 20, "mh", (320,)), chain("odom", 3, 20, "mh", (720,))
    return system(*out, chain("cmd", 5, period_ms, "gm", (48,)), baud=12_000_000, board='policy = "batch_stock"')


FOUND = {
    "all of a batch over a network": lambda: _udp(*BATCH, agent=10, back=10, policy="batch"),
    "a message of 9000 bytes to a board": lambda: system(
        chain("a", 9, 20, "mh", (12,)), chain("u", 2, 800, "gm", (9000,)), mtu=4096
    ),
    "three large messages to a board before a frequent one to the host": lambda: system(
        chain("imu", 1, 200, "mh", (40,)),
        *(chain(f"u{n}", n + 2, 1000, f"{'ijk'[n]}m", (8100,)) for n in range(3)),
        mtu=4096,
    ),
    "an own subscription of a board": lambda: system(chain("imu", 3, 100, "mmh", (320, 720))),
    "an own subscription of a board instead of a second topic": lambda: system(
        chain("imu", 3, 100, "mh", (320,)), chain("log", 2, 100, "mi", (720,), 'branches_from = "imu.b0"')
    ),
    "a lock of a service that both callers name": lambda: system(
        *_services(2),
        entry("locks", name="map", sections=[{"callback": f"c{n}.b1", "section_ms": 0.05} for n in range(2)]),
        baud=20_000_000,
    ),
    "fragments of the smallest MTU": lambda: system(
        chain("a", 2, 400, "mh", (120,)), chain("u", 1, 500, "gm", (200,)), mtu=68
    ),
    "a command and its answer by topics": lambda: system(chain("ask", 1, 400, "hmh", (20, 20))),
    "nodes that are late beside a board that they never meet": lambda: system(
        hosted("odom", 3, ("g", 12), period_ms=20, deadline_ms=60),
        hosted("update", 1, ("g", 19), period_ms=200),
        chain("state", 2, 100, "mh", (40,)),
    ),
    "five listeners asked for 308 % of the line": lambda: _fan(5, 115_200, 100),
    "two listeners had no bound at 20 ms": lambda: _fan(2, 921_600, 20),
    "requests of several nodes to one service of a board": lambda: system(
        *_services(4), baud=20_000_000, agent=80, back=80
    ),
    "a topic of 4 bytes": lambda: system(chain("count", 1, 500, "mh", (4,)), chain("led", 2, 300, "gm", (2,))),
    "fourteen nodes between two visits of a board": lambda: system(
        chain("loop", 1, 500, "mhijklm", (40, 8, 8, 8, 8, 8)).replace(
            'executor = "i"', 'executor = "i"\npropagation_ms = 2'
        )
    ),
    "eight executors": lambda: _host(8, 8, 1, 1),
    "seventeen chains": lambda: _host(1, 17, 1, 1),
    "seventeen lanes": lambda: _host(1, 2, 17, 1),
    "rclc's stock executor that sends with best effort alone": lambda: _stock_best_effort(),
    "names of sixty letters": lambda: _host(1, 2, 1, 60),
}


@pytest.mark.parametrize("what", FOUND)
def test_nothing_is_above_a_printed_bound(what: str) -> None:
    described = FOUND[what]()
    bounds = bounds_of(described)
    assert all(bound_ms(bounds, one.name) is not None for one in described.chains), [x.reason for x in bounds.chains]
    outcome = played(described, 3)
    assert not outcome.is_broken
    assert all(one.ended > 0 and one.lost == 0 for one in outcome.seen)


def test_what_is_not_acknowledged_waits_for_no_way_back() -> None:
    """If a chain over a network was reliable, every message to the host counted as late as its acknowledgment."""
    one, other = chain("a", 2, 100, "mh", (40,)), chain("b", 1, 100, "mh", (40,))
    alone = _udp(_best_effort(one), _best_effort(other), agent=2, back=5)
    beside = _udp(_best_effort(one), other, agent=2, back=5)
    assert bound_ms(bounds_of(alone), "a") == bound_ms(bounds_of(beside), "a") == pytest.approx(2.4, abs=0.01)


def test_a_board_takes_no_bound_from_nodes_that_it_never_meets() -> None:
    late = hosted("odom", 3, ("g", 12), period_ms=20, deadline_ms=60), hosted("update", 1, ("g", 19), period_ms=200)
    beside = bounds_of(system(*late, chain("state", 2, 100, "mh", (40,))))
    alone = bounds_of(parse(described(host("g"), *late)))
    assert bound_ms(beside, "odom") == bound_ms(alone, "odom") == 31


@pytest.mark.parametrize("beside", [(), (chain("cmd", 9, 100, "mh", (40,)),)], ids=["nodes alone", "beside a board"])
def test_the_length_of_a_message_between_nodes_takes_no_bound(beside: tuple[str, ...]) -> None:
    """A message was limited to a megabyte. With longer ones, a system of nodes alone had the bounds of another
    analysis."""

    def bounds(size: int) -> list[float | None]:
        see = chain("see", 2, 33, "hi", (size,)), chain("keep", 1, 33, "j", (), 'branches_from = "see.b0"')
        described_here = system(*see, *beside) if beside else parse(described(*map(host, "hij"), *see))
        return [one.bound_ns for one in bounds_of(described_here).chains]

    assert None not in bounds(1_000)
    assert bounds(6_220_800) == bounds(1_000)


@pytest.mark.parametrize(("period_ms", "times"), [(400, 1), (12, 2)])
def test_a_less_urgent_callback_blocks_once_an_execution(period_ms: int, times: int) -> None:
    """The chain has two callbacks on the board. A less urgent callback, which runs seldom or often, may block each of
    them once."""
    slow = hosted("slow", 1, ("m", 8), period_ms=period_ms, deadline_ms=400)
    bounds = bounds_of(system(chain("fast", 2, 400, "mhm", (12, 12)), slow))
    (blocked_ns,) = (part.value_ns for part in bounds.chain("fast").parts if part.kind == "client_blocking")
    assert times * 8 <= blocked_ns / 1e6 < times * 8 + 0.1


def test_best_effort_alone_makes_the_stock_executor_wait_for_nothing() -> None:
    """A branch or a ping was refused, as if each publish waited for an acknowledgment; best-effort ones do not."""
    stock = _stock_best_effort()
    batch = parse(re.sub('"batch_stock"', '"batch"', _stock_text()))
    assert [one.bound_ns for one in bounds_of(stock).chains] == [one.bound_ns for one in bounds_of(batch).chains]
    assert bounds_of(stock).executor == bounds_of(batch, "batch_stock").executor == "batch_stock"
    asks = {"service": "reset", "type": "std_srvs/srv/Trigger", "payload_bytes": 30}
    gives = {"replies": asks, "publishes": None}
    steps = (
        *(("h", 0.1, {"requests": asks, "publishes": None}), ("m", 0.1, {"kind": "service", **gives})),
        ("h", 0.1, {"kind": "client"}),
    )
    for asked, executor in (
        (parse(_stock_text("reliable")), None),
        (parse(_stock_text("reliable").replace('"batch_stock"', '"tide"')), "batch_stock"),
        (parse(_stock_text() + hosted("reset", 9, *steps, period_ms=400, reliability="reliable")), None),
    ):
        with pytest.raises(NoBoundError) as refused:
            bounds_of(asked, executor)
        assert all("publishing waits" in one.what for one in refused.value.findings)


def test_a_chain_of_nodes_loses_no_frame_of_a_line() -> None:
    """The chain of nodes shares an executor with a chain of a board. 118 ms of its bound of 127 ms were for the repair
    of lost frames, of which it has none."""
    described = system(chain("plan", 1, 500, "ih", (40,)), chain("cmd", 2, 900, "hm", (40,)))
    for losses in (1, 2):
        assert bound_ms(bounds_of(described, None, losses), "plan") == bound_ms(bounds_of(described), "plan")
        assert bounds_of(described, None, losses).chain("cmd").bound_ns > bounds_of(described).chain("cmd").bound_ns


@pytest.mark.parametrize(
    ("best_effort", "losses", "says"),
    [
        ("", 1, "at most 1 frame of an instance is lost."),
        ("ab", 2, "at most 2 frames of an instance are lost, and none of a best-effort message (a, b)."),
        ("b", 1, "at most 1 frame of an instance is lost, and none of a best-effort message (b)."),
    ],
)
def test_losses_that_no_bound_covers_are_named(best_effort: str, losses: int, says: str, tmp_path: Path) -> None:
    """An instance that loses a frame of a best-effort message never ends. Nevertheless its deadline was guaranteed."""
    every = (
        chain("a", 3, 900, "mh", (40,)),
        chain("b", 2, 900, "hm", (40,)),
        _best_effort(chain("n", 1, 900, "ij", (4,))),
    )
    texts = (_best_effort(one) if name in best_effort else one for name, one in zip("abn", every, strict=True))
    file = tmp_path / "system.toml"
    hosts = (host(name) for name in "hij")
    file.write_text(described(board("m"), *hosts, line("l", heartbeat_delay_ms=20), *texts), encoding="utf-8")
    output = " ".join(tide("check", file, "--losses", str(losses))[1].split())
    assert f"These bounds permit lost frames: {says}" in output
    assert "lost frames:" not in tide("check", file)[1]


@pytest.mark.parametrize("command", ["check", "optimise"])
def test_losses_of_a_system_without_a_board_are_refused(command: str, tmp_path: Path) -> None:
    """The option was ignored, and every deadline was guaranteed."""
    file = tmp_path / "system.toml"
    file.write_text(described(host("h"), host("g"), hosted("a", 1, ("h", 1), ("g", 1))), encoding="utf-8")
    status, output = tide(command, file, "--losses", "1")
    assert status == 2
    assert f"{file}: no chain touches a board, so no frame can be lost; drop --losses" in output.replace("\n", "")
    assert tide("check", file)[0] == 0


@pytest.mark.parametrize(
    ("escaped_bytes", "deadline_ms", "hints"), [(None, 50, True), (None, 90, False), (340, 50, False), (12, 50, False)]
)
def test_a_bound_above_its_deadline_names_the_escapes_that_nobody_stated(
    escaped_bytes: int | None, deadline_ms: int, hints: bool, tmp_path: Path
) -> None:
    """Half of the bound came from a default, but the table looked as if the line were too slow."""
    file = tmp_path / "system.toml"
    imu = hosted("imu", 1, ("m", 0.1), ("h", 0.1), payload=320, deadline_ms=deadline_ms)
    link = line("l", baud=115_200, escaped_bytes=escaped_bytes)
    file.write_text(described(board("m"), host("h"), link, imu), encoding="utf-8")
    status, output = tide("check", file)
    assert status == (deadline_ms == 50 and escaped_bytes != 12)
    assert ("'escaped_bytes' of the link lowers these bounds" in " ".join(output.split())) == hints


def test_compared_executors_have_the_names_that_the_option_takes(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    for text, names in (
        (described(host("h"), hosted("a", 1, ("h", 1))), HOST_POLICIES),
        (described(board("m"), hosted("a", 1, ("m", 1))), CLIENT_EXECUTORS),
    ):
        file.write_text(text, encoding="utf-8")
        heading = next(one for one in tide("check", file, "--compare")[1].splitlines() if "deadline ms" in one)
        assert heading.split()[3:] == [*names]


@pytest.mark.parametrize("command", ["check", "simulate", "optimise"])
@pytest.mark.parametrize("way", ["mh", "mhn"], ids=["one board", "two boards"])
def test_what_the_analysis_refuses_has_its_line_in_every_command(command: str, way: str, tmp_path: Path) -> None:
    """`simulate` ended with status 1, as for a late chain, and named neither the file nor the line."""
    text = described(
        *(board(one, link=f"l{one}") for one in "mn"),
        *(host("h"), line("lm", baud=19_200, mtu_bytes=65_000), line("ln")),
        chain("imu", 1, 100_000, way, (6000, 20)[: len(way) - 1]),
        chain("stop", 2, 100, "nh", (8,)),
    )
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    at = text[: text.index('name = "b0"')].count("\n")  # the line of [[chains.callbacks]]
    status, output = tide(command, file)
    assert status == 2
    assert f"{file}:{at}: chain 'imu', callback 'b0': its frame takes" in " ".join(output.split("\n")), output


# For each description, what `tide check` must say: the figure, and its cause (a default, or the wait that makes the
# chain late).
REASONS: dict[str, tuple[Callable[[], System], str, str]] = {
    "escapes decide": (
        lambda: parse(described(board("m"), host("h"), line("l", baud=115_200), chain("imu", 1, 58, "mh", (340,)))),
        "imu",
        r"107.3 % of the line .* if every byte of a frame is escaped, .* without 'escaped_bytes', and for 53.7 %",
    ),
    "runs of one callback where no group is described": (
        lambda: _cameras(33.333),
        "disp",
        r"its bound comes to [\d.]+ ms or more on executor 'p', .*; the largest part: runs that may not overlap ",
    ),
    "a publish that waits": (
        lambda: _stock(3),
        "cmd",
        r"it may take [\d.]+ ms or more, beyond its period of 3 ms, within which it must be over: publishing waits",
    ),
}


@pytest.mark.parametrize("what", REASONS)
def test_a_reason_names_what_decides(what: str) -> None:
    make, name, says = REASONS[what]
    assert re.search(says, bounds_of(make()).chain(name).reason or "")


REFUSED: dict[str, tuple[Callable[[], System], str]] = {
    "a lock named by only one chain of a service": (
        lambda: system(*_services(2), entry("locks", name="map", sections=[{"callback": "c0.b1", "section_ms": 0.05}])),
        "service 'plan' takes lock 'map' as 'c0.b1' and not as 'c1.b1', which is the same callback; name 'c1.b1', too",
    ),
    "an Imu of 40 bytes": (
        lambda: system(chain("imu", 1, 100, "mh", (40,)).replace('t0"', 't0", type = "sensor_msgs/msg/Imu"')),
        "sensor_msgs/msg/Imu has 312 B at least, payload_bytes is 40; write payload_bytes = 312 or more",
    ),
    "a picture for a board": (
        lambda: system(chain("see", 1, 400_000, "him", (6_220_800, 65_528)), baud=20_000_000, mtu=65_535),
        "'payload_bytes' of 'b1' is 65528; to or from a board it must be at most 65527, the longest with a bound",
    ),
    "a picture of a board": (
        lambda: system(chain("see", 1, 400_000, "mh", (70_000,)), baud=20_000_000, mtu=65_535),
        "'payload_bytes' of 'b0' is 70000; to or from a board it must be at most 65527, the longest with a bound",
    ),
    "a name of 65 letters": (
        lambda: parse(described(host("h"), hosted("a" * 65, 1, ("h", 1)))),
        "'name' has 65 letters; at most 64 are possible",
    ),
    "a cost of boards on a node's executor": (
        lambda: parse(described(host("h", process_ms=4), hosted("a", 1, ("h", 1)))),
        "'process_ms' of executor 'h' is for boards; on the host it is part of a callback",
    ),
    "a subscription that nothing starts": (
        lambda: system(chain("stop", 1, 100, "mh", (8,)).replace('"timer"', '"subscription"')),
        'nothing starts it; put a timer first, or kind = "event"',
    ),
    "two executors of one serial link": (
        lambda: parse(
            described(
                *(board(one, link="l") for one in "mn"),
                *(host("h"), line("l"), chain("a", 1, 100, "mh", (8,)), chain("b", 2, 100, "nh", (8,))),
            )
        ),
        "two microcontrollers on the serial link 'l', which can have only one; give each a [[links]] entry",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_with_its_remedy(what: str) -> None:
    make, says = REFUSED[what]
    with pytest.raises((SystemFileError, NoBoundError)) as refused:
        bounds_of(make())
    error = refused.value
    if isinstance(error, NoBoundError):
        assert any(says in f"{one.what}; {one.remedy}" for one in error.findings)
    else:
        assert any(says in one for one in error.lines), error.lines


def test_beside_a_timer_that_a_load_delays_by_its_period_other_chains_have_bounds() -> None:
    """A write to flash of 10 ms makes a timer of 10 ms skip expiries, so its chain has no bound. The work of the timer
    is limited nevertheless, so chains that wait for it have bounds. If an event takes the place of the timer, its own
    chain has a bound as well."""

    def described_with(kind: str) -> str:
        flash = {"name": "flash", "execution_ms": 10, "period_ms": 1000}
        control = hosted("control", 3, ("m", 1, {"kind": kind}), period_ms=10, deadline_ms=30)
        slow = hosted("slow", 2, ("m", 3), ("h", 2), period_ms=100)
        return described(board("m", loads=[flash]), line("l", agent_ms=1, return_ms=1), host("h"), control, slow)

    found = bounds_of(parse(described_with("timer")))
    control, slow = found.chain("control"), found.chain("slow")
    assert control.bound_ns is None and slow.bound_ns is not None and slow.met
    assert control.reason is not None and "its timer's callback may end 14 ms after its expiry" in control.reason
    assert (
        'begin the chain with kind = "event"' in control.reason and "interrupts and loads, 10.000 ms" in control.reason
    )
    event = bounds_of(parse(described_with("event")))
    assert 14 * MS <= (event.chain("control").bound_ns or 0) <= 30 * MS
    assert slow.bound_ns <= (event.chain("slow").bound_ns or 0), "the same work, and events wake no agent"
    outcome = simulate_description(parse(described_with("timer")), None, 20, 1, False)
    assert all(one.worst_ns <= (slow.bound_ns or 0) for one in outcome.seen if one.chain == "slow" and not one.until)


def test_a_loop_that_takes_longer_than_its_period_says_why_it_has_no_bound() -> None:
    steps = [("m", 1) if number % 2 == 0 else ("h", 1) for number in range(13)]
    parts = board("m"), line("l", baud=115_200, agent_ms=1, return_ms=1), host("h")
    (loop,) = bounds_of(parse(described(*parts, hosted("loop", 1, *steps, period_ms=100)))).chains
    assert loop.bound_ns is None and loop.reason is not None
    assert re.match(r"it takes 10\d\.\d+ ms even without any waiting, beyond its period of 100 ms, ", loop.reason)
    assert "end it earlier and begin another chain there, or lengthen its period" in loop.reason
    (slower,) = bounds_of(parse(described(*parts, hosted("loop", 1, *steps, period_ms=120)))).chains
    assert slower.met
