# SPDX-License-Identifier: Apache-2.0
"""Measured execution times: from the lines that a program prints to a description that `tide check` accepts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands import done, tide
from tide_tools.system.load import load, parse
from tide_tools.trace.times import PLAYED, Measured, milliseconds, read, rewrite

SYSTEM = Path(__file__).parents[2] / "examples" / "three_chains" / "system.toml"
LOG = """boot
[  0.5] tide-execution brake/sample 3 9000000 9800001 28000000
tide-execution brake/act 2 100 2000000 2000100
tide-execution brake/sample 1 8000000 8000000 8000000
tide-execution steer/sample 0 0 0 0
tide-execution brake/sample cut
"""


def test_lines_of_one_callback_are_joined_and_others_ignored() -> None:
    times = read(LOG.splitlines())
    assert times == {
        ("brake", "sample"): Measured(4, 8_000_000, 9_800_001),
        ("brake", "act"): Measured(2, 100, 2_000_000),
    }


def test_description_keeps_its_text_and_gets_the_times() -> None:
    text = SYSTEM.read_text(encoding="utf-8")
    changed = rewrite(text, load(SYSTEM), read(LOG.splitlines()), 10.0)
    brake, steer = parse(changed).chains[:2]
    assert [callback.execution_ns for callback in brake.callbacks] == [10_780_002, 1_000_000, 2_200_000]
    assert [callback.least_ns for callback in brake.callbacks] == [8_000_000, 0, 100]
    assert [callback.execution_ns for callback in steer.callbacks] == [10_000_000, 1_000_000, 10_000_000]
    kept = [line for line in text.splitlines() if line in changed.splitlines()]
    assert len(text.splitlines()) - len(kept) <= 2


def test_a_second_rewriting_replaces_the_first() -> None:
    text = SYSTEM.read_text(encoding="utf-8")
    times = read(LOG.splitlines())
    once = rewrite(text, load(SYSTEM), times, 0.0)
    assert rewrite(once, parse(once), times, 0.0) == once


@pytest.mark.parametrize(("time_ns", "text"), [(0, "0"), (1, "0.000001"), (10_000_000, "10"), (2_500_000, "2.5")])
def test_milliseconds_are_exact(time_ns: int, text: str) -> None:
    assert milliseconds(time_ns) == text


def test_command_writes_what_check_reads(tmp_path: Path) -> None:
    log, out = tmp_path / "log", tmp_path / "measured.toml"
    log.write_text(LOG, encoding="utf-8")
    assert "9.800001" in done("trace", "times", SYSTEM, log, "--out", out)
    assert load(out).chains[0].callbacks[0].execution_ns == 9_800_001


def test_a_callback_that_the_description_lacks_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("tide-execution brake/other 1 1 1 1\n", encoding="utf-8")
    assert tide("trace", "times", SYSTEM, log)[0] == 2


def test_check_takes_measured_times(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("tide-execution brake/act 5 1000000 19000000 60000000\n", encoding="utf-8")

    def bound_ns(*words: str) -> int:
        status, told = tide("check", SYSTEM, "--json", *words)
        assert status in (0, 1), told
        return int(json.loads(told)["chains"][0]["bound_ns"])

    plain, measured = bound_ns(), bound_ns("--measured", str(log))
    more = bound_ns("--measured", str(log), "--margin", "10")
    assert measured >= plain + 9_000_000  # 19 ms were measured instead of 10
    assert more >= measured + 1_900_000


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("nothing\n", "no measurement in"),
        ("tide-execution brake/other 1 1 1 1\n", "has no callback brake/other"),
        ("tide-execution brake/act 1 1 90000000 90000000\n", "executes for longer than its deadline"),
    ],
)
def test_check_refuses_measurements_that_do_not_fit(tmp_path: Path, said: str, problem: str) -> None:
    log = tmp_path / "log"
    log.write_text(said, encoding="utf-8")
    status, told = tide("check", SYSTEM, "--measured", log)
    assert status == 2 and problem in told and told.count("\n") == 1
    assert tide("check", SYSTEM, "--measured", tmp_path / "none")[0] == 2


PUBLISHES = 'publishes = {{ topic = "t_{name}", payload_bytes = 8 }}'
TABLE = '[[chains.callbacks]]\nname = "{name}"\nkind = "{kind}"\nexecutor = "h"\n'
FORMS = {
    "tables": f"{TABLE}execution_ms = {{ms}}\n{PUBLISHES}\n",
    "commented": f"{TABLE}{PUBLISHES} # what\nexecution_ms   = {{ms}}# execution_ms = 9\n",
    "quoted": f"{TABLE.replace('name =', chr(34) + 'name' + chr(34) + ' =')}{PUBLISHES}\n'execution_ms' = {{ms}}\n",
    "inline": f'{{{{ execution_ms = {{ms}}, name = "{{name}}", kind = "{{kind}}", executor = "h", {PUBLISHES} }}}},\n',
    "one line": f'{{{{name="{{name}}",kind="{{kind}}",executor="h",{PUBLISHES},execution_ms={{ms}}}}}},',
}


def described(form: str, newline: str) -> str:
    callbacks = [FORMS[form].format(name=f"c{n}", kind="subscription" if n else "timer", ms="1.5") for n in range(3)]
    text = "".join(callbacks) if form not in ("inline", "one line") else "callbacks = [" + "".join(callbacks) + "]\n"
    head = '[system]\nname = "s"\n[[executors]]\nname = "h"\nwhere = "host"\n[[chains]]\nname = "a"\npriority = 1\n'
    whole = f'{head}period_ms = 100\ndeadline_ms = 100\nreliability = "reliable"\n{text}'
    return whole.replace("\n", newline)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("form", FORMS)
def test_however_the_callbacks_are_written(form: str, newline: str, tmp_path: Path) -> None:
    text = described(form, newline).removesuffix(newline if form == "quoted" else "")
    file, log, out = (tmp_path / name for name in ("system.toml", "log", "out.toml"))
    file.write_bytes(text.encode("utf-8"))
    log.write_text("tide-execution a/c0 1 2000000 3000000 3\ntide-execution a/c2 1 1 4000001 4\n", encoding="utf-8")
    done("trace", "times", file, log, "--out", out)
    new = load(out)
    assert [one.execution_ns for one in new.chains[0].callbacks] == [3_000_000, 1_500_000, 4_000_001]
    assert [one.least_ns for one in new.chains[0].callbacks] == [2_000_000, 0, 1]
    done("check", file, "--measured", log)
    changed = out.read_bytes().decode("utf-8")
    assert changed.count("#") == text.count("#")
    assert changed.count("\r") == (changed.count("\n") if newline == "\r\n" else 0)


def test_a_measured_time_says_so_and_times_of_busy_loops_are_refused(tmp_path: Path) -> None:
    log, out = tmp_path / "log.txt", tmp_path / "measured.toml"
    log.write_text("tide-execution brake/sample 40 9000000 10000000 380000000\n", encoding="utf-8")
    done("trace", "times", SYSTEM, log, "--out", out, "--margin", "20")
    (source,) = [one.source for one in load(out).chains[0].callbacks if one.name == "sample"]
    assert re.fullmatch(r"measured 40 times on \d{4}-\d\d-\d\d, margin 20 %", source)
    log.write_text(f"{PLAYED}\n{log.read_text(encoding='utf-8')}", encoding="utf-8")
    status, refused = tide("check", SYSTEM, "--measured", log)
    assert status == 2 and "tide's own busy loops" in refused
