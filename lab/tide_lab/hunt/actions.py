# SPDX-License-Identifier: Apache-2.0
"""Chains of a drawn description in which a node asks a board for one service after the other, as for a goal and its
result."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Document = dict[str, Any]


def ask_for_result(chain: Document, hosts: Sequence[str], source: random.Random, share: float) -> None:
    """Of this share of the chains in which a node asks a board."""
    asks, serves, takes = (*chain["callbacks"], {}, {})[:3]
    asked = "requests" in asks and asks["executor"] in hosts and serves["executor"] not in hosts
    if not asked or source.random() >= share:
        return
    for name, kind, before in (("result", "service", serves), ("done", "client", takes)):
        callback = {"name": name, "kind": kind, "executor": before["executor"]}
        callback["execution_ms"] = round(source.uniform(0, 4), 2)
        chain["callbacks"].append(callback)
    for callback, sent in ((takes, "requests"), (chain["callbacks"][3], "replies")):
        size = source.choice((16, source.randint(1, 60)))
        service = {"service": f"{chain['name']}/result", "type": "std_srvs/srv/SetBool", "payload_bytes": size}
        callback[sent] = service
