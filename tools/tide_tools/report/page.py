# SPDX-License-Identifier: Apache-2.0
"""A self-contained HTML page with verdict, charts, tables, machine and command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jinja2

from tide_tools.analysis.premises import GROUPS, group_of
from tide_tools.report import charts, table
from tide_tools.report.results import Period, Results


def write_page(results: Results, periods: Sequence[Period], path: Path) -> None:
    """Writes the page. periods: one period of each run for which it is known."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tide_tools.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    divided = [run for run in results.runs if any(chain.parts for chain in run.chains)]
    text = environment.get_template("page.html.j2").render(
        results=results,
        headings=table.HEADINGS,
        rows=table.rows(results),
        chain_rows=len(results.runs),
        conclusion=table.conclusion(results),
        summaries=table.summaries(results),
        latency=charts.latency_chart(results).svg(),
        timeline=charts.timeline_chart(periods).svg() if periods else None,
        verdict_headings=table.VERDICT_HEADINGS,
        verdict_first=lambda row: [*row[:2], row[-1], *row[2:-1]],
        weaknesses=table.weaknesses,
        groups=[
            (group, lambda run, group=group: [one for one in run.answers if group_of(one.id) == group])
            for group in GROUPS
        ],
        verdicts=table.verdict_rows(results),
        kinds={"": ""} | table.kinds_of(results.runs),
        parts=[(run, charts.parts_chart(run).svg(), table.part_rows(run)) for run in divided],
        answered=[run for run in results.runs if run.answers],
        partly=[run for run in results.runs if any(one.undisturbed for one in run.chains)],
        counters=[(run, table.counter_rows(run.counters)) for run in results.runs if run.counters],
        most_points=charts.MOST_POINTS,
    )
    path.write_text(text, encoding="utf-8")
