# SPDX-License-Identifier: Apache-2.0
"""The export of a folder of tide run: one instance of brake is one flow through board, wire, agent and node, and back.

TIDE_SEED is the seed of the generated runs."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from commands import done, tide
from tide_tools.run.plan import FIRST_KEY, plan_of, traces_of
from tide_tools.system.load import load
from tide_tools.trace import format as trace
from tide_tools.trace.folders import (
    AGENT_TRACE,
    Timing,
    TracedBoard,
    TracedCallback,
    TracedChain,
    TracedHost,
    Traces,
    read_traces,
    write_traces,
)
from tide_tools.trace.instances import read_run
from tide_tools.trace.step import Step
from trace_boards import Row, block

SEED = int(os.environ.get("TIDE_SEED", "1"))
CHAINS = ("brake", "camera")
PERIOD_NS, START_NS = 100_000, 1_000_000
WAY = ["client", "uart, to the host", "agent", "nodes", "agent", "uart, to the board", "client"]
WHATS = ["read", "message", "to ROS 2", "think", "to the board", "message", "move"]
TIMER, SUBSCRIPTION, SERVICE, CLIENT = range(4)
ROUND = (TracedCallback("read", "timer"), TracedCallback("move", "subscription"))


@dataclass
class Run:
    """The records of a run, as its programs make them. With ``batch`` there are no levels, so all chains share the
    streams of level 0."""

    batch: bool = False
    first_sequence: int = 65_530  # so that the numbers wrap around
    daemon: list[Row] = field(default_factory=list)
    lane: list[Row] = field(default_factory=list)
    agent: list[Row] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    plan: tuple[tuple[TracedCallback, ...], ...] = (ROUND, ROUND)

    def level(self, chain: int) -> int:
        return 0 if self.batch else 3 - chain

    def stream(self, chain: int) -> int:
        return 0x80 + self.level(chain)

    def next_number(self, way: str, chain: int) -> int:
        key = way, self.stream(chain)
        self.numbers[key] = (self.numbers.get(key, self.first_sequence - 1) + 1) % 65_536
        return self.numbers[key]

    def callback(self, chain: int, index: int, kind: int, start_ns: int, end_ns: int) -> None:
        priority = self.level(chain) << 8
        self.lane.append((start_ns, index + 7, priority, trace.START, kind))
        self.lane.append((end_ns, (chain + 1) << 24 | index, priority, trace.END, 0))

    def up(self, chain: int, index: int, start_ns: int, lost: int) -> int:
        """Records a frame to the agent and returns the time at which it arrives. A frame takes 100 ns, and a lost one
        is sent again after 150 ns."""
        number, stream, priority = self.next_number("up", chain), self.stream(chain), self.level(chain) << 8
        for turn in range(lost + 1):
            at_ns = start_ns + 150 * turn
            self.daemon.append((at_ns, (chain + 1) << 24 | index, priority, trace.WIRE_START, 0))
            self.daemon.append((at_ns, number, priority, trace.FRAME, stream))
            self.daemon.append((at_ns + 100, (chain + 1) << 24 | index, priority, trace.WIRE_END, 0))
        came_ns = start_ns + 150 * lost + 110
        name = (0x15 + 16 * chain) << 16 | number
        self.agent.append((came_ns, name, priority, trace.RECEIVED, stream))
        self.agent.append((came_ns + 20, name, priority, trace.DIGESTED, stream))
        return came_ns + 20

    def down(self, chain: int, start_ns: int, lost: int, reader: int | None = None) -> int:
        """Records a message to the board and returns the time at which it has arrived. ``reader`` is the id of the
        object that gets it; None: the chain's subscription."""
        number, stream, priority = self.next_number("down", chain), self.stream(chain), self.level(chain) << 8
        name = (0x16 + 16 * chain if reader is None else reader) << 16 | number
        for turn in range(lost + 1):
            at_ns = start_ns + 30 + 150 * turn
            self.agent.append((start_ns, name, priority, trace.SUBMIT, stream))
            self.agent.append((at_ns, name, priority, trace.WIRE_START, stream))
            self.agent.append((at_ns + 100, name, priority, trace.WIRE_END, stream))
        came_ns = start_ns + 30 + 150 * lost + 100
        self.daemon.append((came_ns, number, priority, trace.RECEIVED, stream))
        self.daemon.append((came_ns + 5, number, priority, trace.DIGESTED, stream))
        return came_ns + 5

    def instance(self, chain: int, index: int, lost_up: int = 0, lost_down: int = 0) -> None:
        at_ns = START_NS + index * PERIOD_NS + chain * 10_000
        self.callback(chain, index, TIMER, at_ns + 5, at_ns + 50)
        given_ns = self.up(chain, index, at_ns + 50, lost_up)
        told = {"chain": CHAINS[chain], "callback": "think", "runs": [[index, given_ns + 30, given_ns + 90, 60]]}
        self.nodes.append(json.dumps(told))
        taken_ns = self.down(chain, given_ns + 95, lost_down)
        self.callback(chain, index, SUBSCRIPTION, taken_ns + 5, taken_ns + 60)

    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True)
        (folder / "client.trace").write_bytes(block(self.daemon, source=0) + block(self.lane, source=1))
        client = [(0, FIRST_KEY, 0, trace.CLIENT, 0), *self.agent]
        stranger = [(0, 77, 0, trace.CLIENT, 0), *self.agent]
        (folder / AGENT_TRACE).write_bytes(block(stranger, source=0) + block(client, source=1))
        (folder / "nodes.log").write_text("\n".join(['{"event": "matched"}', *self.nodes]) + "\n")
        chains = tuple(TracedChain(CHAINS[place], 3 - place, own) for place, own in enumerate(self.plan))
        board = TracedBoard("client", "uart", FIRST_KEY, "client.trace", chains)
        host = TracedHost("nodes.log", {name: {"think": ("nodes", "think")} for name in CHAINS})
        timings = {name: Timing(PERIOD_NS, place * 10_000) for place, name in enumerate(CHAINS)}
        written = Traces(START_NS, AGENT_TRACE, (board,), (host,), timings)
        write_traces(written, folder)
        assert read_traces(folder) == written
        return folder


