# SPDX-License-Identifier: Apache-2.0
"""A board without an agent and a program of Cyclone DDS, which is on the network what a node with rmw_cyclonedds is:
topics and services both ways. Needs the system's packages cyclonedds-dev and cyclonedds-tools."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from reserved import domain
from ros import START_LIMIT_S, program
from tide_tools.programs.child import Children

SOURCES = Path(__file__).parent / "cyclone"
COUNT = 20
# The loopback interface has no multicast, so participants are found at their ports.
CONFIGURATION = """<General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces></General>
<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>31</MaxAutoParticipantIndex>
<Peers><Peer address="127.0.0.1"/></Peers></Discovery>"""


@pytest.mark.skipif(not shutil.which("idlc"), reason="no Cyclone DDS")
def test_topics_and_services_both_ways(tmp_path: Path) -> None:
    subprocess.run(["idlc", SOURCES / "ros.idl"], cwd=tmp_path, check=True)
    host = tmp_path / "cyclone_host"
    subprocess.run(["cc", "-I.", "-o", host, SOURCES / "cyclone_host.c", "ros.c", "-lddsc"], cwd=tmp_path, check=True)
    with Children() as children:
        board = children.start("board", [program("rtps_peer"), "--domain", str(domain())], tmp_path / "board.log")
        board.wait_line(lambda line: "ready" in line, START_LIMIT_S, "ready")
        words = [str(host), str(domain()), str(COUNT)]
        environment = {"CYCLONEDDS_URI": CONFIGURATION}
        nodes = children.start("nodes", words, tmp_path / "nodes.log", environment=environment)
        assert nodes.process.wait(2 * START_LIMIT_S) == 0, nodes.log.read_text()
        replies = [
            json.loads(board.wait_line(lambda line: "replied" in line, START_LIMIT_S, "a reply")) for _ in range(COUNT)
        ]
        board.process.terminate()
        assert board.process.wait(START_LIMIT_S) == 0
    assert [(one["replied"], bool(one["success"])) for one in replies] == [
        (number, number % 3 == 0) for number in range(1, COUNT + 1)
    ]
