# SPDX-License-Identifier: Apache-2.0
"""A script of gnuplot beside the logs of a run, as the published suite has one for each of its measurements."""

from __future__ import annotations

from pathlib import Path

SCRIPT = "latency.gnuplot"
PICTURE = "latency.gnuplot.png"
_LOG = ".measured.log"
_HISTOGRAM = "cyclictest.histogram.log"  # lines of value and count; the other logs have a value a line


def write_script(folder: Path, title: str) -> None:
    """For the logs that are in the folder. `gnuplot latency.gnuplot`, called there, draws them."""
    names = sorted(path.name.removesuffix(_LOG) for path in folder.glob(f"*{_LOG}"))
    curves = [f"'{name}{_LOG}' using (bin($1)):(1) smooth frequency with steps title '{name}'" for name in names]
    if (folder / _HISTOGRAM).exists():
        curves.append(f"'{_HISTOGRAM}' using (bin($1)):2 smooth frequency with steps title 'cyclictest'")
    if not curves:
        return
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "set terminal pngcairo size 1000,600",
        f"set output '{PICTURE}'",
        f"set title '{title}'",
        "set xlabel 'latency, us'",
        "set ylabel 'expiries'",
        "set logscale xy",
        "set key top right",
        "least = 0.1  # us: what is earlier stands there",
        "bin(x) = 10 ** (floor(log10(x < least ? least : x) * 30) / 30.0)",
        "plot " + ", \\\n     ".join(curves),
    ]
    (folder / SCRIPT).write_text("\n".join([*lines, ""]), encoding="ascii")
