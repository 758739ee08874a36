# SPDX-License-Identifier: Apache-2.0
"""Boards that speak RTPS without an agent: what bounds include, simulated runs, and what is refused."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import descriptions as d
import tide_tools.analysis.bounds as bounding
from bounded import bounded
from commands import done, tide
from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.lower import NoBoundError
from tide_tools.analysis.sizing import Need, client_of, need_of, options
from tide_tools.play.boards import BoardsPlayer
from tide_tools.play.server import Server
from tide_tools.run.plan import PLAYED_RTPS
from tide_tools.simulate.described import simulate_description
from tide_tools.system.load import parse

MBIT = 10
BLOCKING_NS = (1472 + 66) * 8000 // MBIT  # a datagram of discovery whose transmission has begun


def ethernet(**more: Any) -> str:
    fields = {"name": "net", "kind": "rtps", "mbit_per_s": MBIT, "to_host_ms": 1, "to_board_ms": 0.5}
    return d.entry("links", **{**fields, **more})


def sample_ns(payload_bytes: int) -> int:
    """The time of a datagram with a sample: with RTPS and its encapsulation, IPv4 and UDP, and Ethernet with preamble
    and gap."""
    return (76 + -(-payload_bytes // 4) * 4 + 28 + 38) * 8000 // MBIT


def robot(*chains: str, link: str | None = None, **board: Any) -> str:
    return d.described(d.board("m", **board), d.host("h"), link or ethernet(), *chains)


def up(name: str = "c", priority: int = 3, payload: int = 50, **more: Any) -> str:
    return d.chain(name, priority, ("m", 2), ("h", 3), payload=payload, **more)


def call(name: str, *where: str, priority: int = 3, payload: int = 50) -> str:
    """`where`: of client, server and client again."""
    fields: dict[str, Any] = {"service": name, "type": "std_srvs/srv/SetBool", "payload_bytes": payload}
    steps = (
        (where[0], 2, {"requests": fields, "publishes": None}),
        (where[1], 3, {"kind": "service", "replies": fields, "publishes": None}),
        (where[2], 1, {"kind": "client"}),
    )
    return d.chain(name, priority, *steps, reliability="reliable")


def bounds_ns(text: str) -> dict[str, int | None]:
    return {one.name: one.bound_ns for one in bounded(text).chains}


def near(found_ns: int | None, expected_ns: int) -> bool:
    """True if a bound is the expected one, except for probes of the session: each counts some hundred nanoseconds,
    although it stays on the board."""
    return found_ns is not None and 0 <= found_ns - expected_ns < 5_000


def test_a_sample_is_a_datagram_to_each_reader() -> None:
    alone_ns = 2_000_000 + sample_ns(50) + BLOCKING_NS + 1_000_000 + 3_000_000
    assert near(bounds_ns(robot(up()))["c"], alone_ns)
    assert near(bounds_ns(robot(up(), link=ethernet(more_readers=2)))["c"], alone_ns + 2 * sample_ns(50))
    branch = d.chain("b", 2, ("h", 0), branches_from="c.b0")
    assert near(bounds_ns(robot(up(), branch))["c"], alone_ns + sample_ns(50))


def test_the_interface_and_the_network_count_as_described() -> None:
    one_ns = bounds_ns(robot(up()))["c"] or 0
    assert near(bounds_ns(robot(up(), link=ethernet(queued_datagrams=4)))["c"], one_ns + 3 * BLOCKING_NS)
    assert near(bounds_ns(robot(up(), link=ethernet(to_host_ms=2.5)))["c"], one_ns + 1_500_000)
    down = d.chain("c", 3, ("h", 2), ("m", 3), payload=50)
    one_ns = bounds_ns(robot(down))["c"] or 0
    assert near(bounds_ns(robot(down, link=ethernet(to_board_ms=2)))["c"], one_ns + 1_500_000)


def test_each_datagram_takes_the_board_time_also_of_discovery() -> None:
    free_ns, few_ns, many_ns = (
        bounds_ns(robot(up(), link=ethernet(discovery_datagrams=count), interrupt_ms=cost_ms))["c"] or 0
        for count, cost_ms in ((10, 0), (10, 0.05), (30, 0.05))
    )
    assert free_ns > 0 and few_ns - free_ns >= 10 * 50_000
    assert near(many_ns, few_ns + 20 * 50_000)


def test_a_reliable_sample_brings_a_heartbeat_and_its_answers() -> None:
    """A HEARTBEAT is in the datagram of the sample. Other HEARTBEATs, and every ACKNACK, may be in any datagram."""
    best_ns = bounds_ns(robot(up()))["c"] or 0
    reliable_ns, busy_ns = (
        bounds_ns(robot(up(reliability="reliable"), interrupt_ms=cost_ms))["c"] or 0 for cost_ms in (0, 0.05)
    )
    control_ns, beside_ns = sample_ns(32), 32 * 8000 // MBIT
    assert control_ns <= reliable_ns - best_ns - beside_ns <= 8 * control_ns
    assert busy_ns - reliable_ns > 64 * 50_000


def test_what_is_played_comes_as_near_as_discovery_allows(tmp_path: Path) -> None:
    """A run comes as near to the bound as a datagram of discovery, the only part of the bound that does not occur in
    it."""
    file = tmp_path / "system.toml"
    for link, count in ((ethernet(), 1), (ethernet(more_readers=2), 3)):
        file.write_text(robot(up(), link=link), encoding="utf-8")
        (chain,) = json.loads(done("simulate", file, "--runs", "20", "--json"))["observed"]
        assert chain["max_ns"] <= chain["bound_ns"] and chain["lost"] == 0
        assert chain["max_ns"] >= 6_000_000 + count * sample_ns(50)


def test_several_chains_both_ways_stay_below_their_bounds(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    chains = [
        d.chain("fast", 9, ("m", 1), ("h", 1), ("m", 0.5), payload=30, period_ms=40),
        d.chain("slow", 4, ("m", 4), ("h", 2), payload=400, period_ms=100),
        d.chain("back", 2, ("h", 2), ("m", 2), payload=100, period_ms=50),
    ]
    more: dict[str, Any] = {"queued_datagrams": 2, "more_readers": 1}
    text = robot(*chains, link=ethernet(**more), interrupt_ms=0.01, process_ms=0.02, submit_ms=0.03)
    file.write_text(text, encoding="utf-8")
    status, output = tide("simulate", file, "--runs", "30", "--search", "--json")
    assert status == 0, output
    for chain in json.loads(output)["observed"]:
        assert 0.2 * chain["bound_ns"] < chain["max_ns"] <= chain["bound_ns"] and chain["lost"] == 0, chain


def test_what_a_bound_supposes_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(robot(up(), link=ethernet(more_readers=2)), encoding="utf-8")
    told = " ".join(done("check", file, "--details").split())
    for said in (
        "at most 64 datagrams of discovery come or go in 3 s",
        "has the readers in this file, and at most 2 besides",
        "holds at most 1 datagrams that have not left",
        "1 for writers, 1 for readers, 3 for peers, 3 for matches, 1 for frames, histories and publishers' depths of 2 "
        "samples, each of at most 52 bytes",
        "to the node: 1 ms at most (to_host_ms: network, DDS)",
    ):
        assert said in told, told
    assert "RTPS, 10 Mbit/s, without an agent" in done("show", file)


def full(**of: Any) -> str:
    """Two reliable topics each way, with bursts; all samples to the board wait while the slow callback runs."""
    fields = {"kind": "event", "publishes": {"topic": "up/a", "payload_bytes": 60}}
    up = d.chain("up", 3, ("m", 0.1, fields), ("h", 0.1), burst=3)
    down = [d.chain(f"d{n}", n + 4, ("h", 1), ("m", 1), reliability="reliable", period_ms=80 + n) for n in range(2)]
    slow = d.chain("slow", 2, ("m", 40), period_ms=300)
    return robot(up, *down, slow, link=ethernet(more_readers=1), **of)


def test_footprint_writes_the_memory_that_check_states_and_the_simulator_plays(tmp_path: Path) -> None:
    file, header = tmp_path / "system.toml", tmp_path / "pools.h"
    file.write_text(full(), encoding="utf-8")
    done("footprint", file, "--header", header)
    written = dict(re.findall(r"#define TIDE_RTPS_(\w+) (\d+)\n", header.read_text(encoding="utf-8")))
    sizes = bounded(full()).needs[0].sizes
    assert written == {"WRITERS": "1", "READERS": "2", "PEERS": "2", "MATCHES": "4", "FRAMES": "2"} | {
        key: str(sizes[f"rtps_{key.lower()}"]) for key in ("HISTORY", "SAMPLE_BYTES")
    }
    assert sizes["rtps_history"] == 2 * 3 and sizes["rtps_sample_bytes"] == 60
    outcome = simulate_description(parse(full()), None, 12, 1, True)
    assert not outcome.is_broken and all(one.lost == 0 and one.ended > 0 for one in outcome.seen)


@pytest.mark.parametrize(
    ("size", "enough", "name"),
    [
        ("rtps_matches", 4, "matches"),
        ("rtps_frames", 2, "frames"),
        ("rtps_history", 3, "histories"),  # one burst
        ("rtps_sample_bytes", 60 - 24, "samples"),  # a topic may use the bytes that are meant for a reply's identity
    ],
)
def test_less_memory_is_too_small(size: str, enough: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its fullest the participant uses all of it, but for the history, of which the proof uses twice as much."""
    right = need_of
    for count in (enough, enough - 1):

        def changed(*of: Any, by: int = count) -> Need:
            return replace(right(*of), sizes=right(*of).sizes | {size: by})

        monkeypatch.setattr(bounding, "need_of", changed)
        outcome = simulate_description(parse(full()), None, 12, 1, True)
        assert (f"RTPS {name}" in {one.split(";")[0] for one in outcome.full}) == (count < enough), outcome.full


