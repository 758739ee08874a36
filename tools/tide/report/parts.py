# SPDX-License-Identifier: Apache-2.0
"""The parts of a latency: their names in results.json, and as a person reads them."""

from __future__ import annotations

# In the order in which they are shown.
NAMES = (
    "start",
    "processor_wait",
    "execution",
    "wire_wait",
    "wire",
    "agent",
    "node",
    "node_wait",
    "return",
    "repair",
    "elsewhere",
)
LABELS = {
    "start": "release to start",
    "processor_wait": "waiting for the processor",
    "execution": "execution",
    "wire_wait": "waiting for the wire",
    "wire": "the wire",
    "agent": "agent, to the node",
    "node": "ROS 2 node",
    "node_wait": "waiting for the node",
    "return": "return, to the line",
    "repair": "repair of lost frames",
    "elsewhere": "line, agent and node together",
}
