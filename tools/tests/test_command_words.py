# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments and environment variables of commands: for each, the command prints one line and ends with status
2."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer import Context

import tide_tools
from commands import tide as run
from commands import tide_apart
from tide_tools.main import app, command_names, load_command
from tide_tools.programs.binaries import find_binary

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples/three_chains/system.toml")


def helps(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """The names and help texts of a command, of its subcommands, and of their options."""
    yield name, command.help or command.short_help or ""
    for parameter in command.params:
        yield f"{name} {parameter.opts[0]}", getattr(parameter, "help", None) or ""
    if hasattr(command, "list_commands"):
        context = Context(command)
        for below in command.list_commands(context):
            yield from helps(f"{name} {below}", command.get_command(context, below))


def test_every_help_text_begins_with_a_noun_or_a_verb() -> None:
    found = list(helps("tide", typer.main.get_command(app)))
    for name in command_names():
        found += helps(name, load_command(name))
    assert len(found) > 150
    article = re.compile(
        r"(?:The|A|An|Of|For|From|With|Without|In|On|Also|All|Added|Default|How|What|Where|Which|Whether|Only)\b|[^A-Z]"
    )
    assert [f"{name}: {text}" for name, text in found if not text or article.match(text)] == []


def test_the_usual_short_words() -> None:
    assert run("-V") == run("--version") == (0, f"tide {tide_tools.__version__}\n")
    for words in (["-h"], ["check", "-h"], ["trace", "-h"], ["trace", "times", "-h"]):
        status, output = run(*words)
        assert status == 0 and "Usage: " in output, words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["chek"], "tide: there is no command 'chek'; did you mean 'check'?"),
        (["zzz"], "tide: there is no command 'zzz'; use one of: agent, check, "),
        (["report"], "tide report: missing argument 'file'; see tide report --help"),
        (["check", EXAMPLE, "--losss", "1"], "tide check: no such option: --losss"),
        (["check", EXAMPLE, "--losses", "-1"], "tide check: invalid value for '--losses': "),
        (["run", EXAMPLE, "--executor", "x"], "tide run: invalid value for '--executor': "),
        (["trace", "tims"], "tide trace: no such command 'tims'. Did you mean 'times'?"),
        (["optimise", EXAMPLE, "one", "more"], "tide optimise: got unexpected extra argument"),
        (["check", EXAMPLE, "--margin", "20"], "--margin adds to measured times; name their file with --measured"),
        (["show", EXAMPLE, "--executor", "x"], "--executor is for --as levels and parameters; --as table has all"),
        (["show", "--as", "schema", "--executor", "x"], "--executor is for --as levels and parameters; --as schema"),
        (
            ["generate", "std_msgs/String", "--search", "/none"],
            "tide generate: /none: no such folder; correct --search",
        ),
    ],
)
def test_wrong_words_are_one_line(words: list[str], says: str) -> None:
    status, output = run(*words)
    assert status == 2
    (line,) = output.splitlines()
    assert line.startswith(says), line


@pytest.mark.parametrize("domain", ["500", "233", "abc", "-1", "1.5", "\u0661"])
def test_a_wrong_domain_is_told_before_the_work(domain: str, tmp_path: Path) -> None:
    status, output = run("run", EXAMPLE, "--out", str(tmp_path / "out"), ROS_DOMAIN_ID=domain)
    assert status == 2
    assert output.splitlines()[-1] == f"ROS_DOMAIN_ID is '{domain}'; set it to a number from 0 to 232"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--foo"], "tide-agent: there is no option --foo; see tide-agent --help"),
        (["--domain", "500"], "tide-agent: --domain: Value 500 not in range 0 to 232; see tide-agent --help"),
        (["--graph", "iron"], "tide-agent: --graph: iron is not one of humble, jazzy, off; see tide-agent --help"),
        (["--participants", "0"], "tide-agent: --participants: 0 is not one of client, domain; see tide-agent --help"),
        (["--udp"], "tide-agent: --udp: its value is missing; see tide-agent --help"),
        (["--serial", "--verbose"], "tide-agent: --serial: its value is missing; see tide-agent --help"),
        (
            ["--domain", "1", "--domain", "2"],
            "tide-agent: --domain: At Most 1 required but received 2; see tide-agent --help",
        ),
        ([], "tide-agent: nothing to serve; give --udp, --tcp or --serial"),
    ],
)
def test_the_agent_refuses_as_the_others_do(words: list[str], says: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
    command = [str(find_binary("tide-agent")), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (2, says + "\n")
    assert subprocess.run([command[0], "--help"], capture_output=True).returncode == 0


def test_the_agent_names_its_build() -> None:
    command = [str(find_binary("tide-agent")), "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert re.fullmatch(
        rf"tide-agent {re.escape(tide_tools.__version__)}( \([0-9a-f]{{7,40}}(-dirty)?\))?\n", done.stdout
    )


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["show", EXAMPLE, "--as", "json"], {"system", "executors", "links", "groups", "chains"}),
        (["optimise", EXAMPLE, "--tries", "5", "--json"], {"schema", "met", "changes", "before", "after"}),
    ],
)
def test_json_is_all_that_is_printed(words: list[str], keys: set[str]) -> None:
    status, output = run(*words)
    assert status in (0, 1)
    assert json.loads(output).keys() >= keys


def test_a_defect_has_a_status_that_no_verdict_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise KeyError("release_ns")

    monkeypatch.setattr("tide_tools.main.app", fail)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ending:
            importlib.import_module("tide_tools.start").main()
    finally:
        signal.signal(signal.SIGINT, before)  # main leaves SIGINT as a process that ends needs it
    assert ending.value.code == 70
    errors = capsys.readouterr().err
    assert "KeyError: 'release_ns'" in errors
    assert errors.splitlines()[-1].startswith("this is a defect of tide")


@pytest.mark.parametrize("name", [name for name in command_names() if name not in ("agent", "line")])
def test_help_breaks_where_the_terminal_does_and_gives_flags_no_value(name: str) -> None:
    """Help in 80 columns breaks no choice and no limit in the middle of a word."""
    for words, command in _commands(name, load_command(name)):
        for paragraph in re.split(r"\n\s*\n", command.help or ""):
            assert paragraph.startswith("  ") or "\n" not in paragraph, f"{words}: {paragraph}"
        assert not any("completion" in text for one in command.params for text in one.opts), words
        status, output = run(*words.split(), "--help", COLUMNS="80")
        assert status == 0 and "<bool>" not in output, output
        cells = [cell for line in output.splitlines() for cell in re.split(r"│|  +", line)]
        broken = [cell for cell in cells if re.search(r"<[a-z_]+(\|[a-z_]*)*$|\[\d+<=x<=\d*$", cell.strip())]
        assert broken == [], words


def _commands(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(f"{words} {name}", below)


@pytest.mark.parametrize("words", [("footprint", EXAMPLE), ("check", EXAMPLE), ("optimise", EXAMPLE)])
def test_without_the_analysis_every_command_says_what_to_build(words: tuple[str, ...], tmp_path: Path) -> None:
    done = tide_apart(*words, build=tmp_path, folder=ROOT)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    (line,) = done.stderr.splitlines()
    assert "the analysis is not built for this Python" in line and "run `make build`" in line
