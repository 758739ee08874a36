# SPDX-License-Identifier: Apache-2.0
"""The results of runs: statistics, the form of the file, the table, plots and the page."""

from __future__ import annotations

import io
import json
import re
from itertools import pairwise, product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from commands import results_of, tide
from tide_tools.report import charts
from tide_tools.report.page import write_page
from tide_tools.report.results import (
    Answer,
    ChainResult,
    PartResult,
    Period,
    Results,
    Run,
    Span,
    nearest_rank,
    running,
    summarise,
    write,
)
from tide_tools.report.table import conclusion, results_table, rows
from tide_tools.system.load import load
from tide_tools.terminal.style import empty_table, print_whole

THREE_CHAINS = load(Path(__file__).parents[2] / "examples/three_chains/system.toml")


def chain(name: str, priority: int, *latencies_ms: float, lost: int = 0) -> ChainResult:
    return summarise(name, priority, "reliable", 60_000_000, [int(value * 1e6) for value in latencies_ms], lost)


def results(line_loss: float = 0.0) -> Results:
    batch = [chain("brake", 3, 82.0, 82.5, 83.0), chain("steer", 2, 110, 111, lost=1), chain("battery", 1, 130)]
    tide = [chain("brake", 3, 41.0, 41.2, 41.3), chain("steer", 2, 55, 56, 57), chain("battery", 1)]
    return results_of(
        Run(executor="batch", send="stock", periods=3, chains=batch, counters={"executor": {"rounds": 3}}),
        Run(executor="tide", send="asynchronous", periods=3, chains=tide),
        line_loss=line_loss,
        link="115200 baud",
    )


def answered() -> Results:
    """results(), with bounds, parts and answers."""
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


def test_page_and_pictures_are_complete_and_self_contained(tmp_path: Path) -> None:
    spans = [Span("mcu", "brake", "sample", 0, 10_000_000), Span("up", "", "", 10_000_000, 20_000_000)]
    periods = [Period("batch", 1, 30_000_000, spans), Period("tide", 2, 20_000_000, spans)]
    page = tmp_path / "report.html"
    write_page(answered(), periods, page)
    text = page.read_text(encoding="utf-8")
    assert len(text) < 200_000 and "<script" not in text
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "https://" not in text and text.count("http://") == text.count('xmlns="http://www.w3.org/2000/svg"') == 3
    assert text.count("<table") == text.count("<caption>") and text.count("<th ") == text.count("<th scope=")
    for expected in ("82.5", "41.2", "&lt;test&gt; &amp; co", "tide run &#39;a b.toml&#39;"):
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
    assert "{&#39;" not in text and "False" not in text  # counters are words, not a dictionary


