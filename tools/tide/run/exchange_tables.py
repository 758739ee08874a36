# SPDX-License-Identifier: Apache-2.0
"""What came of numbered messages both ways, for people."""

from __future__ import annotations

from rich.table import Table

from tide.run.exchange import Account, Way
from tide.terminal.style import empty_table


def exchange_tables(account: Account) -> list[Table]:
    """The messages of each chain and way, and the restarts of the agent if there were some."""
    tables = [_messages(account)]
    if account.outages:
        tables.append(_outages(account))
    return tables


def _messages(account: Account) -> Table:
    table = empty_table("numbered messages between the image in QEMU and rclpy")
    for heading in ("way", "chain"):
        table.add_column(heading, no_wrap=True)
    for heading in ("sent", "got", "lost", "doubled", "swapped", "changed", "retried", "dropped"):
        table.add_column(heading, justify="right")
    for way, ways in (("up", account.up), ("down", account.down)):
        for one in ways:
            counted = (one.lost, one.doubled, one.disordered, one.wrong, one.refused, one.dropped)
            numbers = (one.sent, len(one.received), *counted)
            table.add_row(way, one.chain, *map(str, numbers))
    return table


def _outages(account: Account) -> Table:
    table = empty_table("restarts of the agent: seconds")
    for heading in ("restart", "agent away", "nothing came up for", "nothing came down for"):
        table.add_column(heading, justify="right")
    for number, outage in enumerate(account.outages, 1):
        spans = (outage.gone_s, outage.silent_up_s, outage.silent_down_s)
        table.add_row(str(number), *(f"{span:.2f}" for span in spans))
    return table


def verdict(account: Account) -> str:
    def total(ways: list[Way], what: str) -> int:
        return sum(int(getattr(way, what)) for way in ways)

    ways = (("up", account.up), ("down", account.down))
    lost = ", ".join(f"{total(each, 'lost')} of {total(each, 'sent')} {way}" for way, each in ways)
    doubled = ", ".join(f"{total(each, 'doubled')} {way}" for way, each in ways)
    return (
        f"{len(account.outages)} restarts of the agent in {account.duration_s:.0f} s; lost: {lost}; doubled: {doubled}"
    )