def test_firmware_without_an_agent_says_its_sizes() -> None:
    few = {"rtps_matches": 3, "rtps_frames": 2, "rtps_peers": 1, "rtps_history": 4, "rtps_name_bytes": 80}
    (chain, *_) = bounded(full(pools=few)).chains
    assert chain.bound_ns is None and chain.root is not None
    assert chain.root.what == (
        "TIDE_RTPS_PEERS is 1, and 2 is needed; write rtps_peers = 2; "
        "TIDE_RTPS_MATCHES is 3, and 4 is needed; write rtps_matches = 4; "
        "TIDE_RTPS_HISTORY is 4, and 6 is needed; write rtps_history = 6"
    )
    assert None not in bounds_ns(full(pools={**few, "rtps_matches": 4, "rtps_peers": 2, "rtps_history": 6})).values()


def test_names_and_frames_have_to_fit_the_runtime() -> None:
    name = "n" * 90
    steps = ("m", 1, {"publishes": {"topic": name, "payload_bytes": 8}}), ("h", 1)
    (chain,) = bounded(robot(d.chain("c", 3, *steps))).chains
    assert chain.root is not None and "compile the runtime with it, and write rtps_name_bytes = 94" in chain.root.what
    assert bounded(robot(d.chain("c", 3, *steps), pools={"rtps_name_bytes": 94})).met
    system = parse(robot(d.chain("c", 3, *steps)))
    assert "TIDE_RTPS_NAME_BYTES=94" in options(client_of(system))
    (chain, *_) = bounded(robot(*(d.chain(f"c{n}", n + 1, ("h", 1), ("m", 1)) for n in range(17)))).chains
    assert chain.root is not None and "TIDE_RTPS_FRAMES of 17 is needed, and at most 16 is possible" in chain.root.what


