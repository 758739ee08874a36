# SPDX-License-Identifier: Apache-2.0
"""A process that hunts descriptions, block after block: requests in as lines of JSON, answers out, and before each
description its seed, so that whoever waits knows which one it is that does not end."""

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
