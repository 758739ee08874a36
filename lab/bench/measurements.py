# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/measurements.md from the files in lab/results/: `make -C lab measurements`.

The text between <!-- NAME --> and <!-- end --> is replaced by a table; the rest of the page is written by hand. With
--check, nothing is changed, and the exit status is 1 if the page does not match the results."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/measurements.md"
RESULTS = ROOT / "lab/results"
PAIRS = ("tide", "tide, packed", "stock", "stock, packed", "stock client, tide agent")
HEADINGS = {
    "tide": "tide: one message a datagram",
    "tide, packed": "tide: packed by the library",
    "stock": "stock: one message a datagram",
    "stock, packed": "stock: packed by the program",
    "stock client, tide agent": "stock client, our agent",
}


def read(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return data


def rate(value: float) -> str:
    if value < 1000:
        return f"{value:.0f}"
    if value < 1_000_000:
        return f"{value / 1000:.1f}k"
    return f"{value / 1_000_000:.2f}M"


def lines_of(header: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    lines.insert(1, "|" + "---|" * len(header))
    return "\n".join(lines)


def origin(data: dict[str, Any]) -> str:
    """Machine and date, shown below each table."""
    machine = data["machine"]
    load = data.get("load_average", machine["load_average"])
    text = f"{load['min']} to {load['max']}" if isinstance(load, dict) else f"{load}"
    versions = ", ".join(f"{name} {version}" for name, version in data.get("versions", {}).items() if version)
    parts = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['kernel']}",
        f"load {text}",
        machine["date"],
        versions,
    ]
    return f"`{data['command']}`; {'; '.join(part for part in parts if part)}."


def pick(data: dict[str, Any], **wanted: object) -> dict[str, Any] | None:
    for row in data["rows"]:
        if all(row.get(key) == value for key, value in wanted.items()):
            found: dict[str, Any] = row
            return found
    return None


def rate_cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    lost = row.get("lost_share")
    suffix = f", {lost:.0%} lost" if lost is not None and lost >= 0.005 else ""
    return f"{rate(row['median'])} ({rate(row['min'])} to {rate(row['max'])}){suffix}"


def ratio(ours: dict[str, Any] | None, others: list[dict[str, Any] | None]) -> str:
    best = max((other["median"] for other in others if other is not None), default=0)
    return f"{ours['median'] / best:.1f}" if ours is not None and best > 0 else "-"


def rates(what: str) -> Callable[[], str]:
    def table() -> str:
        data = read("end_to_end")
        cases = sorted({(row["reliability"], row["payload_bytes"]) for row in data["rows"] if row["what"] == what})
        rows = []
        for reliability, size in cases:
            cells = [pick(data, what=what, reliability=reliability, payload_bytes=size, pair=pair) for pair in PAIRS]
            alone, packed = cells[0], cells[1] or cells[0]
            over = [ratio(alone, [cells[2]]), ratio(packed, [cells[2], cells[3]])]
            rows.append([f"{reliability.replace('_', ' ')}, {size} B", *map(rate_cell, cells), *over])
        ratios = ["ratio tide to stock, one message a datagram", "ratio packed tide to the faster stock form"]
        header = ["messages a second", *(HEADINGS[pair] for pair in PAIRS), *ratios]
        return f"{lines_of(header, rows)}\n\n{origin(data)}"

    return table


def agent_cost() -> str:
    data = read("end_to_end")
    cases = sorted({(row["reliability"], row["payload_bytes"]) for row in data["rows"] if row["what"] == "flood"})
    rows = []
    for reliability, size in cases:
        cells = [pick(data, what="flood", reliability=reliability, payload_bytes=size, pair=pair) for pair in PAIRS]
        costs = [f"{cell['agent_ns_a_message'] / 1000:.1f}" if cell is not None else "-" for cell in cells]
        rows.append([f"{reliability.replace('_', ' ')}, {size} B", *costs])
    header = ["CPU time of the agent per received message, us", *(HEADINGS[pair] for pair in PAIRS)]
    return lines_of(header, rows)


def requests() -> str:
    data = read("end_to_end")
    rows = []
    for pair in ("tide", "stock client, tide agent", "stock"):
        row = pick(data, what="request", pair=pair)
        lost = f"{row['lost_share']:.1%}" if row is not None else "-"
        cell = f"{row['median']:.0f} us ({row['min']:.0f} to {row['max']:.0f})" if row is not None else "-"
        rows.append([pair if pair != "tide" else "tide: client and agent", cell, lost])
    return f"{lines_of(['calls of an rclpy service, one after the other', 'median', 'not answered'], rows)}"


def _rclcpp_cell(values: list[Any]) -> str:
    """Callbacks a second, or latencies as median (p99); each figure is the median of all rounds."""
    if not values:
        return "-"
    if isinstance(values[0], dict):
        parts = [statistics.median(one[key] for one in values) for key in ("median_us", "p99_us")]
        return f"{parts[0]:.1f} ({parts[1]:.0f})"
    return f"{statistics.median(values):,.0f}"


def rclcpp_executors() -> str:
    data = read("rclcpp_executors")
    blocks = []
    for system, of_executor in data["chains"].items():
        rows = []
        for executor, rounds in of_executor.items():
            p99s = {chain: [one[chain]["p99_ms"] for one in rounds] for chain in rounds[0]}
            cells = [f"{statistics.median(all_ms):.1f} ({max(all_ms):.1f})" for all_ms in p99s.values()]
            rows.append([executor, f"{len(rounds)}", *cells])
        chains = list(next(iter(of_executor.values()))[0])
        title = f"p99 in ms of `{system}`: median of the rounds (worst round)"
        blocks.append(lines_of([title, "rounds", *chains], rows))
    executors = ("tide", "tide-each", "multi", "cbg-each")
    rows = [
        [f"`{kind}`", *(_rclcpp_cell(cells.get(name, [])) for name in executors)]
        for kind, cells in data["load"].items()
    ]
    blocks.append(lines_of(["`load`: callbacks a second, or latency in us: median (p99)", *executors], rows))
    return "\n\n".join([*blocks, origin(data)])


TABLES: dict[str, Callable[[], str]] = {
    "flood": rates("flood"),
    "lossless": rates("lossless"),
    "agent": agent_cost,
    "requests": requests,
    "rclcpp_executors": rclcpp_executors,
}


def spliced(page: str) -> str:
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        parts = pattern.split(page)
        if len(parts) != 4:
            raise typer.BadParameter(f"{PAGE.name} has {len(parts) // 3} places for the table '{name}', not one")
        page = "".join((parts[0], parts[1], table(), "\n", parts[2], parts[3]))
    return page


def main(
    check: Annotated[
        bool, typer.Option("--check", help="Compare only: fail if a table differs, and change nothing.")
    ] = False,
) -> None:
    """Write the tables of lab/results/ into docs/measurements.md."""
    before = PAGE.read_text(encoding="utf-8")
    after = spliced(before)
    if check and after != before:
        raise typer.BadParameter(
            f"{PAGE.relative_to(ROOT)} is not what lab/results/ says; run `make -C lab measurements`"
        )
    if not check:
        PAGE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