def test_a_page_of_many_instances_stays_small(tmp_path: Path) -> None:
    """The run has sixteen chains and four executors and takes an hour. Its page has at most 300 marks for each chain
    and executor, and 6,000 in all."""
    chains = [chain(f"chain_{number}", 99 - number, *range(1, 3601)) for number in range(16)]
    labels = (("batch", "stock"), ("batch", "blocking"), ("tide", "asynchronous"), ("tide-preemptive", "asynchronous"))
    runs = [Run(executor=executor, send=send, periods=3600, chains=chains) for executor, send in labels]
    write_page(results().model_copy(update={"runs": runs}), [], tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


def test_charts_of_nothing_do_not_fail(tmp_path: Path) -> None:
    empty = results().model_copy(
        update={"runs": [Run(executor="tide", send="asynchronous", periods=1, chains=[chain("brake", 3, lost=1)])]}
    )
    for drawn in (charts.latency_chart(empty), charts.timeline_chart([])):
        ElementTree.fromstring(drawn.svg(alone=True))
    write_page(empty, [], tmp_path / "report.html")


def test_report_command(tmp_path: Path) -> None:
    write(results(), tmp_path / "results.json")
    status, shown = tide("report", tmp_path)
    assert status == 1 and "brake" in shown and "with tide" in shown
    (tmp_path / "results.json").write_text('{"schema": 2}', encoding="utf-8")
    status, refused = tide("report", tmp_path)
    assert status == 2 and "repeat tide run" in refused
    assert tide("report", tmp_path / "none.json")[0] == 2


# ---- how the processor is used ----


SVG = "{http://www.w3.org/2000/svg}"


def drawn(spans: list[Span]) -> list[tuple[float, float, str]]:
    return board_of(charts.timeline_chart([Period("tide-preemptive", 1, 9_000_000, spans)]).svg())


def board_of(picture: str) -> list[tuple[float, float, str]]:
    """The bars in the board's row of the picture: begin and end in the numbers of the axis, and the chain. They are in
    the order of drawing, so of two bars at one place the later one is visible."""
    root = ElementTree.fromstring(picture)

    def percent(one: ElementTree.Element, key: str) -> float:
        return float((one.get(key) or "").removesuffix("%"))

    ticks = {float(one.text or ""): percent(one, "x") for one in root.iter(f"{SVG}text") if one.get("class") == "tick"}
    left, last = ticks[0], max(ticks)
    scale = last / (ticks[last] - left)
    bars = [one for one in root.iter(f"{SVG}svg") if one.get("class") == "bar"]
    first_row = min(float(one.get("y") or 0) for one in bars)
    return [
        (
            round((percent(one, "x") - left) * scale, 2),
            round((percent(one, "x") + percent(one, "width") - left) * scale, 2),
            (one.findtext(f"{SVG}title") or "").partition(",")[0],
        )
        for one in bars
        if float(one.get("y") or 0) == first_row
    ]


def test_a_preempted_callback_has_a_gap_in_which_the_urgent_one_is_seen() -> None:
    """A preempted callback must not be drawn over the callbacks that preempt it."""
    spans = [
        Span("mcu", "map", "plan", 0, 8_000_000),
        Span("mcu", "brake", "sample", 1_000_000, 2_000_000),
        Span("mcu", "arm", "sample", 3_000_000, 6_000_000),
        Span("mcu", "brake", "act", 4_000_000, 5_000_000),
    ]
    assert drawn(spans) == [
        (0, 1, "map"), (1, 2, "brake"), (2, 3, "map"), (3, 4, "arm"), (4, 5, "brake"), (5, 6, "arm"), (6, 8, "map"),
    ]  # fmt: skip


def test_the_guides_timeline_shows_callbacks_messages_and_who_preempts() -> None:
    picture = (Path(__file__).parents[2] / "docs/guide/timeline.svg").read_text(encoding="utf-8")
    titles = re.findall(r"<title>(\w+), (\w+): ", picture)
    steps = ("sample", "message", "decide", "act")
    assert set(titles) == set(product(("brake", "steer", "battery"), steps))
    assert len(titles) == picture.count('class="bar"'), "nothing else is drawn"
    assert all(f">{word}</text>" in picture for word in steps)
    row = board_of(picture)
    assert all(before[1] <= after[0] for before, after in pairwise(row)), "no bar hides another one"
    assert [chain for *_, chain in row] == "brake steer battery brake battery steer battery battery".split()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=8))
def test_pieces_are_all_the_time_that_the_processor_is_taken(times: list[tuple[int, int]]) -> None:
    """For every nesting and every order of ends, the callback that began last is shown as running; no bars overlap, and
    no time is lost."""
    spans = [Span("mcu", str(n), "", start, start + length) for n, (start, length) in enumerate(times)]
    pieces = running(spans)
    for at in range(100):
        under_way = [one for one in spans if one.start_ns <= at < one.end_ns]
        shown = [one for one in pieces if one.start_ns <= at < one.end_ns]
        assert len(shown) == min(len(under_way), 1), at
        assert not shown or shown[0].end_ns <= next(one.end_ns for one in spans if one.chain == shown[0].chain)
