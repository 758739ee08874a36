# SPDX-License-Identifier: Apache-2.0
"""Results: statistics, file form, table, plots and page."""

from __future__ import annotations

import io
import json
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from tide.analysis.observed import Observation
from tide.main import app
from tide.report import charts
from tide.report.page import write_page
from tide.report.plots import latency_plot, observed_plot, sweep_plot, timeline_plot
from tide.report.references import references
from tide.report.results import (
    Answer,
    ChainResult,
    Machine,
    PartResult,
    Period,
    Results,
    Row,
    Run,
    Span,
    Sweep,
    nearest_rank,
    running,
    summarise,
    write,
)
from tide.report.table import conclusion, results_table, rows, sweep_table
from tide.system.load import load
from tide.system.variants import with_chain_count, with_reliability
from tide.terminal.style import empty_table, print_whole

THREE_CHAINS = load(Path(__file__).parents[2] / "examples/three_chains/system.toml")
MACHINE = Machine(
    processor="<test> & co",
    cores=2,
    memory_mib=1024,
    kernel="Linux 6",
    python="3.11",
    real_time_priorities=True,
    load_average=0.1,
    date="2025-01-01 00:00 UTC",
)


def chain(name: str, priority: int, *latencies_ms: float, lost: int = 0) -> ChainResult:
    return summarise(name, priority, "reliable", 60_000_000, [int(value * 1e6) for value in latencies_ms], lost)


def results(line_loss: float = 0.0) -> Results:
    batch = [chain("brake", 3, 82.0, 82.5, 83.0), chain("steer", 2, 110, 111, lost=1), chain("battery", 1, 130)]
    tide = [chain("brake", 3, 41.0, 41.2, 41.3), chain("steer", 2, 55, 56, 57), chain("battery", 1)]
    return Results(
        system="three_chains",
        on="native",
        seed=7,
        command="tide run 'a b.toml'",
        line_loss=line_loss,
        link="115200 baud",
        machine=MACHINE,
        runs=[
            Run(executor="batch", send="stock", periods=3, chains=batch, counters={"executor": {"rounds": 3}}),
            Run(executor="tide", send="asynchronous", periods=3, chains=tide),
        ],
    )


def answered() -> Results:
    """The same with bounds, parts and answers."""
    batch, tide = results().runs
    parts = [PartResult(name="start", most_ns=2_000_000, slowest_ns=1_000_000, bound_ns=5_000_000)]
    parts.append(PartResult(name="wire", most_ns=13_000_000, slowest_ns=13_000_000, bound_ns=13_500_000))
    chains = [tide.chains[0].model_copy(update={"bound_ns": 55_000_000, "parts": parts}), *tide.chains[1:]]
    answers = [Answer(id="losses", text="no frame is lost", verdict="broken", counter="3 frames lost")]
    counters = {
        "interrupted": False,
        "budgets": [],
        "transmitter": {"refused_full": 2},
        "line": {"a_to_b": {"bytes": 5}},
    }
    tide = tide.model_copy(update={"chains": chains, "answers": answers, "counters": counters})
    return results().model_copy(update={"runs": [batch, tide]})


def test_a_deadline_is_called_guaranteed_only_where_the_verdict_is() -> None:
    assert "guaranteed" not in (conclusion(answered()) or ""), "frames were lost, which the bound excludes"
    batch, tide = answered().runs
    held = tide.model_copy(update={"answers": [one.model_copy(update={"verdict": "held"}) for one in tide.answers]})
    sound = answered().model_copy(update={"runs": [batch, held]})
    assert "guaranteed only with tide" in (conclusion(sound) or "")


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300), st.integers(0, 10**12))
def test_statistics_follow_their_definitions(latencies: list[int], deadline: int) -> None:
    result = summarise("brake", 3, "reliable", deadline, latencies, 2)
    ordered = sorted(latencies)
    count = len(ordered)
    for percent, found in ((50, result.p50_ns), (99, result.p99_ns)):
        assert found in ordered
        at_most = sum(value <= found for value in ordered)
        below = sum(value < found for value in ordered)
        assert at_most * 100 >= percent * count > below * 100
    assert (result.min_ns, result.max_ns, result.samples, result.lost) == (ordered[0], ordered[-1], count, 2)
    assert result.deadline_misses == sum(value > deadline for value in ordered)
    assert result.mean_ns is not None and abs(result.mean_ns - sum(ordered) / count) <= 0.5 + 1e-3 * count
    mean = sum(ordered) / count
    variance = sum((value - mean) ** 2 for value in ordered) / count
    assert result.std_ns == pytest.approx(variance**0.5, abs=1)