def ways(steps: list[Step]) -> dict[tuple[str, int], list[Step]]:
    found: dict[tuple[str, int], list[Step]] = {}
    for one in steps:
        found.setdefault((one.chain, one.instance), []).append(one)
    return {key: sorted(way, key=lambda one: (one.start_ns, one.end_ns)) for key, way in found.items()}


@pytest.mark.parametrize("batch", [False, True])
def test_every_instance_goes_from_board_over_wire_agent_and_node_back(tmp_path: Path, batch: bool) -> None:
    """Some of the frames are retransmitted."""
    for seed in range(SEED, SEED + 20):
        source = random.Random(seed)
        run = Run(batch)
        sent = {
            (CHAINS[chain], index): (source.choice((0, 0, 1, 2)), source.choice((0, 0, 1)))
            for index in range(12)
            for chain in range(2)
        }
        for (name, index), lost in sent.items():
            run.instance(CHAINS.index(name), index, *lost)
        steps, problems = read_run(run.write(tmp_path / str(seed)))
        assert problems == [], f"TIDE_SEED={seed}"
        found = ways(steps)
        assert found.keys() == sent.keys(), f"TIDE_SEED={seed}"
        for key, way in found.items():
            kept = [one for one in way if one.what != "lost message"]
            assert [(one.place, one.what) for one in kept] == list(zip(WAY, WHATS, strict=True)), f"TIDE_SEED={seed}"
            lost = [sum(one.place == place for one in way) - 1 for place in (WAY[1], WAY[5])]
            assert tuple(lost) == sent[key], f"TIDE_SEED={seed}: {key}"
            assert {one.release_ns for one in way} == {START_NS + key[1] * PERIOD_NS + CHAINS.index(key[0]) * 10_000}
            assert all(before.end_ns <= after.start_ns for before, after in pairwise(kept))


