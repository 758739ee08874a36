# SPDX-License-Identifier: Apache-2.0
"""What the description calls the parts of a run, for `tide describe`: the programs that run know roles only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tide.run.plan import RunChain
from tide.system.model import System

NAMES = "names.json"


@dataclass(frozen=True)
class CallbackNames:
    name: str
    executor: str


@dataclass(frozen=True)
class Names:
    """lanes by executor; callbacks by chain and role (sample, decide, act); reply_bytes by chain."""

    link: str
    lanes: dict[str, int]
    callbacks: dict[str, dict[str, CallbackNames]]
    reply_bytes: dict[str, int] = field(default_factory=dict)


def write_names(system: System, chains: Sequence[RunChain], path: Path) -> None:
    used = {callback.executor for chain in system.chains for callback in chain.callbacks}
    names = Names(
        system.links[0].name,
        {executor.name: executor.lanes for executor in system.executors if executor.name in used},
        {
            chain.chain.name: {
                role: CallbackNames(callback.name, callback.executor)
                for role, callback in (("sample", chain.sample), ("decide", chain.decide), ("act", chain.act))
            }
            for chain in chains
        },
        {chain.chain.name: chain.reply.payload_bytes for chain in chains},
    )
    path.write_text(json.dumps(asdict(names), indent=1) + "\n", encoding="utf-8")


def read_names(path: Path) -> Names | None:
    """None where there are none, as in results of older runs."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        callbacks = {
            chain: {role: CallbackNames(**one) for role, one in roles.items()}
            for chain, roles in data["callbacks"].items()
        }
        return Names(str(data["link"]), dict(data["lanes"]), callbacks, dict(data["reply_bytes"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
