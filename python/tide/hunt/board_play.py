# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

PROGRAM = "tide-sim"


class BoardPlayer:
    def __init__(self, *_: object) -> None:
        raise NotImplementedError
