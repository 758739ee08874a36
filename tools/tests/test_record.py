# SPDX-License-Identifier: Apache-2.0
"""Recording the traces that boards publish: messages may be lost, late, damaged or duplicated, boards may restart, and
files may be impossible to write. TIDE_SEED is the first seed of generated data."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tide_tools.errors import UsageError
from tide_tools.outputs import SYSTEM, GrowingFile, OutputError
from tide_tools.trace.folders import RECORD, read_record
from tide_tools.trace.format import blocks_of, parse_trace
from tide_tools.trace.record import Recorder, file_of
from trace_boards import CLOCKS, DAEMON, LANE, MILLISECOND, Board, Message, recorded

SEED = int(os.environ.get("TIDE_SEED", "1"))
TOPIC = "/arm/tide_trace"


def numbers(octets: bytes) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in blocks_of(octets):
        found.setdefault(one.source, []).append(one.number)
    return found


def shuffled(messages: list[Message], source: random.Random, reach: int) -> list[Message]:
    """The messages in another order, in which each is at most this many positions later."""
    order = sorted(range(len(messages)), key=lambda place: place + source.uniform(0, reach))
    return [messages[place] for place in order]


def test_everything_that_comes_is_kept_in_its_order(tmp_path: Path) -> None:
    messages = Board(random.Random(SEED)).messages(5)
    board, octets, lines = recorded(tmp_path, messages)
    assert octets == b"".join(one.octets for one in messages)
    assert (board.node, board.name, board.file) == ("/arm", "arm", "arm.trace")
    assert [(one.from_byte, one.first_block) for one in board.segments] == [(0, -1)]
    assert len(lines) == 1 and f"{len(messages)} messages" in lines[0]


def test_what_is_lost_late_twice_or_damaged_is_told_and_nothing_else_suffers(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + 12):
        source = random.Random(seed)
        messages = Board(source).messages(6)
        last = {number: blocks[-1] for number, blocks in numbers(b"".join(one.octets for one in messages)).items()}
        lost = {place for place in range(1, len(messages)) if source.random() < 0.1}
        sent = [one for place, one in enumerate(messages) if place not in lost]
        sent = shuffled([*sent[:1], *sent[1:]], source, 5)
        sent += source.sample(sent[-12:], 5)  # twice
        hit = source.randrange(len(sent) - 5)
        octets = bytearray(sent[hit].octets)
        blocks = list(blocks_of(bytes(octets)))
        broken = source.choice(blocks)
        octets[broken.at + source.randrange(broken.size)] ^= 1 << source.randrange(8)
        sent[hit] = Message(bytes(octets), sent[hit].received_ns)
        board, kept, lines = recorded(tmp_path / str(seed), sent)
        assert len(board.segments) == 1, f"TIDE_SEED={seed}"
        found = numbers(kept)
        damaged = not any(broken.ring == one.ring and broken.number == one.number for one in blocks_of(kept))
        text = "\n".join(lines)
        assert f"{broken.size} bytes were not whole blocks" in text, f"TIDE_SEED={seed}: {text}"
        assert all(len(set(one)) == len(one) for one in found.values()), f"TIDE_SEED={seed}: something is twice"
        missing = sum(max(one) - min(one) + 1 - len(one) for one in found.values())
        told = f"{missing} blocks are missing" in text if missing else "are missing" not in text
        assert told, f"TIDE_SEED={seed}: {missing}, {text}"
        assert damaged or broken.number <= last[broken.source]
        trace = parse_trace(kept, board.segments[0].first_block)
        assert (trace.missing_blocks, trace.damaged_bytes) == (missing, 0), f"TIDE_SEED={seed}"
        for ring in (DAEMON, LANE, CLOCKS):
            times = trace.records["time_ns"][(trace.records["source"] == ring) & (trace.records["kind"] != 1)]
            assert (times[1:] >= times[:-1]).all(), f"TIDE_SEED={seed}: ring {ring} is not in its order"


@pytest.mark.parametrize("keeps_clock", [False, True])
def test_a_board_that_starts_anew_begins_a_segment_and_keeps_the_old_one(tmp_path: Path, keeps_clock: bool) -> None:
    for seed in range(SEED, SEED + 12):
        source = random.Random(seed)
        board = Board(source, offset_ns=3_000_000_000, transit=(MILLISECOND, 2 * MILLISECOND))
        parts, offsets = [board.messages(source.uniform(1, 8))], [board.offset_ns]
        for _ in range(source.randrange(1, 4)):
            if keeps_clock:
                board.restart(None, board.offset_ns)
            else:
                at_ns = board.host_ns(board.now_ns) + 500 * MILLISECOND
                clock_ns = source.randrange(0, board.now_ns // 2)
                board.restart(clock_ns, at_ns - clock_ns)
            parts.append(board.messages(source.uniform(1, 8)))
            offsets.append(board.offset_ns)
        # The first messages after a start are often lost, because the topic is not discovered yet.
        skipped = [0, *(source.randrange(0, 3) for _ in parts[1:])]
        sent = [part[skip:] for part, skip in zip(parts, skipped, strict=True)]
        found, _, lines = recorded(tmp_path / str(seed), [one for part in sent for one in part])
        assert f"{len(parts) - 1} restart" in lines[0], f"TIDE_SEED={seed}: {lines}"
        begins = [sum(len(one.octets) for part in sent[:index] for one in part) for index in range(len(sent))]
        assert [one.from_byte for one in found.segments] == begins, f"TIDE_SEED={seed}"
        assert [one.first_block for one in found.segments] == [-1, *(0 for _ in parts[1:])]
        for segment, offset_ns in zip(found.segments, offsets, strict=True):
            assert 0 <= segment.clock.offset_ns - offset_ns <= 2 * MILLISECOND, f"TIDE_SEED={seed}"
        lost = sum(
            len(list(blocks_of(one.octets))) for part, skip in zip(parts, skipped, strict=True) for one in part[:skip]
        )
        text = "\n".join(lines)
        assert (f"{lost} blocks are missing" in text) if lost else ("missing" not in text), f"TIDE_SEED={seed}: {text}"


def test_boards_have_files_of_their_own(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, "a description")
    boards = {node: Board(random.Random(SEED)) for node in ("/arm", "/left/arm", "/agent")}
    for node, board in boards.items():
        messages = board.messages(1)
        assert [recorder.take(f"{node}/tide_trace", one.octets, one.received) for one in messages[:2]] == [True, False]
    recorder.close()
    files = {one.node: one.file for one in read_record(tmp_path).boards}
    assert files == {"/arm": "arm.trace", "/left/arm": "left.arm.trace", "/agent": "node.agent.trace"}
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted([*files.values(), RECORD, SYSTEM])
    assert file_of("/") == "board.trace"


def test_a_recording_is_not_written_over_and_none_leaves_nothing(tmp_path: Path) -> None:
    Recorder(tmp_path, "a description").close()
    assert list(tmp_path.iterdir()) == []
    recorded(tmp_path, Board(random.Random(SEED)).messages(1))
    with pytest.raises(UsageError, match="already contains a recording"):
        Recorder(tmp_path)


def test_it_can_be_read_while_it_grows(tmp_path: Path) -> None:
    """At any time, record.json is complete and each file consists of whole blocks, however the recorder ends."""
    recorder = Recorder(tmp_path)
    messages = Board(random.Random(SEED)).messages(1)
    for count, one in enumerate(messages, 1):
        recorder.take(TOPIC, one.octets, one.received)
        octets = (tmp_path / "arm.trace").read_bytes()
        assert octets == b"".join(each.octets for each in messages[:count])
    assert read_record(tmp_path).boards == ()
    recorder.close()
    assert len(read_record(tmp_path).boards) == 1


def test_a_full_disk_is_one_line_and_leaves_whole_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = GrowingFile(tmp_path / "arm.trace")
    file.append(b"first piece")
    full = GrowingFile(Path("/dev/full"))
    with pytest.raises(OutputError) as told:
        full.append(b"a piece")
    assert str(told.value) == (
        "/dev/full: cannot be written: no space left on device; free some space, or choose another place"
    )

    class Half:
        """A file on a disk that becomes full in the middle of a block."""

        def __init__(self, whole: object) -> None:
            self.whole, self.left = whole, 4

        def write(self, piece: memoryview) -> int:
            if self.left == 0:
                raise OSError(28, "No space left on device")
            count = self.whole.write(piece[: self.left])  # type: ignore[attr-defined]
            self.left -= count
            return int(count)

        def __getattr__(self, name: str) -> object:
            return getattr(self.whole, name)

    monkeypatch.setattr(file, "_file", Half(file._file))
    with pytest.raises(OutputError):
        file.append(b"second piece")
    assert (tmp_path / "arm.trace").read_bytes() == b"first piece"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "was not written by tide trace record"),
        ("[]", "was not written by tide trace record"),
        ('{"version": 9}', "has version 9"),
        ('{"version": 1, "begun_ns": 1, "begun_wall_ns": 2, "boards": [{}]}', "was not written by tide trace record"),
    ],
)
def test_a_record_that_is_none_is_one_line(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / RECORD).write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=what):
        read_record(tmp_path)
