# SPDX-License-Identifier: Apache-2.0
"""Campaigns of seeds: interrupted ones go on."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tide_tools.main import app


def test_an_interrupted_campaign_of_seeds_goes_on(tmp_path: Path) -> None:
    words = ["simulate", "--seeds", "640", "--out", str(tmp_path)]
    campaign = {"settings": {"program": "tide-sim", "first": 1, "seeds": 640}}
    invented = {"block": [1, 10], "told": {"7": "kept from before"}}
    part = tmp_path / "checkpoint.jsonl"
    part.write_text(json.dumps(campaign) + "\n" + json.dumps(invented) + '\n{"block": [11', encoding="utf-8")
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1, result.output
    assert "seed 7: kept from before" in result.output
    assert json.loads((tmp_path / "campaign.json").read_text())["failed"] == {"7": "kept from before"}
    assert not part.exists()
    assert CliRunner().invoke(app, words).exit_code == 0


def test_a_campaign_of_other_seeds_is_not_mixed_in(tmp_path: Path) -> None:
    part = tmp_path / "checkpoint.jsonl"
    part.write_text('{"settings": {"program": "tide-sim", "first": 5, "seeds": 640}}\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["simulate", "--seeds", "640", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "belongs to a campaign with other settings" in result.output
    words = ["simulate", "--seeds", "64", "--out", str(tmp_path), "--restart"]
    assert CliRunner().invoke(app, words).exit_code == 0