own = d.chain("c", 3, ("m", 1), ("m", 1))
two = [d.board("m", link="net"), d.board("n", link="net"), d.host("h"), ethernet()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (robot(up(), link=ethernet(to_host_ms=None)), "give it to_host_ms and to_board_ms"),
        (robot(own), "board 'm' does not receive its own topics"),
        (d.described(*two, d.chain("c", 3, ("m", 1), ("n", 1))), "two boards talk without a host"),
        (robot(up(), policy="batch_blocking"), "publishing waits, for which there is no bound over RTPS"),
        (robot(up(hold=True)), "a board does not hold back other messages, as these chains have it: c"),
        (robot(up(payload=500)), "takes 2 frames of TIDE_MTU_BYTES on its board, and there is a bound for 1"),
        (
            robot(d.chain("c", 3, ("h", 1), ("m", 1), payload=17 * 490, reliability="reliable")),
            "takes 17 frames of TIDE_MTU_BYTES on its board, and there is a bound for 15",
        ),
        (robot(call("c", "h", "m", "h", payload=500)), "sends board 'm' a message of a service that needs fragments"),
        (robot(up(), up("e", 2, deadline_ms=90).replace("c/", "e/")), ""),
    ],
)
def test_what_has_no_bound_is_refused(text: str, says: str) -> None:
    if not says:
        assert None not in bounds_ns(text).values()
        return
    with pytest.raises(NoBoundError) as caught:
        bounded(text)
    assert says in f"{caught.value} {[one.remedy for one in caught.value.findings]}"


