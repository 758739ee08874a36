# SPDX-License-Identifier: Apache-2.0
"""The action of the guide is described by its services and its topic. It is checked and simulated."""

from __future__ import annotations

import re
from pathlib import Path

from tide_tools.analysis.bounds import bounds_of
from tide_tools.analysis.sizing import client_of, pools
from tide_tools.simulate.described import simulate_description
from tide_tools.system.load import parse

GUIDE = Path(__file__).parents[2] / "docs/guide/checking.md"
_FILE = re.compile(r"<!-- file: action.toml -->\n```toml\n(.*?)```", re.S)


def described() -> str:
    found = _FILE.search(GUIDE.read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def test_the_guides_action_keeps_to_its_bounds_in_virtual_time() -> None:
    system = parse(described())
    assert bounds_of(system).met
    outcome = simulate_description(system, None, 20, 1, search=False)
    assert not outcome.is_broken and not outcome.full
    pick, progress = (next(one for one in outcome.seen if one.chain == name) for name in ("pick", "progress"))
    assert min(pick.ended, progress.ended) > 0 and pick.lost == progress.lost == 0
    own_ms = 2 + 0.5 + 0.5 + 10 + 1
    assert pick.worst_ns >= own_ms * 1_000_000, "the result is part of it"


def test_parts_of_an_action_that_no_bound_counts_are_named() -> None:
    status = """
[[chains]]
name = "states"
priority = 5
period_ms = 160
deadline_ms = 160
reliability = "reliable"

[[chains.callbacks]]
name = "change"
kind = "timer"
executor = "arm"
execution_ms = 0.1
publishes = { topic = "/pick/_action/status", type = "action_msgs/msg/GoalStatusArray", payload_bytes = 60 }

[[chains.callbacks]]
name = "watch"
kind = "subscription"
executor = "planner"
execution_ms = 0.1
"""
    parts = ["pick/_action/status", "pick/_action/cancel_goal"]
    for text, missing in ((described(), parts), (described() + status, parts[1:])):
        (premise,) = (one.text for one in bounds_of(parse(text)).assumptions if one.id == "undescribed")
        assert [part for part in parts if part in premise] == missing


def test_a_header_has_the_action_in_place_of_its_services_and_topics() -> None:
    entries = ("PUBLISHERS", "SUBSCRIPTIONS", "SERVICES", "CLIENTS", "ACTION_SERVERS", "ACTION_CLIENTS")
    for text, counts in ((described(), (0, 0, 0, 0, 1, 0)), (exchanged(), (0, 0, 0, 0, 0, 1))):
        sizes = pools(client_of(parse(text)))
        assert tuple(sizes.get(f"TIDE_{name}", 0) for name in entries) == counts
        assert sizes["TIDE_NAME_BYTES"] > len("rt/pick/_action/cancel_goal")
        assert sizes.get("TIDE_ACTION_RESULT_BYTES", 0) == 60 * counts[4]


def test_types_of_an_action_say_their_sizes() -> None:
    """The types are those of test_msgs, which is installed. Their goal has the same fields as that of the guide."""
    text = re.sub(r"(Fibonacci_SendGoal\"), payload_bytes = \d+", r"\1", described())
    system = parse(text.replace("example_interfaces", "test_msgs"))
    assert [one.sent_bytes for one in system.chain("pick").callbacks] == [20, 12, 16, 60, 0]


def exchanged() -> str:
    """A description in which the board is the client of the action and the host its server."""
    text = (
        described()
        .replace('executor = "planner"', 'executor = "X"')
        .replace('executor = "arm"', 'executor = "planner"')
    )
    return text.replace('executor = "X"', 'executor = "arm"')


def test_a_board_that_asks_for_two_services_keeps_to_its_bounds() -> None:
    system = parse(exchanged())
    outcome = simulate_description(system, None, 10, 1, search=False)
    assert not outcome.is_broken and not outcome.full
    (pick,) = (one for one in outcome.seen if one.chain == "pick" and one.until is None)
    assert pick.ended > 0 and pick.lost == 0
