# SPDX-License-Identifier: Apache-2.0
"""A process that hunts descriptions, block after block; requests and answers are lines of JSON. Before each description
it prints the seed, so that the parent process knows which one does not end."""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

from tide_lab.hunt.whole import Trial, hunt_block


def main() -> None:
    gc.set_threshold(50_000)  # a description leaves some ten thousand objects, few of them in cycles

    def at(seed: int) -> None:
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()

    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        trial = Trial(asked["schedules"], asked["climbs"])
        tally = hunt_block(asked["name"], asked["first"], asked["count"], trial, at)
        print(json.dumps(tally.to_json()), flush=True)


if __name__ == "__main__":
    main()