def repaired(losses: int, *chains: str, **link: Any) -> Any:
    return bounds_of(parse(robot(*chains, link=ethernet(**link))), None, losses).chains


def test_each_loss_costs_a_heartbeat_and_its_answer() -> None:
    """The board's HEARTBEATs come after 20 ms, 40 ms and so on, and 20 ms later if an old request comes between; those
    of nodes as often as described. Every datagram of the board waits for the interface."""
    sent = d.chain("c", 3, ("m", 2), ("h", 3), payload=50, reliability="reliable", period_ms=800)
    taken = d.chain("c", 3, ("h", 3), ("m", 2), payload=50, reliability="reliable", period_ms=800)
    turn_ns = 1_000_000 + 10_000_000 + 500_000
    wait_ns = sample_ns(32) + BLOCKING_NS
    for losses, delay_ms in ((1, 20 + 20), (2, 20 + 20 + 40 + 20)):
        (none,), (one,) = repaired(0, sent), repaired(losses, sent)
        least_ns = delay_ms * 1_000_000 + 2 * losses * wait_ns + turn_ns + wait_ns + sample_ns(50 + 32)
        assert 0 <= one.bound_ns - none.bound_ns - least_ns < 15_000_000
        (none,), (one,) = repaired(0, taken, heartbeat_ms=90), repaired(losses, taken, heartbeat_ms=90)
        least_ns = losses * 90_000_000 + turn_ns + wait_ns
        assert 0 <= one.bound_ns - none.bound_ns - least_ns < 15_000_000


def test_what_cannot_be_repaired_in_time_has_no_bound() -> None:
    rare = partial(d.chain, "c", 3, payload=50, reliability="reliable")
    (chain,) = repaired(1, rare(("h", 3), ("m", 2), period_ms=800))
    assert "the repair of lost frames may take 30" in chain.root.what and "lower heartbeat_ms" in chain.root.what
    (chain,) = repaired(1, rare(("m", 2), ("h", 3), period_ms=150))
    assert "before the end, to be acknowledged: over RTPS there is no bound for the repair of" in chain.root.what
    assert repaired(1, rare(("m", 2), ("h", 3), period_ms=300))[0].bound_ns
    event = ("m", 2, {"kind": "event", "publishes": {"topic": "c/b0", "payload_bytes": 50}})
    for text, says in (
        (rare(event, ("h", 3), period_ms=300, burst=2), "no bound for bursts in a chain over RTPS, with losses: c"),
        (
            d.chain("c", 3, ("m", 2), ("h", 3), payload=3000, reliability="reliable"),
            "whose repair over RTPS has no bound",
        ),
    ):
        with pytest.raises(NoBoundError, match=says):
            repaired(1, text, mtu_bytes=4096)


