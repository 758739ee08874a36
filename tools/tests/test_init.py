# SPDX-License-Identifier: Apache-2.0
"""tide new system: its output can be checked and simulated, and editors can complete it. The pages that are generated
from the schema are tested as well."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import jsonschema
import pytest
import tomli

from commands import done, tide
from tide_tools.system.load import load
from tide_tools.system.schema import json_schema, reference_page

ROOT = Path(__file__).parents[2]


run = partial(tide, COLUMNS="160")


@pytest.mark.parametrize(
    ("words", "boards", "kind"),
    [
        (("--board", "base", "--board", "arm"), 2, "serial"),
        (("--board", "base", "--baud", "115200"), 1, "serial"),
        (("--board", "rover", "--board", "mast", "--board", "gripper", "--link", "udp"), 3, "udp"),
        (("--no-board",), 0, None),
    ],
)
def test_a_start_is_checked_and_simulated(
    words: tuple[str, ...], boards: int, kind: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "robot.toml"
    status, output = run("new", "system", file, *words)
    assert status == 0 and output.startswith(
        f"{file}: its times are placeholders, for which tide check guarantees nothing"
    )
    system = load(file)
    assert len(system.boards()) == boards and {link.kind for link in system.links} == ({kind} if kind else set())
    assert len(system.chains) == 2 * boards + max(boards - 1, 0) + 1
    jsonschema.validate(tomli.loads(file.read_text(encoding="utf-8")), json_schema())
    status, output = run("check", file)
    assert status == 1 and output.startswith("no guarantee yet: "), output
    status, output = run("simulate", file, "--runs", "3")
    assert status == 0 and "are placeholders of tide new system" in output.splitlines()[1], output
    status, output = run("optimise", file, "--dry-run", "--tries", "20")
    assert "guaranteed" not in output and "with the placeholders of tide new system" in output, output
    status, output = run("new", "system", file, *words)
    assert status == 2 and "exists already" in output
    assert run("new", "system", file, *words, "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ((), "give --board NAME for each board, or --no-board"),
        (("--board", "Base"), "'Base' is not valid"),
        (("--board", "base", "--board", "base"), "there are two executors named 'base'"),
        (("--board", "nodes"), "there are two executors named 'nodes'"),
    ],
)
def test_what_cannot_be_written_is_one_line(words: tuple[str, ...], what: str, tmp_path: Path) -> None:
    status, output = run("new", "system", tmp_path / "x.toml", *words)
    assert status == 2 and what in output and len(output.splitlines()) == 1
    assert not (tmp_path / "x.toml").exists()


def test_the_pages_are_those_of_the_code() -> None:
    """`tide show --as reference --out docs/system_toml.md` and `tide show --as schema --out docs/system.schema.json`
    write these pages."""
    assert (ROOT / "docs/system_toml.md").read_text(encoding="utf-8") == reference_page()
    assert json.loads((ROOT / "docs/system.schema.json").read_text(encoding="utf-8")) == json_schema()


def test_the_reference_has_every_key() -> None:
    schema = json_schema()
    page = reference_page()
    for definition in (schema, *schema["$defs"].values()):
        for key, entry in definition["properties"].items():
            assert f"| `{key}` | " in page and entry["description"] in page, key
    assert "| `baud` | whole number, from 1,200 to 20,000,000 | an error | Bits per second" in page
    assert "| `heartbeat_delay_ms` | number, from 0 to 1,000 | none |" in page


def test_another_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "robot.toml"
    assert run("new", "system", file, "--no-board")[0] == 0
    text = file.read_text(encoding="utf-8")
    file.write_text("version = 1\n" + text, encoding="utf-8")
    assert load(file).version == 1
    file.write_text("version = 2\n" + text, encoding="utf-8")
    status, output = run("check", file)
    assert (status, output) == (2, f"{file}:1: 'version' is 2; write 1\n")


@pytest.mark.parametrize("file", sorted((ROOT / "examples/systems").glob("*.toml")), ids=lambda file: file.stem)
def test_examples_name_their_schema(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    hint = text.splitlines()[0].removeprefix("#:schema ")
    schema = json.loads((file.parent / hint).read_text(encoding="utf-8"))
    jsonschema.validate(tomli.loads(text), schema)


def test_numbers_that_nobody_measured_are_no_guarantee(tmp_path: Path) -> None:
    """For invented numbers, the output must not be a green "yes"."""
    file = tmp_path / "robot.toml"
    done("new", "system", file, "--board", "base", "--board", "arm")
    status, shown = tide("check", file)
    first, second, *_ = shown.splitlines()
    assert status == 1 and first.startswith("no guarantee yet") and "guaranteed" not in shown
    assert second == "0 of 23 times were measured; 23 are placeholders of tide new system"
    assert tide("check", file, "--require-measured")[0] == 1
    file.write_text(file.read_text(encoding="utf-8").replace('"placeholder"', '"estimated"'), encoding="utf-8")
    status, shown = tide("check", file)
    assert shown.startswith("every deadline is guaranteed") and "23 are estimates" in shown
    measured = '"measured 40 times on 2026-01-01, margin 20 %"'
    file.write_text(file.read_text(encoding="utf-8").replace('"estimated"', measured), encoding="utf-8")
    status, shown = tide("check", file, "--require-measured")
    assert status == 0 and "23 of 23 times were measured (40 runs at least, margin 20 %)" in shown


@pytest.mark.parametrize(
    ("type_name", "size", "says"),
    [
        ("sensor_msgs/msg/Imu", 3, "sensor_msgs/msg/Imu has 312 B at least, payload_bytes is 3"),
        ("sensor_msgs/msg/Immu", 340, "package 'sensor_msgs' has no such type"),
    ],
)
def test_messages_that_cannot_be_are_refused_by_every_command(
    tmp_path: Path, type_name: str, size: int, says: str
) -> None:
    file = tmp_path / "robot.toml"
    done("new", "system", file, "--board", "base")
    text = file.read_text(encoding="utf-8").replace("std_msgs/msg/String", type_name, 1)
    file.write_text(text.replace("payload_bytes = 32", f"payload_bytes = {size}", 1), encoding="utf-8")
    for words in (["check"], ["simulate"], ["optimise", "--dry-run"]):
        status, refused = tide(words[0], file, *words[1:])
        assert status == 2 and says in refused, refused
