# SPDX-License-Identifier: Apache-2.0
"""`tide show --as parameters` writes the parameters of an executor for rclcpp, which therefore need not read a
system.toml."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from commands import tide
from descriptions import board, chain, described, host, line
from tide_tools.main import app
from tide_tools.system.load import parse
from tide_tools.system.ros_parameters import parameters_file

ROOT = Path(__file__).parents[2]
PLAIN = """
[system]
name = "s"
[[executors]]
name = "main"
where = "host"
lanes = 2
[[groups]]
name = "all"
kind = "reentrant"
[[chains]]
name = "c1"
priority = 4
period_ms = 1000
deadline_ms = 2000
reliability = "reliable"
[[chains.callbacks]]
name = "sense"
kind = "timer"
executor = "main"
group = "all"
execution_ms = 6
publishes = { topic = "c1/sense", payload_bytes = 8 }
[[chains.callbacks]]
name = "plan"
kind = "subscription"
executor = "main"
group = "all"
execution_ms = 8
"""
SPELLINGS = [
    ("period_ms = 1000", "period_ms = 1_000"),
    ("period_ms = 1000", "period_ms = +1000"),
    ("period_ms = 1000", "period_ms = 1e3"),
    ("period_ms = 1000", "period_ms = 0x3E8"),
    ("[[chains]]", "[[ chains ]]"),
    ("[[chains.callbacks]]", "[[ chains . callbacks ]]"),
    ('"c1/sense"', r'"c1\u002Fsense"'),
    ('"c1/sense"', "'''c1/sense'''"),
    ('"c1/sense"', '"""c1/sense"""'),
    ('"c1/sense"', '"/c1/sense"'),
    ("publishes = {", '"publishes" = {'),
    (
        'publishes = { topic = "c1/sense", payload_bytes = 8 }',
        'publishes . topic = "c1/sense"\npublishes.payload_bytes = 8',
    ),
    (
        'publishes = { topic = "c1/sense", payload_bytes = 8 }',
        '[chains.callbacks.publishes]\ntopic = "c1/sense"\npayload_bytes = 8',
    ),
]


def words(text: str, executor: str | None = None) -> dict[str, list[str]]:
    document = yaml.safe_load(parameters_file(parse(text, "system.toml"), executor, "test"))
    assert list(document) == ["/**"], "of every node of the process"
    return document["/**"]["ros__parameters"]  # type: ignore[no-any-return]


def test_chains_and_lanes() -> None:
    assert words(PLAIN) == {
        "tide.chains": ["c1 4: timer * 1s as sense, subscription * /c1/sense as plan"],
        "tide.lanes": ["main_1 from 0", "main_2 from 0"],
    }


@pytest.mark.parametrize(("old", "new"), SPELLINGS)
def test_every_spelling_of_toml_is_the_same(old: str, new: str) -> None:
    assert old in PLAIN
    assert words(PLAIN.replace(old, new)) == words(PLAIN)


def test_what_is_elsewhere_is_remote_and_priorities_of_callbacks_are_kept() -> None:
    first = ("board", 0.1, {"publishes": {"topic": "a", "payload_bytes": 8}})
    text = described(
        board("board", link="usb"),
        line("usb"),
        host("long_executor_name", budget_ms=2.5, budget_period_ms=10),
        chain("main", 7, first, ("long_executor_name", 0.1, {"name": "filter", "priority": 900}), period_ms=12.5),
    )
    assert words(text) == {
        "tide.chains": ["main 7: remote, subscription * /a as filter priority 900"],
        "tide.lanes": ["long_executo_1 from 0 budget 2.5ms 10ms fifo 50"],
    }


def test_services_are_known_by_their_names() -> None:
    kind = 'type = "std_srvs/srv/Trigger", payload_bytes = 40'
    text = PLAIN.replace(
        'publishes = { topic = "c1/sense", payload_bytes = 8 }', f'requests = {{ service = "arm/close", {kind} }}'
    ).replace('kind = "subscription"', f'kind = "service"\nreplies = {{ service = "arm/close", {kind} }}')
    text += '[[chains.callbacks]]\nname = "done"\nkind = "client"\nexecutor = "main"\ngroup = "all"\nexecution_ms = 1\n'
    assert words(text)["tide.chains"] == [
        "c1 4: timer * 1s as sense, service * /arm/close as plan, client * /arm/close as done"
    ]


def test_a_join_has_a_subscription_for_each_message_and_one_name() -> None:
    """The tests of the executor for rclcpp read sensors.yaml, so it must be what the command writes."""
    command = ["show", "examples/systems/host_pipeline.toml", "--as", "parameters", "--executor"]
    file = ROOT / "ros/tide_rclcpp/tests/plain/sensors.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        assert tide(*command, "sensors")[1] == file.read_text(encoding="utf-8")
        fusion = tide(*command, "fusion")[1]
    assert '"depth 6: subscription * /left/image as match priority 1538, remote, ' in fusion
    assert 'subscription * /right/image as match"' in fusion, "its place in the chain gives it the same priority"


def test_an_executor_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "system.toml"
    file.write_text(PLAIN, encoding="utf-8")
    result = CliRunner().invoke(app, ["show", str(file), "--as", "parameters", "--executor", "mine"])
    assert result.exit_code != 0
    assert "no executor of the host has the name 'mine'; use one of: main" in f"{result.exception}{result.output}"
