# SPDX-License-Identifier: Apache-2.0
"""Style of the laboratory's plots, for matplotlib."""

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
