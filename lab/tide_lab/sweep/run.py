# SPDX-License-Identifier: Apache-2.0
"""The blocks of a sweep, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from tide.campaign.engine import each, of_this_worker
from tide.programs.simulator import Simulator
from tide_lab.sweep.study import Block, Study, run_block

PROGRAM = "tide-analysis"


def each_block(
    engine: str, program: Simulator, study: Study, todo: Iterable[Block]
) -> Iterator[tuple[Block, dict[str, int]]]:
    """All blocks, in the order in which they finish. Workers need this package and tide-analysis."""
    return each(engine, program, partial(run_block, program, study), partial(_in_a_worker, study), todo)


def _in_a_worker(study: Study, block: Block) -> dict[str, int]:
    return run_block(of_this_worker(PROGRAM), study, block)
