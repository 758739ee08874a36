# SPDX-License-Identifier: Apache-2.0
"""How the offset between the clocks of a board and the host is found: from the arrival of messages, from the agent's
wall clock, and from frames at both ends, also with drift. TIDE_SEED is the first seed of generated data."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from tide_tools.trace.clocks import Clock, agents_of, client_of, fitted, frames_of, refined, within
from tide_tools.trace.folders import RecordedSegment
from tide_tools.trace.format import parse_trace
from trace_boards import MILLISECOND, Board, Message, recorded

SEED = int(os.environ.get("TIDE_SEED", "1"))


def segment_of(folder: Path, messages: list[Message]) -> tuple[RecordedSegment, bytes, list[str]]:
    board, octets, lines = recorded(folder, messages)
    (segment,) = board.segments
    return segment, octets, lines


def errors(clock: Clock, board: Board, seconds: float) -> list[int]:
    """The errors of the clock that was found, at eleven times of the board."""
    moments = [round(part * seconds * 1e9 / 10) for part in range(11)]
    return [clock.host_ns(at_ns) - board.host_ns(at_ns) for at_ns in moments]


def test_limits_leave_the_middle() -> None:
    clock = fitted([(0, 30), (10, 20)], [(5, 10)], "frames")
    assert clock is not None and (clock.at_ns, clock.offset_ns, clock.spread_ns) == (5, 15, 5)
    assert fitted([], [], "frames") is None
    assert fitted([(0, 10)], [(0, 11)], "frames") is None
    for most, least, offset_ns in (([(0, 30), (10, 20)], [], 20), ([], [(0, 30), (10, 20)], 30)):
        clock = fitted(most, least, "received")
        assert clock is not None and (clock.offset_ns, clock.spread_ns) == (offset_ns, None)


def test_a_clock_is_moved_as_little_as_limits_need() -> None:
    clock = Clock(0, 100, 0, "received")
    assert within(clock, [(5, 120)], [(5, 90)]) == clock
    assert within(clock, [(5, 80), (6, 95)], []).offset_ns == 80
    assert within(clock, [], [(5, 130)]).offset_ns == 130


@pytest.mark.parametrize("rate", [0.0, 80e-6, -0.004])
def test_messages_alone_say_what_their_shortest_way_leaves(tmp_path: Path, rate: float) -> None:
    """The fastest message took at least 2 ms, and the slowest at most 30 ms, so the offset cannot be known better."""
    for seed in range(SEED, SEED + 5):
        source = random.Random(seed)
        board = Board(source, source.randrange(-(10**15), 10**15), rate)
        segment, _, _ = segment_of(tmp_path / str(seed), board.messages(60))
        assert segment.clock.by == "received" and segment.clock.spread_ns is None
        found = errors(segment.clock, board, 60)
        assert all(abs(one) < 20 * MILLISECOND for one in found), f"TIDE_SEED={seed}: {found}"


def test_the_wall_clock_of_the_agent_says_more(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + 5):
        source = random.Random(seed)
        board = Board(source, source.randrange(-(10**15), 10**15), is_synchronised=True)
        segment, _, lines = segment_of(tmp_path / str(seed), board.messages(20))
        assert segment.clock.by == "wall" and segment.clock.spread_ns is not None
        assert "clock by the agent's, within " in lines[0] and len(lines) == 1
        found = errors(segment.clock, board, 20)
        assert all(abs(one) <= segment.clock.spread_ns <= 3 * MILLISECOND for one in found), (
            f"TIDE_SEED={seed}: {found}"
        )


def test_a_wall_clock_that_is_another_machines_is_told(tmp_path: Path) -> None:
    board = Board(random.Random(SEED), is_synchronised=True, wall_error_ns=3600 * 10**9)
    segment, _, lines = segment_of(tmp_path, board.messages(5))
    assert segment.clock.by == "received" and 0 < segment.clock.offset_ns < 30 * MILLISECOND
    assert "the agent's wall clock differs from this machine's" in lines[-1]


def test_a_board_that_never_tells_its_time_is_taken_by_its_records(tmp_path: Path) -> None:
    messages = Board(random.Random(SEED), offset_ns=10**12).messages(0.5)[1:]  # the first one has the wall clock
    segment, _, _ = segment_of(tmp_path, messages)
    assert segment.clock.by == "records" and 0 < segment.clock.offset_ns - 10**12 < 80 * MILLISECOND


@pytest.mark.parametrize("is_synchronised", [False, True])
@pytest.mark.parametrize("rate", [0.0, 50e-6, -0.003])
def test_frames_at_both_ends_make_it_exact(tmp_path: Path, rate: float, is_synchronised: bool) -> None:
    """In each direction, the fastest of many frames takes slightly more than 1 ms, so the middle is near the offset,
    whatever the clock is."""
    for seed in range(SEED, SEED + 4):
        source = random.Random(seed)
        board = Board(source, source.randrange(-(10**15), 10**15), rate, is_synchronised=is_synchronised)
        messages = [one for one in board.messages(30) if source.random() > 0.1]
        segment, octets, _ = segment_of(tmp_path / str(seed), messages)
        frames = frames_of(parse_trace(octets, -1))
        agents = agents_of(parse_trace(board.agent_block()))
        clock = refined(frames, segment.clock, agents[board.key])
        assert clock is not None and clock.by == "frames", f"TIDE_SEED={seed}"
        assert clock.spread_ns is not None
        found = errors(clock, board, 30)
        assert all(abs(one) < 200_000 for one in found), f"TIDE_SEED={seed}: {found}"
        middle = clock.host_ns(clock.at_ns) - board.host_ns(clock.at_ns)
        assert abs(middle) <= clock.spread_ns + 1000, f"TIDE_SEED={seed}: {middle}, {clock}"


def test_frames_that_are_sent_again_or_counted_anew_do_not_spoil_it() -> None:
    for seed in range(SEED, SEED + 10):
        source = random.Random(seed)
        board = Board(source, 10**14)
        board.sequence = 65_500
        octets = b"".join(one.octets for one in board.messages(4))
        frames = frames_of(parse_trace(octets))
        for one in list(frames.sent):
            if source.random() < 0.5:  # also sent before, and lost; or again, after a lost acknowledgment
                back_ns = source.choice((1, -1)) * source.randrange(5 * MILLISECOND, 200 * MILLISECOND)
                frames.sent.append(replace(one, start_ns=one.start_ns - back_ns, end_ns=one.end_ns - back_ns))
        agents = agents_of(parse_trace(board.agent_block()))
        coarse = Clock(0, 10**14 + source.randrange(40 * MILLISECOND), 0, "received")
        clock = refined(frames, coarse, agents[board.key])
        assert clock is not None and abs(clock.offset_ns - 10**14) < 200_000, f"TIDE_SEED={seed}: {clock}"


def test_traces_that_contradict_each_other_leave_nothing() -> None:
    board = Board(random.Random(SEED))
    frames = frames_of(parse_trace(b"".join(one.octets for one in board.messages(2))))
    agent = agents_of(parse_trace(board.agent_block()))[board.key]
    for one in agent.down:
        one.start_ns += 20 * MILLISECOND  # with this, the board would receive frames before they are sent
    assert refined(frames, Clock(0, 0, 0, "received"), agent) is None


def test_an_end_of_a_frame_that_was_recorded_late_changes_nothing() -> None:
    board = Board(random.Random(SEED))
    frames = frames_of(parse_trace(b"".join(one.octets for one in board.messages(2))))
    agent = agents_of(parse_trace(board.agent_block()))[board.key]
    clock = refined(frames, Clock(0, 0, 0, "received"), agent)
    frames.sent = [replace(one, end_ns=one.end_ns + 5 * MILLISECOND) for one in frames.sent]
    assert clock is not None and refined(frames, Clock(0, 0, 0, "received"), agent) == clock


def test_frames_of_one_direction_move_a_clock_as_little_as_they_need() -> None:
    board = Board(random.Random(SEED))
    frames = frames_of(parse_trace(b"".join(one.octets for one in board.messages(2))))
    agent = agents_of(parse_trace(board.agent_block()))[board.key]
    frames.came.clear()
    fine, late = Clock(0, -5000, 0, "wall", 10), Clock(0, 9 * MILLISECOND, 0, "received")
    assert refined(frames, fine, agent) == fine
    moved = refined(frames, late, agent)
    assert moved is not None and MILLISECOND < moved.offset_ns < 1.5 * MILLISECOND and moved.by == "received"


def test_each_board_finds_its_client_among_alike_ones() -> None:
    """Three boards run the same program and are started one after the other."""
    for seed in range(SEED, SEED + 10):
        source = random.Random(seed)
        starts = source.sample(range(0, 2000, 7), 3)
        boards = [Board(source, 10**12 + start * MILLISECOND, key=100 + index) for index, start in enumerate(starts)]
        octets = [b"".join(one.octets for one in board.messages(3)) for board in boards]
        agents = agents_of(parse_trace(b"".join(board.agent_block(index) for index, board in enumerate(boards))))
        assert set(agents) == {100, 101, 102}
        for board, own in zip(boards, octets, strict=True):
            coarse = Clock(0, board.offset_ns + 2 * MILLISECOND, 0, "received")
            assert client_of(frames_of(parse_trace(own)), coarse, agents) == board.key, f"TIDE_SEED={seed}"


def test_a_board_that_tells_its_key_is_that_client() -> None:
    board = Board(random.Random(SEED))
    frames = frames_of(parse_trace(b"".join(one.octets for one in board.messages(1))))
    agents = agents_of(parse_trace(board.agent_block()))
    coarse = Clock(0, 0, 0, "received")
    assert client_of(frames, coarse, agents) == board.key
    assert client_of(frames, coarse, agents, [board.key]) is None
    frames.key = 5
    assert client_of(frames, coarse, agents) is None
