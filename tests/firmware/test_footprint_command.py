# SPDX-License-Identifier: Apache-2.0
"""`tide footprint` builds the client of a description; the resulting program starts and searches for an agent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from board import ROOT

from commands import done
from tide_tools.analysis.sizing import client_of, options
from tide_tools.footprint.build import build, runtime_sources
from tide_tools.footprint.stack import read
from tide_tools.system.load import parse

pytestmark = pytest.mark.full

SYSTEM = ROOT / "examples" / "three_chains" / "system.toml"
SERVICES = """
[system]
name = "asks_and_serves"
[[executors]]
name = "board"
where = "mcu"
[[executors]]
name = "host"
where = "host"
[[links]]
name = "line"
kind = "serial"
baud = 921600
"""
for _asks, _serves, _priority in (("board", "host", 2), ("host", "board", 1)):
    SERVICES += f"""
[[chains]]
name = "{_asks}_asks"
priority = {_priority}
period_ms = 100
deadline_ms = 100
reliability = "reliable"
callbacks = [
  {{ name = "ask", kind = "timer", executor = "{_asks}", execution_ms = 1,
    requests = {{ service = "{_serves}/set", type = "std_srvs/srv/SetBool" }} }},
  {{ name = "serve", kind = "service", executor = "{_serves}", execution_ms = 1,
    replies = {{ service = "{_serves}/set", type = "std_srvs/srv/SetBool", payload_bytes = 20 }} }},
  {{ name = "go_on", kind = "client", executor = "{_asks}", execution_ms = 0 }},
]
"""
# Functions that a program may set but this program does not, and functions whose callers are unknown.
OF_THE_PROGRAM = {"on_start", "on_end", "on_state", "wall_ns", "gc_callback", "done", "block", "handlers", "sink"}
OF_THE_PROGRAM |= {f"service_callback{form}" for form in ("", "_with_request_id", "_with_context")}
OF_THE_PROGRAM |= {"client_callback", "client_callback_with_request_id"}
OF_THE_PROGRAM |= {"allocate", "zero_allocate", "deallocate"}  # the allocator of a wait set
OF_THE_PROGRAM |= {"on_goal", "on_result", "on_cancel", "on_modification", "first_edition", "save"}
OF_THE_PROGRAM |= {"is_full"}  # RTPS over sockets
OF_THE_PROGRAM |= {"ready"}  # the hook of budgets, which a Cortex-M without an operating system does not use


def asks_for_an_agent(image: Path, sent: Path) -> bool:
    """Starts the image in QEMU. True if it sends the beginning of a frame within a second of its own time."""
    words = [
        "qemu-system-arm",
        "-M",
        "mps2-an500",
        "-display",
        "none",
        "-monitor",
        "none",
        "-icount",
        "shift=5,sleep=off",
    ]
    process = subprocess.Popen([*words, "-serial", f"file:{sent}", "-kernel", str(image)], stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return sent.exists() and sent.read_bytes()[:1] == b"\x7e"


def test_command_prints_sizes() -> None:
    result = json.loads(done("footprint", SYSTEM, "--json"))
    lean, whole = result["what the description needs"], result["everything"]
    assert 16_000 < lean["flash"] < whole["flash"] < 100_000
    assert 2_000 < lean["ram"] < whole["ram"]
    assert lean["message_memory"] == whole["message_memory"] > 8 * 128
    assert 500 < result["stack"]["the program, or its only lane"] < result["stack"]["all on one stack"] < 16_384
    assert result["one more"]["timer"] > 100
    assert {"action server", "action client", "parameters", "lifecycle", "graph"} <= set(result["one feature more"])
    assert 5_000 < result["one feature more"]["parameters"]["flash"] < 20_000


@pytest.mark.parametrize("text", [SYSTEM.read_text(encoding="utf-8"), SERVICES], ids=["topics", "services"])
def test_image_starts_and_every_pointer_of_the_graph_is_known(text: str, tmp_path: Path) -> None:
    client = client_of(parse(text))
    image = build(client, "cortex-m7", options(client), tmp_path, graph=True)
    assert asks_for_an_agent(image, tmp_path / "sent")
    graph = read(tmp_path.glob("*.ci"), [*runtime_sources(), tmp_path / "program.c"])
    assert graph.unresolved <= OF_THE_PROGRAM, "a call that the bound on the stack does not see"
