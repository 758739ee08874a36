# SPDX-License-Identifier: Apache-2.0
"""Makes a large description: boards, each with a line of its own, and chains of every form between the boards and the
host. Chains of different boards have the same priorities, because nobody numbers a thousand chains by hand."""

from __future__ import annotations

from collections.abc import Iterator

BOARDS_A_HOST = 10  # the chains of this many boards share an executor of the host
PERIODS_MS = (50, 100, 100, 200, 200, 500, 500, 1000, 1000, 1000)


def fleet(boards: int = 100, chains: int = 10) -> str:
    """The description as text. `chains` is the number of chains of each board; with 10, each board has chains of every
    form."""
    lines = ["[system]", 'name = "fleet"']
    for host in range(-(-boards // BOARDS_A_HOST)):
        lines += ["[[executors]]", f'name = "cell_{host}"', 'where = "host"', "lanes = 4"]
    lines += ["[[executors]]", 'name = "record"', 'where = "host"', "lanes = 4"]
    for board in range(boards):
        lines += ["[[executors]]", f'name = "board_{board}"', 'where = "mcu"', f'link = "line_{board}"']
        lines += ["submit_ms = 0.02", "process_ms = 0.01"]
        lines += ["[[links]]", f'name = "line_{board}"', 'kind = "serial"', "baud = 921600"]
        lines += ["agent_ms = 0.5", "return_ms = 0.5"]
    for board in range(boards):
        for number in range(chains):
            lines += _chain(boards, board, number)
    return "\n".join(lines) + "\n"


def _chain(boards: int, board: int, number: int) -> Iterator[str]:
    here, there, host = f"board_{board}", f"board_{(board + 1) % boards}", f"cell_{board // BOARDS_A_HOST}"
    ways = ((here, host, here), (here, "record"), (host, here), (here, host), (here,), (here, host, there), (host,))
    way = ways[number % len(ways)]
    name, period_ms = f"b{board}_c{number}", PERIODS_MS[number % len(PERIODS_MS)]
    # Chains that share an executor of the host have different priorities, and so do those of a board.
    priority = 1000 * (number + 1) + (board if "record" in way else board % BOARDS_A_HOST if host in way else 0)
    yield "[[chains]]"
    yield f'name = "{name}"'
    yield f"priority = {priority}"
    yield f"period_ms = {period_ms}"
    yield f"deadline_ms = {period_ms}"
    yield f'reliability = "{"reliable" if number % 2 else "best_effort"}"'
    for place, executor in enumerate(way):
        yield "[[chains.callbacks]]"
        yield f'name = "step_{place}"'
        yield f'kind = "{"subscription" if place else "timer"}"'
        yield f'executor = "{executor}"'
        yield f"execution_ms = {0.1 if executor.startswith('board') else 0.05}"
        yield "least_ms = 0.05"
        if place < len(way) - 1:
            yield f'publishes = {{ topic = "{name}/t{place}", payload_bytes = {16 + 8 * (number % 4)} }}'
