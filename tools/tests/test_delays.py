# SPDX-License-Identifier: Apache-2.0
"""Links with measured delays: bounds and probabilities are as computed by hand, no verdict is a guarantee, and delays
are simulated."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bounded import MS, bound_ns, refusal
from descriptions import board, chain, described, entry, host, line
from tide_tools.analysis.bounds import bounds_of
from tide_tools.main import app
from tide_tools.play.boards import SLOTS, BoardsPlayer, drawn_slots
from tide_tools.report.results import Run
from tide_tools.report.verdict import State
from tide_tools.run.judge import judge
from tide_tools.simulate.described import simulate_description
from tide_tools.system.load import parse
from tide_tools.system.places import UdpLink, delays_at

QUANTILES = {"0.5": 2, "0.99": 8, "0.999": 25}


def wifi(name: str = "wifi", quantiles: dict[str, float] | None = None, **more: Any) -> str:
    ways = {f"{way}_ms": 60 for way in ("agent", "return")}
    known = quantiles or QUANTILES
    more = {"agent_quantiles_ms": known, "return_quantiles_ms": known, **more}
    text = entry("links", **{"name": name, "kind": "udp", **ways, **more})
    for share in {key for value in more.values() if isinstance(value, dict) for key in value}:
        text = text.replace(f" {share} =", f' "{share}" =')
    return text


ENDS = board("rover", link="wifi"), host("nav")
ROUND = ("rover", 1), ("nav", 2), ("rover", 3)


def told(tmp_path: Path, text: str, *words: str) -> tuple[int, str]:
    file = tmp_path / "system.toml"
    file.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(app, [*(words or ("check",)), str(file)], env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def test_the_messages_of_an_instance_decide_its_probability() -> None:
    """An instance takes its three callbacks, two delays, and some microseconds for its messages. It ends before the
    next one begins, so only its own two messages may be late."""
    alone = bounds_of(parse(described(*ENDS, wifi(), chain("drive", 1, *ROUND, period_ms=200)))).chain("drive")
    assert 126 * MS <= (alone.bound_ns or 0) < 126.2 * MS
    for one, (share, delay_ms) in zip(alone.likely, QUANTILES.items(), strict=True):
        assert one.share == Decimal(share) and (one.messages, one.instances) == (2, 1)
        assert one.late == 2 * (1 - Decimal(share))
        assert (6 + 2 * delay_ms) * MS <= one.bound_ns < (6.2 + 2 * delay_ms) * MS
    assert not alone.met and alone.best is not None and alone.best.late == 0, "in time with the longest delays"


@pytest.mark.parametrize(
    ("deadline_ms", "share", "late"), [(57, "0.999", "0.002"), (30, "0.99", "0.02"), (11, "0.5", None)]
)
def test_the_best_probability_within_the_deadline_is_told(deadline_ms: int, share: str, late: str | None) -> None:
    text = described(*ENDS, wifi(), chain("drive", 1, *ROUND, period_ms=200, deadline_ms=deadline_ms))
    best = bounds_of(parse(text)).chain("drive").best
    assert (best and best.late) == (late and Decimal(late)), "two messages above the median may always be late"
    assert best is None or best.share == Decimal(share)


def test_frames_of_earlier_instances_count_if_they_may_be_under_way() -> None:
    """The chain has a period of 20 ms. With the longest delay, up to three earlier messages are in front of a
    message."""
    bounds = bounds_of(parse(described(*ENDS, wifi(), chain("odom", 1, ("rover", 0.2), ("nav", 0.5), period_ms=20))))
    (median, *_, most) = bounds.chain("odom").likely
    assert median.instances == most.instances == most.messages == 4
    assert most.late == 4 * (1 - Decimal("0.999"))
    assert 25.7 * MS <= most.bound_ns < 29 * MS, "at most the own work of four instances more"
    fragments = chain("map", 1, ("rover", 0.2), ("nav", 0.5), payload=1200, reliability="reliable", period_ms=200)
    (one, *_) = bounds_of(parse(described(*ENDS, wifi(), fragments))).chain("map").likely
    assert one.messages == 3, "each of the three frames may be late"


def test_other_chains_cost_the_same_however_late_their_messages_are() -> None:
    """The reply of the other chain may have any delay, so it may delay this chain even if this chain's messages are
    fast."""
    both = (
        chain("drive", 1, *ROUND, period_ms=200),
        chain("stop", 2, ("rover", 1), ("nav", 1), ("rover", 5), period_ms=150),
    )
    together = bounds_of(parse(described(*ENDS, wifi(), *both))).chain("drive")
    alone = bounds_of(parse(described(*ENDS, wifi(), both[0]))).chain("drive")
    for one, other in zip(together.likely, alone.likely, strict=True):
        assert one.bound_ns >= other.bound_ns + 5 * MS and one.late == other.late


def test_a_direction_without_measurement_has_its_longest_delay() -> None:
    text = described(*ENDS, wifi(return_quantiles_ms=None, return_ms=4), chain("drive", 1, *ROUND, period_ms=200))
    for one in bounds_of(parse(text)).chain("drive").likely:
        assert one.messages == 1 and one.late == 1 - one.share
        assert one.bound_ns >= (10 + QUANTILES[f"{one.share:f}"]) * MS
    link = parse(text).links[0]
    assert delays_at(link, Decimal("0.9")).agent_ns == 8 * MS and delays_at(link, Decimal("0.9995")).agent_ns == 60 * MS


def test_over_two_boards_the_messages_of_both_count() -> None:
    two = board("arm", link="wired"), *ENDS, wifi(), line("wired", escaped_bytes=0, agent_ms=1, return_ms=1)
    way = ("arm", 1), ("nav", 2), ("rover", 3)
    there = bounds_of(parse(described(*two, chain("grip", 1, *way, period_ms=200)))).chain("grip")
    assert [one.messages for one in there.likely] == [1, 1, 1], "the serial line has no measured delays"
    assert all(
        8 + delay_ms <= one.bound_ns / MS < 9 + delay_ms
        for one, delay_ms in zip(there.likely, QUANTILES.values(), strict=True)
    )
    back = (*way, ("nav", 1), ("arm", 1))
    visit = bounds_of(parse(described(*two, chain("grip", 1, *back, period_ms=300)))).chain("grip")
    assert [one.messages for one in visit.likely] == [2, 2, 2]
    assert all(
        13 + 2 * delay_ms <= one.bound_ns / MS < 15 + 2 * delay_ms
        for one, delay_ms in zip(visit.likely, QUANTILES.values(), strict=True)
    ), "the stay on the other board is shorter, too"


def test_paths_of_a_join_count_all_their_messages() -> None:
    more = board("mast", link="wifi"), *ENDS, wifi()
    begin = chain("go", 3, ("nav", 1), ("rover", 1), ("nav", 1), period_ms=400)
    look = chain("look", 2, ("mast", 1), ("nav", 1), branches_from="go.b0", period_ms=400)
    look = look.replace('kind = "subscription"\nexecutor = "mast"', 'kind = "subscription"\nexecutor = "mast"')
    join = chain("join", 1, ("nav", 1), branches_from="go.b1", joins=["look.b0"], period_ms=400)
    found = bounds_of(parse(described(*more, begin, look, join))).chain("join")
    assert [one.messages for one in found.likely] == [4, 4, 4]


# ---- verdicts ----


def test_nothing_is_guaranteed_and_the_status_says_so(tmp_path: Path) -> None:
    def text(probability: float | None, deadline_ms: float, *more: str) -> str:
        drive = chain("drive", 1, *ROUND, period_ms=200, deadline_ms=deadline_ms, probability=probability)
        return described(*ENDS, wifi(), drive, *more)

    status, output = told(tmp_path, text(0.99, 57))
    assert status == 3 and "on time with the required probability: drive; no deadline is guaranteed" in output
    assert (
        "at least 99.8 % for each instance: within 56." in output
        and "99.9 % of all messages" in output
        and "unless one of 2 messages takes longer" in output
    )
    assert "every deadline is guaranteed" not in output
    status, output = told(tmp_path, text(0.999, 57))
    assert status == 1 and "no guarantee for: drive" in output and "99.9 % are required" in output
    status, output = told(tmp_path, text(None, 57))
    assert status == 1 and "99.8 %" in output and "state the probability that suffices" in output
    status, output = told(tmp_path, text(0.99, 150))
    assert status == 3 and "even with the longest delays, on which a measurement gives no guarantee" in output
    status, output = told(tmp_path, text(0.99, 11))
    assert status == 1 and "no guarantee for: drive" in output and "probability of at least" not in output
    local = chain("blink", 2, ("rover", 1))
    status, output = told(tmp_path, text(0.99, 60, local))
    assert status == 3 and "every other deadline is guaranteed" in output
    status, output = told(tmp_path, text(0.99, 57), "check", "--json")
    assert status == 3 and not json.loads(output)["met"]
    assert json.loads(output)["chains"][0]["best"]["late"] == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        ((*ENDS, wifi(agent_ms=None), chain("drive", 1, *ROUND)), "but no longest delay"),
        ((*ENDS, wifi(agent_ms=20), chain("drive", 1, *ROUND)), "a measured delay of 25 ms, above its agent_ms"),
        (
            (*ENDS, wifi(quantiles={"0.5": 3, "0.9": 2}), chain("drive", 1, *ROUND)),
            "no longer delay for a smaller share",
        ),
        ((*ENDS, wifi(quantiles={"1.5": 3}), chain("drive", 1, *ROUND)), "shares between 0 and 1"),
        ((*ENDS, wifi(), chain("blink", 1, ("nav", 1), probability=0.9)), "no board with measured delays"),
        ((*ENDS, wifi(), chain("drive", 1, *ROUND, probability=1.5)), "it must be less than 1"),
    ],
)
def test_what_makes_no_sense_is_refused(parts: tuple[str, ...], what: str) -> None:
    assert any(what in one for one in refusal(described(*parts)))


def test_a_search_for_guarantees_refuses_measured_delays(tmp_path: Path) -> None:
    status, output = told(tmp_path, described(*ENDS, wifi(), chain("drive", 1, *ROUND)), "optimise")
    assert status == 2 and "so no change guarantees a deadline" in output and "system.toml:15: " in output


def test_a_run_counts_late_messages_and_judges_no_probability() -> None:
    system = parse(described(*ENDS, wifi(), chain("drive", 1, *ROUND, period_ms=200)))
    seen = {"handed": {"rover": {"agent": {"sure_ns": 9 * MS, "upto_us": {"1000": 90, "9000": 10}}}}}
    run = Run(executor="tide", send="", periods=1, chains=[], evidence=seen)
    (answer,) = [one for one in judge(system, bounds_of(system), run) if one.id == "delays"]
    assert answer.verdict == "not observable here"
    assert "10 of 100 messages of rover took longer than 8 ms, 0.01 of them may" in answer.counter
    assert State.GUARANTEED.value not in answer.counter


# ---- simulated delays ----


def test_slots_are_late_no_more_often_than_described() -> None:
    link = parse(described(*ENDS, wifi(), chain("drive", 1, *ROUND))).links[0]
    assert isinstance(link, UdpLink)
    source, above, slots = random.Random(1), 0, 0
    for _ in range(400):
        drawn = drawn_slots(link, True, source)
        assert drawn is not None and len(drawn.agent_us) == SLOTS and drawn.slot_us >= 58_000
        above += sum(one > 8000 for one in drawn.agent_us)
        slots += SLOTS
    assert 0.007 < above / slots < 0.013


def test_a_simulation_counts_late_instances_and_keeps_the_bounds() -> None:
    text = described(
        *ENDS, wifi(quantiles={"0.5": 2, "0.9": 30}), chain("drive", 1, *ROUND, period_ms=100, deadline_ms=11)
    )
    outcome = simulate_description(parse(text), None, 30, 1, search=False)
    (seen,) = [one for one in outcome.seen if one.until is None]
    late, counted = seen.counted
    assert 0 < late < counted and not outcome.is_broken and not outcome.bad
    assert seen.worst_likely_ns[0] > 0, "some instances had fast messages only"
    again = simulate_description(parse(text), None, 30, 1, search=False)
    assert again.to_json()["observed"] == outcome.to_json()["observed"]


def test_an_instance_above_the_bound_of_its_delays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = described(
        *ENDS, wifi(quantiles={"0.5": 2, "0.9": 30}), chain("drive", 1, *ROUND, period_ms=100, deadline_ms=11)
    )
    whole = BoardsPlayer.worst_likely
    monkeypatch.setattr(BoardsPlayer, "worst_likely", lambda *asked: [one + 20 * MS for one in whole(*asked)])
    outcome = simulate_description(parse(text), None, 20, 1, search=True)
    assert outcome.is_broken and outcome.seen[0].wrong == "above its bound"


def test_bounds_of_the_longest_delays_are_those_of_a_link_without_quantiles() -> None:
    both = (chain("drive", 1, *ROUND, period_ms=200), chain("odom", 2, ("rover", 0.2), ("nav", 0.5), period_ms=20))
    plain = described(*ENDS, entry("links", name="wifi", kind="udp", agent_ms=60, return_ms=60), *both)
    for name in ("drive", "odom"):
        assert bound_ns(bounds_of(parse(plain)), name) == bound_ns(
            bounds_of(parse(described(*ENDS, wifi(), *both))), name
        )
