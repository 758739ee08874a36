# SPDX-License-Identifier: Apache-2.0
"""One HTML page that needs nothing beside it: tables, plots, machine and command line."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import jinja2

from tide.report import answers, table
from tide.report.counters import counter_rows
from tide.report.references import Reference
from tide.report.results import Results


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


Pictures = tuple[Path, Path | None]  # latency, one period


def write_page(results: Results, references: Sequence[Reference], pictures: Pictures, path: Path) -> None:
    latency, timeline = pictures
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tide.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    text = environment.get_template("page.html.j2").render(
        results=results,
        headings=table.HEADINGS,
        rows=table.rows(results),
        chain_rows=len(results.runs),
        conclusion=table.conclusion(results),
        references=references,
        latency=_embedded(latency),
        timeline=_embedded(timeline) if timeline else None,
        verdict_headings=table.VERDICT_HEADINGS,
        verdicts=table.verdict_rows(results),
        good=table.VERDICT_COLOURS,
        parts=[(run, answers.part_rows(run)) for run in results.runs if any(chain.parts for chain in run.chains)],
        answered=[run for run in results.runs if run.answers],
        counters=[(run, counter_rows(run.counters)) for run in results.runs if run.counters],
    )
    path.write_text(text, encoding="utf-8")