def test_losses_in_simulation_stay_below_the_bounds(tmp_path: Path) -> None:
    """Samples, HEARTBEATs and ACKNACKs are lost in both directions."""
    chains = [
        d.chain("round", 9, ("m", 1), ("h", 1), ("m", 0.5), payload=60, reliability="reliable", period_ms=800),
        call("ask", "m", "h", "m", priority=5).replace("period_ms = 100", "period_ms = 1000"),
        d.chain("best", 2, ("m", 1), ("h", 1), payload=100, period_ms=50),
    ]
    system = parse(robot(*chains, link=ethernet(heartbeat_ms=40, acknowledge_ms=0), interrupt_ms=0.01))
    player = BoardsPlayer(system, "tide", 2, random.Random(3))
    bounds = {one.name: one.bound_ns for one in bounds_of(system, "tide", 2).chains}
    without = {one.name: one.bound_ns or 0 for one in bounds_of(system, "tide").chains}
    worst = dict.fromkeys(bounds, 0)
    server = Server("tide-sim")
    for _ in range(20):
        played = server.play(player.words(player.drawn()))
        assert not played.violations and not played.full and not any(played.lost)
        worst = {name: max(worst[name], ns) for name, ns in zip(worst, played.worst_ns, strict=True)}
    server.close()
    assert all(worst[name] <= (bounds[name] or 0) for name in worst), (worst, bounds)
    assert worst["round"] > without["round"] + 40_000_000 and worst["ask"] > without["ask"]


def test_runs_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(robot(up()), encoding="utf-8")
    run = partial(tide, COLUMNS="200")
    larger = up(payload=9000, reliability="reliable")
    for text, says in (
        (
            robot(larger, link=ethernet(mtu_bytes=4096)),
            "needs TIDE_RTPS_SAMPLE_BYTES = 9000, and a played board has 8192",
        ),
        (robot(up(), attach="8888"), "tide run stays on the loopback interface"),
    ):
        file.write_text(text, encoding="utf-8")
        status, output = run("run", file)
        assert status == 2 and says in " ".join(output.split()), output


def test_a_played_board_has_the_sizes_that_tide_run_checks() -> None:
    source = Path(__file__).parents[2] / "sim/workloads/three_chains/chain_client.c"
    found = re.findall(r"#define (TIDE_RTPS_\w+) (\d+)\n", source.read_text(encoding="utf-8"))
    assert {name: int(size) for name, size in found} == PLAYED_RTPS


@pytest.mark.parametrize("reliability", ["best_effort", "reliable"])
def test_a_long_sample_is_sent_in_fragments_to_each_reader(reliability: str) -> None:
    """Three datagrams: two full ones and the rest, whose DATA_FRAG is 12 bytes longer than DATA."""
    link, more = ethernet(mtu_bytes=4096, more_readers=1), {"reliability": reliability}
    short_ns = bounds_ns(robot(up(payload=1200, **more), link=link))["c"] or 0
    long_ns = bounds_ns(robot(up(payload=1296 + 1296 + 396, **more), link=link))["c"] or 0
    beside = 32 if reliability == "reliable" else 0
    grown_ns = 2 * (2 * sample_ns(1296 + 8) + sample_ns(400 + 8 + beside) - sample_ns(1200 + beside))
    assert abs(long_ns - short_ns - grown_ns) <= 5_000


def test_fragments_are_acknowledged_before_the_next_sample() -> None:
    late = ethernet(mtu_bytes=4096, acknowledge_ms=95)
    assert bounds_ns(robot(up(payload=3000), link=late))["c"]
    (chain,) = bounded(robot(up(payload=3000, reliability="reliable"), link=late)).chains
    assert chain.bound_ns is None and chain.root is not None
    assert "sends reliable samples in fragments, and the acknowledgment takes up to 95.5" in chain.root.what
    steps = ("m", 1, {"publishes": {"topic": "c/log", "payload_bytes": 3000}})
    (chain,) = bounded(robot(d.chain("c", 3, steps, reliability="reliable"), link=ethernet(mtu_bytes=4096))).chains
    assert chain.root is not None and "no chain in the file takes them" in chain.root.what


