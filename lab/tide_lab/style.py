# SPDX-License-Identifier: Apache-2.0
"""The matplotlib style of the laboratory's plots."""

from __future__ import annotations

from typing import Any

INK = "#1a1a1a"
PLOT_STYLE: dict[str, Any] = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#808080",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "savefig.dpi": 150,
}
