# SPDX-License-Identifier: Apache-2.0
"""A sweep's result as JSON, in the form of `tide lab reproduce`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tide_lab.sweep.study import SOURCE, Study


def write_json(study: Study, rows: list[dict[str, Any]], path: Path) -> None:
    entries = [
        {
            "system": f"{row['curve']} {row['variant']}",
            "x": {study.vary: row["value"]},
            "metric": "schedulable_percent",
            "published": None,
            "measured": 100 * row["share"],
            "low": 100 * row["low"],
            "high": 100 * row["high"],
            "samples": row["sets"],
        }
        for row in rows
    ]
    data = {
        "schema": 1,
        "case": study.case,
        "on": "analysis",
        "seed": study.seed,
        "source": SOURCE,
        "conditions": study.conditions(),
        "rows": entries,
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