def test_a_long_sample_to_the_board_takes_several_frames() -> None:
    """Each costs the board process_ms, and is in a frame of the agent until the executor has taken it."""

    def told(payload: int, **more: Any) -> Any:
        chain = d.chain("c", 3, ("h", 2), ("m", 3), payload=payload, reliability="reliable", period_ms=100, **more)
        return bounded(robot(chain, process_ms=0.5))

    short, long = told(400), told(2 * 490)
    assert 500_000 <= (long.chains[0].bound_ns or 0) - (short.chains[0].bound_ns or 0) < 600_000
    assert [one.needs[0].sizes["rtps_frames"] for one in (short, long)] == [1, 2]
    outcome = simulate_description(
        parse(robot(d.chain("c", 3, ("h", 2), ("m", 3), payload=980, reliability="reliable"))), None, 8, 1, True
    )
    assert not outcome.is_broken and all(one.lost == 0 and one.ended > 0 for one in outcome.seen)


def test_a_call_is_a_chain_of_samples_with_the_identity_of_the_request() -> None:
    """Otherwise it takes as long as reliable topics."""
    for where in (("m", "h", "m"), ("h", "m", "h")):
        topics = d.chain("c", 3, *zip(where, (2, 3, 1), strict=True), payload=50, reliability="reliable")
        call_ns, topics_ns = bounds_ns(robot(call("s", *where)))["s"] or 0, bounds_ns(robot(topics))["c"] or 0
        assert 0 <= call_ns - topics_ns - 60 * 8000 // MBIT < 1_000, where


def test_calls_long_samples_and_instances_under_way_stay_below_their_bounds() -> None:
    chains = [
        call("ask", "m", "h", "m", priority=9),
        call("serve", "h", "m", "h", priority=8, payload=200),
        d.chain("picture", 4, ("m", 2), ("h", 2), payload=3000, reliability="reliable", period_ms=150),
        d.chain("scan", 5, ("m", 1), ("h", 2), payload=2500),
        d.chain("fast", 12, ("m", 0.5), ("h", 1), ("m", 0.2), payload=60, period_ms=8, deadline_ms=80),
        d.chain("sure", 3, ("m", 0.2), ("h", 0.1), payload=60, period_ms=25, deadline_ms=90, reliability="reliable"),
    ]
    link = ethernet(mtu_bytes=4096, queued_datagrams=2, to_host_ms=9, acknowledge_ms=0, more_readers=1)
    text = robot(*chains, link=link, interrupt_ms=0.01, process_ms=0.02, submit_ms=0.03)
    assert None not in bounds_ns(text).values() and (bounds_ns(text)["fast"] or 0) > 8_000_000
    outcome = simulate_description(parse(text), None, 20, 1, True)
    assert not outcome.is_broken, (outcome.full, outcome.violations)
    for one in outcome.seen:
        assert one.lost == 0 and 0.2 * (one.bound_ns or 0) < one.worst_ns <= (one.bound_ns or 0), one


def test_acknowledgments_of_several_instances_under_way_count_up_to_the_deadline() -> None:
    def chains(deadline_ms: float) -> Any:
        beside = d.chain("beside", 2, ("m", 0.1), deadline_ms=90)
        return bounded(robot(up(period_ms=5, deadline_ms=deadline_ms, reliability="reliable"), beside)).chains

    assert None not in (found := [one.bound_ns for one in chains(50)]) and max(found) > 5_000_000
    for chain in chains(5):
        assert chain.bound_ns is None and chain.root is not None
        assert "counted up to 5.000 ms, its deadline or its period; raise deadline_ms" in chain.root.what


def test_the_board_on_the_other_link_has_an_agent() -> None:
    """A board with an agent gets the message of a board that speaks RTPS through the agent's reader."""
    parts = [d.board("m", link="net"), d.board("n", link="l"), d.host("h"), ethernet(), d.line("l")]
    text = d.described(*parts, d.chain("c", 3, ("m", 1), ("n", 1)), d.chain("e", 2, ("n", 1), ("h", 1), ("m", 1)))
    assert None not in bounds_ns(text).values()
    assert parse(text)
