# SPDX-License-Identifier: Apache-2.0
"""What `tide run --messages` counts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tide.main import app
from tide.run.exchange import GONE_S, Account, Exchange, Outage, Way, period_ns, verdict
from tide.run.numbers import number_in, text_of
from tide.run.plan import run_chains, serial_link
from tide.run.robot import Settings
from tide.system.load import load

EXAMPLE = Path(__file__).parents[2] / "examples/three_chains/system.toml"


@pytest.mark.parametrize(
    ("received", "counted"),
    [
        ([0, 1, 2, 3], (0, 0, 0)),
        ([0, 1, 3], (1, 0, 0)),
        ([0, 1, 1, 2, 0, 3], (0, 2, 0)),  # what comes again is doubled, not out of order
        ([0, 2, 1, 3], (0, 0, 1)),
        ([3, 0, 1, 2], (0, 0, 3)),
        ([], (4, 0, 0)),
    ],
)
def test_numbers_are_counted(received: list[int], counted: tuple[int, int, int]) -> None:
    way = Way("brake", True, 4, received=received)
    assert (way.lost, way.doubled, way.disordered) == counted
    assert Account([way], [], [], 1.0).is_sound == (counted[0] == counted[2] == 0)


def test_best_effort_may_lose_but_not_change() -> None:
    assert Account([Way("brake", False, 4, received=[0])], [], [], 1.0).is_sound
    assert not Account([], [Way("brake", False, 4, wrong=1, received=[0])], [], 1.0).is_sound


def test_the_verdict_has_both_ways() -> None:
    account = Account([Way("a", True, 3, received=[0, 1, 1])], [Way("a", True, 2, received=[0, 1])], [Outage(1.0)], 9.4)
    assert verdict(account) == "1 restarts of the agent in 9 s; lost: 1 of 3 up, 0 of 2 down; doubled: 1 up, 0 down"


def test_silence_is_around_the_time_without_an_agent(tmp_path: Path) -> None:
    exchange = Exchange(load(EXAMPLE), 3, 1, Settings(1, 1, 0.0, 0), tmp_path)
    killed = 10.0
    late = [9.9, killed + GONE_S / 2, killed + GONE_S + 2, 14.0, 20.0]  # some come from DDS when the agent is gone
    assert exchange.silence(late, killed) == pytest.approx(2 + GONE_S / 2)
    assert exchange.silence([9.9], killed) == 0.0


@pytest.mark.parametrize("payload_bytes", [10, 11, 100])
def test_a_number_is_read_back_from_its_text(payload_bytes: int) -> None:
    text = text_of(123, payload_bytes)
    assert len(text) == payload_bytes - 5
    assert number_in(text, payload_bytes) == 123
    assert number_in(text[:-1] + "x", payload_bytes) == -1
    assert number_in(text + ".", payload_bytes) == -1


def test_the_pace_leaves_time_on_the_line() -> None:
    system = load(EXAMPLE)
    chains, link = run_chains(system), serial_link(system)
    used = sum(chain.request.payload_bytes + 19 for chain in chains) * link.byte_ns / period_ns(chains, link)
    assert 0.4 < used < 0.7


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--messages", "10"], "--messages needs --on qemu"),
        (["--on", "qemu", "--restart-agent", "1"], "--restart-agent needs --messages"),
    ],
)
def test_what_cannot_be_exchanged_is_refused_in_one_line(words: list[str], problem: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(EXAMPLE), *words, "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert problem in done.output and done.output.count("\n") == 1
