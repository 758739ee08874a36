# SPDX-License-Identifier: Apache-2.0
"""Measured execution times: from the lines that a program prints to a description that `tide check` accepts."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from commands import done, tide
from tide_tools.report.results import Machine, Results, Run
from tide_tools.run.evidence import of_own_boards
from tide_tools.system.load import load, parse
from tide_tools.trace.step import Step
from tide_tools.trace.times import PLAYED, Measured, MeasurementError, milliseconds, read, rewrite, run_text

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


# ---- from a run ----

PROGRAMS = """
[system]
name = "robot"

[[executors]]
name = "base"
where = "mcu"
command = "./base {device}"

[[executors]]
name = "brain"
where = "host"
command = "./brain"

[[executors]]
name = "log"
where = "host"

[[links]]
name = "uart"
kind = "serial"
baud = 921600
agent_ms = 5 # guessed
return_ms = 1 # guessed
source = "guessed"

[[chains]]
name = "loop"
priority = 2
period_ms = 100 # guessed: the rate
deadline_ms = 100 # guessed: the period
reliability = "reliable"
source = "guessed"
callbacks = [
  { name = "ask", kind = "timer", executor = "base", execution_ms = 1, publishes = { topic = "a", payload_bytes = 4 } },
  { name = "think", kind = "subscription", executor = "brain", execution_ms = 1, publishes = { topic = "b",
    payload_bytes = 40 } }, # guessed
  { name = "act", kind = "subscription", executor = "base", execution_ms = 1, publishes = { topic = "c",
    payload_bytes = 4 } },
  { name = "note", kind = "subscription", executor = "log", execution_ms = 1 },
]
"""


def rate(topic: str, mean_ns: int, longest_bytes: int) -> dict[str, object]:
    return {"topic": topic, "count": 50, "mean_ns": mean_ns, "longest_bytes": longest_bytes}


def leg(after: str, until: str, most_ns: int) -> dict[str, object]:
    return {"chain": "loop", "after": after, "until": until, "most_ns": most_ns, "least_ns": most_ns // 2, "count": 49}


SEEN = {
    "topics": [rate("a", 120_000_500, 8), rate("b", 100_000_000, 8), rate("c", 100_100_000, 6)],
    "legs": [leg("b", "c", 9_000_000), leg("a", "b", 3_000_000)],
    "traced": {"loop/ask": {"count": 48, "least_ns": 200_000, "most_ns": 700_000}},
    "handed": {"base": {"agent": {"sure_ns": 4_000_000, "upto_us": {"50": 30, "4000": 18}},
                        "return": {"sure_ns": 2_000_000, "upto_us": {"2000": 47}}}},
    "executions": {"loop/note": {"count": 48, "least_ns": 1, "most_ns": 990_000}},
}  # fmt: skip


def run_in(folder: Path, seen: dict[str, object], text: str = PROGRAMS, executor: str = "described") -> Path:
    folder.mkdir()
    machine = Machine(
        processor="", cores=2, memory_mib=1, kernel="", python="", real_time_priorities=True, load_average=0,
        date="2026-11-28 10:00 UTC",
    )  # fmt: skip
    run = Run(executor=executor, send=executor, periods=8, chains=[], evidence=seen)
    results = Results(system="robot", on="native", seed=1, command="", machine=machine, runs=[run])
    (folder / "results.json").write_text(results.to_json(), encoding="utf-8")
    (folder / "system.toml").write_text(text, encoding="utf-8")
    return folder


def test_what_a_run_measured_of_programs_goes_into_its_description(tmp_path: Path) -> None:
    status, output = tide("trace", "describe", run_in(tmp_path / "run", SEEN), "--out", tmp_path / "out.toml")
    assert status == 0
    assert "as described, because tide played them: loop/note\n" in output, "busy loops are no measurement"
    assert "as described, because the run could not see them: loop/act\n" in output
    text = (tmp_path / "out.toml").read_text(encoding="utf-8")
    system = parse(text)
    (loop,) = system.chains
    ask, think, act, _ = loop.callbacks
    assert loop.period_ns == 120_000_000 and "# measured: 50 messages, 120.001 ms apart in the mean" in text
    assert (ask.execution_ns, ask.least_ns) == (840_000, 200_000)
    assert (think.execution_ns, think.least_ns) == (3_600_000, 0), "a part of the way is DDS"
    assert [one.source for one in loop.callbacks] == [
        "measured 48 times on 2026-11-28, margin 20 %",
        "measured 49 times on 2026-11-28, margin 20 %",
        "estimated",
        "estimated",
    ]
    assert [one.sent_bytes for one in (ask, think, act)] == [8, 40, 6], "a longer described message stays"
    (link,) = system.links
    assert (link.agent_ms, link.return_ms, link.source) == (5, Decimal("2.4"), "guessed"), "the line has no adapter"
    assert "return_ms = 2.4 # measured: the longest of 47 messages, on an emulated link" in text
    assert "deadline_ms = 100 # guessed: the period" in text and loop.source == "guessed"


def test_delays_of_a_real_line_are_measured(tmp_path: Path) -> None:
    real = PROGRAMS.replace('command = "./base {device}"', 'attach = "/dev/ttyUSB0"')
    text, _ = run_text(run_in(tmp_path / "run", SEEN, real), 50)
    (link,) = parse(text).links
    assert (link.agent_ms, link.return_ms) == (6, 3)
    assert link.source == "measured 47 times on 2026-11-28, margin 50 %"


def test_a_run_that_measured_nothing_of_a_program_is_refused(tmp_path: Path) -> None:
    played = re.sub('command = ".*"\n', "", PROGRAMS)
    for number, (seen, text, executor, why) in enumerate((
        ({"executions": SEEN["executions"]}, played, "described", "tide played every part; name your programs by"),
        (SEEN, PROGRAMS, "tide", "has no run of a description as it is"),
        ({"topics": [rate("a", 1, 1_000_000_000)]}, PROGRAMS, "described", "cannot take what was measured: "),
    )):  # fmt: skip
        with pytest.raises(MeasurementError, match=why):
            run_text(run_in(tmp_path / f"run{number}", seen, text, executor), 20)
    (tmp_path / "run0/system.toml").unlink()
    with pytest.raises(MeasurementError, match="has no system"):
        run_text(tmp_path / "run0", 20)


def test_callbacks_of_own_boards_are_known_by_their_order_in_the_chain() -> None:
    def step(chain: str, place: str, what: str, took_ns: int) -> Step:
        return Step(chain, 0, 1000, 1000 + took_ns, place, what, 0)

    lane = "base, lane 0"
    steps = [step("loop", lane, "callback 0", 10), step("loop", lane, "callback 2", 30), step("loop", lane, "late", 0)]
    steps += [step("loop, counted by 'base'", lane, "callback 0", 20), step("loop", "log", "note", 50)]
    found = of_own_boards(parse(PROGRAMS), steps)
    assert found == {
        "loop/ask": {"count": 2, "least_ns": 10, "most_ns": 20},
        "loop/act": {"count": 1, "least_ns": 30, "most_ns": 30},
    }
    assert of_own_boards(parse(PROGRAMS), steps[:1]) == {}, "which of the two it was is not known"