def test_numbers_that_begin_anew_are_told_apart(tmp_path: Path) -> None:
    """A client that connects again counts its frames from the start again."""
    run = Run(first_sequence=0)
    for index in range(6):
        run.instance(0, index)
        if index % 2:
            run.numbers.clear()
    found = ways(read_run(run.write(tmp_path / "run"))[0])
    assert [[one.what for one in way] for way in found.values()] == [WHATS] * 6
    for (_, index), way in found.items():
        at_ns = START_NS + index * PERIOD_NS
        assert all(at_ns <= one.start_ns <= one.end_ns < at_ns + 1000 for one in way)


def test_a_subscription_runs_with_what_was_given_to_it_not_to_another(tmp_path: Path) -> None:
    """Two messages are delivered one after the other. The callback of the first one runs last."""
    run = Run(batch=True)
    run.instance(0, 0)
    run.instance(1, 0)
    (brake_ns, camera_ns) = (row[0] for row in run.lane if row[3] == trace.START and row[4] == SUBSCRIPTION)
    run.lane = [row for row in run.lane if row[0] < brake_ns or START_NS + 10_000 <= row[0] < camera_ns]
    run.callback(1, 0, SUBSCRIPTION, camera_ns + 10, camera_ns + 20)
    run.callback(0, 0, SUBSCRIPTION, camera_ns + 30, camera_ns + 40)
    found = ways(read_run(run.write(tmp_path / "run"))[0])
    sent = {key[0]: next(one.start_ns for one in way if one.what == "to the board") for key, way in found.items()}
    assert sent["brake"] < START_NS + 10_000 < sent["camera"]


def test_subscriptions_services_and_clients_have_numbers_of_their_own(tmp_path: Path) -> None:
    """Several messages are delivered together, and their callbacks run later in any order."""
    brake = (TracedCallback("feel", "timer"), TracedCallback("turn", "client"), TracedCallback("rest", "client"))
    camera = (TracedCallback("load", "service"), TracedCallback("show", "subscription"))
    for seed in range(SEED, SEED + 20):
        source = random.Random(seed)
        run = Run(bool(seed % 2), plan=(brake, camera))
        taken: dict[tuple[str, int], list[int]] = {}
        for index in range(4):
            at_ns = START_NS + index * PERIOD_NS
            run.callback(0, index, TIMER, at_ns + 5, at_ns + 10)
            # Messages that arrive together, each as its chain, the id of the object and the kind of the callback.
            for together in ([(0, 0x17, CLIENT), (1, 0x18, SERVICE)], [(0, 0x27, CLIENT), (1, 0x16, SUBSCRIPTION)]):
                for chain, reader, _ in source.sample(together, 2):
                    taken.setdefault((CHAINS[chain], index), []).append(at_ns + 100)
                    at_ns = run.down(chain, at_ns + 100, 0, reader)
                for chain, _, kind in source.sample(together, 2):
                    run.callback(chain, index, kind, at_ns + 10, at_ns + 20)
                    at_ns += 20
        found = ways(read_run(run.write(tmp_path / str(seed)))[0])
        for key, way in found.items():
            assert [one.start_ns for one in way if one.what == "to the board"] == taken[key], f"TIDE_SEED={seed}: {key}"
            ran = [one.what for one in way if one.place == "client"]
            assert ran == [one.name for one in run.plan[CHAINS.index(key[0])]], f"TIDE_SEED={seed}: {key}"
        assert found.keys() == taken.keys(), f"TIDE_SEED={seed}"


def test_a_run_leaves_what_starts_each_callback() -> None:
    system = load(Path(__file__).parents[2] / "examples/systems/tool_changer.toml")
    plans = {name: ("uart", plan_of(system, system.executor(name), 1)) for name in ("wrist", "gripper")}
    traces = traces_of(system, plans, {}, {"wrist": 1, "gripper": 2}, START_NS)
    roles = {
        callback.name: callback.role for board in traces.boards for one in board.chains for callback in one.callbacks
    }
    clients = dict.fromkeys(("turn", "move"), "client")
    services = dict.fromkeys(("tighten", "load"), "service")
    assert roles == dict.fromkeys(("feel", "arrive", "joints"), "timer") | clients | services


