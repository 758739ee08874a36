# SPDX-License-Identifier: Apache-2.0
"""A process that hunts descriptions, block after block: requests and answers are lines of JSON. Before each description
it prints the seed, so that the parent knows which one does not end."""

from __future__ import annotations

import json
import sys
from typing import Any

from tide_lab.hunt.whole import Servers, Trial, hunt_block


def main() -> None:
    servers = Servers()

    def at(seed: int) -> None:
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()

    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        trial = Trial(asked["schedules"], asked["climbs"])
        tally = hunt_block(asked["name"], asked["first"], asked["count"], trial, servers, at)
        print(json.dumps(tally.to_json()), flush=True)
    servers.close()


if __name__ == "__main__":
    main()