def test_nearest_rank_by_hand() -> None:
    assert nearest_rank([10], 99) == 10
    assert nearest_rank(list(range(1, 101)), 50) == 50
    assert nearest_rank(list(range(1, 101)), 99) == 99
    assert nearest_rank(list(range(1, 61)), 99) == 60


def test_no_samples_give_nulls() -> None:
    result = chain("brake", 3, lost=4)
    assert (result.samples, result.lost, result.p50_ns, result.std_ns) == (0, 4, None, None)


def test_results_file_has_the_agreed_fields(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write(results(), path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["schema"] == 1 and data["system"] == "three_chains" and data["on"] == "native" and data["seed"] == 7
    first = data["runs"][0]["chains"][0]
    agreed = (
        "name priority samples min_ns p50_ns p99_ns max_ns mean_ns std_ns deadline_ns deadline_misses bound_ns lost"
    )
    assert set(agreed.split()) <= set(first)
    assert first["bound_ns"] is None and first["deadline_misses"] == 3
    assert Results.from_json(path.read_text(encoding="utf-8")) == results()


def test_table_lists_chain_by_chain() -> None:
    found = rows(results())
    assert [row[0] for row in found] == ["brake", "brake", "steer", "steer", "battery", "battery"]
    assert [row[1] for row in found[:2]] == ["batch, stock", "tide"]
    console = Console(width=100, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(results_table(results()))
    assert "82.5" in console.export_text()
    assert conclusion(results()) == "brake: 82.5 ms with the batch executor, 41.2 ms with tide"


@given(
    cells=st.lists(st.tuples(*[st.text("0123456789.-", min_size=1, max_size=30)] * 4), min_size=1, max_size=4),
    width=st.integers(20, 120),
    wraps=st.tuples(*[st.booleans()] * 4),
)
def test_no_figure_of_a_table_is_cut_off(cells: list[tuple[str, ...]], width: int, wraps: tuple[bool, ...]) -> None:
    text = io.StringIO()
    table = empty_table("title")
    for number, wrap in enumerate(wraps):
        table.add_column(f"a heading of {number}", justify="right", no_wrap=not wrap)
    for row in cells:
        table.add_row(*row)
    print_whole(Console(file=text, width=width), table)
    shown = text.getvalue().splitlines()
    for row in cells:
        assert any(line.split() == list(row) for line in shown), text.getvalue()


def test_a_table_that_fits_is_as_wide_as_its_cells_and_words_wrap() -> None:
    text = io.StringIO()
    table = empty_table()
    table.add_column("what", no_wrap=True)
    table.add_column("why")
    table.add_row("a figure", "word " * 40)
    print_whole(Console(file=text, width=60), table)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert text.getvalue().count("word") == 40


def test_references_belong_to_the_papers_set_up_only() -> None:
    assert [reference.latency_ms for reference in references(THREE_CHAINS, results())] == [
        82.2,
        46.1,
        40.2,
        85.03,
        41.07,
    ]
    assert references(THREE_CHAINS, results(line_loss=0.1)) == []
    best_effort = with_reliability(THREE_CHAINS, "best_effort")
    assert [reference.latency_ms for reference in references(best_effort, results())] == [40.5]
    assert references(with_chain_count(THREE_CHAINS, 5), results()) == []


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_plots_and_page_are_complete_and_self_contained(tmp_path: Path) -> None:
    known = references(THREE_CHAINS, results())
    latency, timeline = tmp_path / "latency.png", tmp_path / "timeline.png"
    latency_plot(results(), known, latency)
    spans = [Span("mcu", "brake", "sample", 0, 10_000_000), Span("up", "", "", 10_000_000, 20_000_000)]
    timeline_plot([Period("batch", 1, 30_000_000, spans), Period("tide", 2, 20_000_000, spans)], timeline)
    assert min(*png_size(latency), *png_size(timeline)) > 400
    page = tmp_path / "report.html"
    observed = tmp_path / "observed.png"
    above = Observation("tide", "brake", 20_000_000, 20_500_000, 60, "tide run x")
    observed_plot([above, Observation("tide", "steer", None, None, 0)], "three_chains", observed)
    write_page(answered(), known, [Period("batch", 1, 30_000_000, spans), Period("tide", 2, 20_000_000, spans)], page)
    text = page.read_text(encoding="utf-8")
    own = text.replace(charts.script(), "")
    assert len(own) < 200_000
    assert not re.search(r'(src|href)="(?!data:)', own) and "https://" not in own.replace("https://plot.ly", "")
    assert all(f'id="{chart}"' in own for chart in ("latency", "timeline", "parts0"))
    assert own.count("<table") == own.count("<caption>") and own.count("<th ") == own.count("<th scope=")
    text = own
    for expected in ("82.5", "41.2", "46.1 ms", "82.2 ms", "&lt;test&gt; &amp; co", "tide run &#39;a b.toml&#39;"):
        assert expected in text
    assert text.index("Verdict") < text.index(">Latency<") < text.index("How it was measured")
    for expected in (
        "met, guarantee void",
        "not met",
        "no frame is lost",
        "3 frames lost",
        "the wire",
        "refused full 2",
    ):
        assert expected in text, expected
    assert "{&#39;" not in text and "False" not in text  # counters are words


def test_plots_of_nothing_do_not_fail(tmp_path: Path) -> None:
    empty = results().model_copy(
        update={"runs": [Run(executor="tide", send="asynchronous", periods=1, chains=[chain("brake", 3, lost=1)])]}
    )
    latency_plot(empty, [], tmp_path / "latency.png")
    timeline_plot([], tmp_path / "timeline.png")
    write_page(empty, [], [], tmp_path / "report.html")


def test_sweep_table_and_plot(tmp_path: Path) -> None:
    points = [("tide", 1, 35.0), ("batch, stock", 1, 36.0), ("tide", 2, 36.0), ("batch, stock", 2, None)]
    sweep = Sweep(
        case="run-chains",
        on="native",
        seed=1,
        command="tide run",
        machine=MACHINE,
        rows=[
            Row(system=system, x={"chains": x}, metric="p50_ms", published=None, measured=y, samples=3)
            for system, x, y in points
        ],
    )
    console = Console(width=100, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    console.print(sweep_table(sweep))
    assert "36.0" in console.export_text()
    sweep_plot(sweep, "three_chains", "number of chains", tmp_path / "sweep.png")
    assert min(png_size(tmp_path / "sweep.png")) > 300


def test_report_command(tmp_path: Path) -> None:
    runner = CliRunner()
    write(results(), tmp_path / "results.json")
    shown = runner.invoke(app, ["report", str(tmp_path)])
    assert shown.exit_code == 1 and "brake" in shown.output and "with tide" in shown.output
    (tmp_path / "results.json").write_text('{"schema": 2}', encoding="utf-8")
    refused = runner.invoke(app, ["report", str(tmp_path)])
    assert refused.exit_code == 2 and "run tide run again" in refused.output
    assert runner.invoke(app, ["report", str(tmp_path / "none.json")]).exit_code == 2


# ---- who has the processor ----


def drawn(spans: list[Span]) -> list[tuple[float, float, str]]:
    """What the page draws on the board's row: begin, end and chain, in order of time."""
    figure = charts._timeline([Period("tide-preemptive", 1, 9_000_000, spans)])
    bars = [one for one in figure.data if one.type == "bar"]
    found = [
        (base, base + width, bar.name)
        for bar in bars
        for base, width, row in zip(bar.base, bar.x, bar.y, strict=True)
        if row == 0
    ]
    return sorted(found)


def test_a_preempted_callback_has_a_gap_in_which_the_urgent_one_is_seen() -> None:
    """It was drawn over those that preempted it, so the picture of preemption had none."""
    spans = [
        Span("mcu", "map", "plan", 0, 8_000_000),
        Span("mcu", "brake", "sample", 1_000_000, 2_000_000),
        Span("mcu", "arm", "sample", 3_000_000, 6_000_000),
        Span("mcu", "brake", "act", 4_000_000, 5_000_000),
    ]
    assert drawn(spans) == [
        (0, 1, "map"), (1, 2, "brake"), (2, 3, "map"), (3, 4, "arm"), (4, 5, "brake"), (5, 6, "arm"), (6, 8, "map"),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=8))
def test_pieces_are_all_the_time_that_the_processor_is_taken(times: list[tuple[int, int]]) -> None:
    """Nothing overlaps, nothing is lost: whoever began last is running, for every nesting and every order of ends."""
    spans = [Span("mcu", str(n), "", start, start + length) for n, (start, length) in enumerate(times)]
    pieces = running(spans)
    for at in range(100):
        under_way = [one for one in spans if one.start_ns <= at < one.end_ns]
        shown = [one for one in pieces if one.start_ns <= at < one.end_ns]
        assert len(shown) == min(len(under_way), 1), at
        assert not shown or shown[0].end_ns <= next(one.end_ns for one in spans if one.chain == shown[0].chain)
