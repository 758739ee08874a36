# SPDX-License-Identifier: Apache-2.0
"""Figures 9 to 11 as `tide lab reproduce` runs them: with several recipes for chain sets, because the paper does not
state its recipe completely and the choice matters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from tide_lab.sweep.claims import CLAIMS, Shares
from tide_lab.sweep.command import run_study
from tide_lab.sweep.study import STUDIES, VARIANTS, Study
from tide_tools.outputs import write_text, written
from tide_tools.terminal.style import empty_table, print_whole

RECIPES: dict[str, dict[str, Any]] = {
    "short-periods": {"shortest_ms": 10, "longest_ms": 100},
    "log-uniform": {"shortest_ms": 10, "longest_ms": 1000, "periods": "log_uniform"},
    "random-priorities": {"priorities": "random"},
    "dirichlet-rescale": {"shares": "dirichlet_rescale"},
}
QUICK_SETS = 50


def reproduce_figure(case: str, sets: int | None, seed: int, folder: Path, quick: bool) -> None:
    study = replace(STUDIES[case], seed=seed)
    if sets is not None:
        study = replace(study, sets=sets)
    if quick:
        ends = (study.values[0], study.values[-1])
        study = replace(study, values=ends, sets=sets or QUICK_SETS)
    rows = {"stated": run_study(study, folder)}
    others = {} if quick else {name: replace(study, **fields) for name, fields in RECIPES.items()}
    for name, other in others.items():
        rows[name] = run_study(other, folder / name, brief=True)
    _print_claims(study, rows)
    if not others:
        return
    from tide_lab.sweep.plot import variants_plot

    with written(folder / "variants.png") as path:
        variants_plot({"stated": study, **others}, rows, path)
    claims = [
        {
            "recipe": name,
            "bounds": variant,
            "claim": claim.text,
            "paper": claim.paper,
            "measured": claim.measure(shares),
        }
        for name, table in rows.items()
        for variant, shares in ((variant, Shares(table, variant)) for variant in VARIANTS)
        for claim in CLAIMS[case]
    ]
    conditions = {name: one.conditions() for name, one in {"stated": study, **others}.items()}
    data = {"schema": 1, "case": case, "seed": seed, "conditions": conditions, "claims": claims}
    write_text(folder / "claims.json", json.dumps(data, indent=1) + "\n")
    Console(emoji=False).print(f"{folder}/: variants.png, claims.json, and a folder for each recipe", soft_wrap=True)


def _print_claims(study: Study, rows: dict[str, list[dict[str, Any]]]) -> None:
    for variant in VARIANTS:
        table = empty_table(f"what the paper states, by {variant} bounds")
        table.add_column("statement", no_wrap=True)
        table.add_column("paper", justify="right")
        for name in rows:
            table.add_column(name.replace("-", " "), justify="right")
        for claim in CLAIMS[study.case]:
            cells = [f"{claim.measure(Shares(one, variant)):.1f}" for one in rows.values()]
            table.add_row(claim.text, claim.paper, *cells)
        print_whole(Console(emoji=False), table)
