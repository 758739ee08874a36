# SPDX-License-Identifier: Apache-2.0
"""lab/bench/attacks.py: during an attack, regular clients lose nothing, and another client can still connect. These
tests do not check the rates that the bench measures."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 1.0


@pytest.fixture(scope="module")
def attacks() -> ModuleType:
    sys.path.insert(0, str(ROOT / "lab/bench"))
    import attacks as module

    return module


@pytest.mark.parametrize("name", ["half-open", "replayed", "alternating", "garbage", "damaged", "churn"])
def test_good_clients_lose_nothing(attacks: ModuleType, name: str) -> None:
    told = attacks.measure(name, SECONDS, [])
    assert told["sent"] == told["acknowledged"] > 0, told
    assert told["newcomer_ms"] is not None, told
    assert told["datagrams_a_second"] > 0, "there was no attack"