def test_a_message_that_never_came_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    """With best effort, the second of three messages is lost on its way to the agent, and the answer to the third one
    is lost."""
    run = Run()
    run.instance(0, 0)
    mark = len(run.agent), len(run.daemon), len(run.lane), len(run.nodes)
    run.instance(0, 1)
    del run.agent[mark[0] :], run.daemon[mark[1] + 3 :], run.lane[mark[2] + 2 :], run.nodes[mark[3] :]
    run.numbers["down", run.stream(0)] -= 1
    run.instance(0, 2)
    found = ways(read_run(run.write(tmp_path / "run"))[0])
    assert [one.what for one in found["brake", 0]] == WHATS == [one.what for one in found["brake", 2]]
    assert [one.what for one in found["brake", 1]] == ["read", "lost message"]


def test_a_picture_has_the_whole_way_of_one_instance(tmp_path: Path) -> None:
    """If the user selects none, the instance with the median latency is drawn, not one that retransmissions make
    longer."""
    run = Run()
    for index, lost in enumerate((2, 0, 1, 3, 0)):
        run.instance(0, index, lost)
        run.instance(1, index)
    folder, out = run.write(tmp_path / "tide"), tmp_path / "brake.svg"
    words = ["trace", "export", str(folder), "--to", "svg", "--out", str(out), "--chain"]
    done(*words, "brake")
    texts = ["".join(one.itertext()).strip() for one in ElementTree.parse(out).iter("{http://www.w3.org/2000/svg}text")]
    assert "brake, instance 2: 0.0 ms; grey: other chains" in texts
    assert [text for text in texts if text in WAY] == list(dict.fromkeys(WAY))
    assert sorted(text for text in texts if text in (*WHATS, "lost message")) == sorted([*WHATS, "lost message"])
    for more, line in (
        (["kite"], "--chain kite: nothing of it was recorded; use one of: brake, camera"),
        (["brake", "--instance", "9"], "--instance 9: nothing of this instance of chain 'brake' was recorded"),
    ):
        out.unlink(missing_ok=True)
        status, refused = tide(*words, *more)
        assert (status, out.exists()) == (2, False) and line in refused


def test_what_a_trace_lacks_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    run = Run()
    run.instance(0, 0)
    run.daemon.append((9, 4, 3 << 8, trace.LOST, trace.NOT_RECEIVED))
    run.lane.append((10, 1 << 24, 3 << 8, trace.START, TIMER))  # its end is missing
    folder = run.write(tmp_path / "run")
    (folder / AGENT_TRACE).unlink()
    steps, problems = read_run(folder)
    assert [one.what for one in steps] == ["read", "lost message", "think", "move"]
    assert problems == [
        f"{folder / AGENT_TRACE}: cannot be read: No such file or directory; its contents are left out",
        f"{folder / 'client.trace'}: 4 frames to board 'client' arrived damaged, or found no free slot",
    ]


def test_a_budget_that_ran_out_has_a_track_of_its_own(tmp_path: Path) -> None:
    run = Run()
    run.instance(0, 0)
    folder = run.write(tmp_path / "run")
    rows: list[Row] = [(50, 0, 0, trace.BUDGET, 1), (90, 0, 0, trace.BUDGET, 0), (95, 0, 0, trace.BUDGET, 1)]
    with (folder / "client.trace").open("ab") as file:
        file.write(block(rows, source=34))
    steps, _ = read_run(folder)
    assert Step("budget of lane 2", 0, 50, 90, "client", "without budget", 50) in steps


def test_one_of_several_executors_has_to_be_named(tmp_path: Path) -> None:
    run = Run()
    run.instance(0, 0)
    folders = [run.write(tmp_path / name) for name in ("batch", "tide")]
    status, result = tide("trace", "export", tmp_path, "--to", "csv")
    assert status == 2 and "has runs of 2 executors; give one" in result and str(folders[1]) in result


def test_traces_of_another_version_are_refused(tmp_path: Path) -> None:
    run = Run()
    run.instance(0, 0)
    folder = run.write(tmp_path / "run")
    file = folder / "traces.json"
    file.write_text(file.read_text().replace('"version": 2', '"version": 1'))
    status, result = tide("trace", "export", folder, "--to", "csv")
    assert status == 2 and "is of another version; run tide run again" in result
