# SPDX-License-Identifier: Apache-2.0
"""One HTML page that needs nothing beside it: tables, plots, machine and command line."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import jinja2

from tide.report import table
from tide.report.references import Reference
from tide.report.results import Results


def _embedded(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


Pictures = tuple[Path, Path | None, Path | None]  # latency, one period, observation and bound


def write_page(results: Results, references: Sequence[Reference], pictures: Pictures, path: Path) -> None:
    latency, timeline, observed = pictures
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
        observed=_embedded(observed) if observed else None,
    )
    path.write_text(text, encoding="utf-8")
