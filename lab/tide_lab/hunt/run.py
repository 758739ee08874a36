# SPDX-License-Identifier: Apache-2.0
"""The blocks of a hunt, on this machine or on a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from tide.campaign.engine import each, of_this_worker
from tide.programs.simulator import Simulator
from tide_lab.hunt.campaign import Block, hunt_block, hunt_descriptions, is_whole
from tide_lab.hunt.whole import is_description
from tide_lab.hunt.workers import Workers

PROGRAM = "tide-hunt"
Answers = list[dict[str, Any]]


def each_block(engine: str, schedules: int, climbs: int, todo: list[Block]) -> Iterator[tuple[Block, Answers]]:
    """All blocks, in the order in which they finish. Workers of a cluster need this package and the programs of the
    build; a description that is a file here is sent to them."""
    with Simulator(PROGRAM) as program, Workers() as workers:
        local = partial(_hunted, program, workers, schedules, climbs)
        remote = partial(_in_a_worker, schedules, climbs, _files(todo))
        try:
            yield from each(engine, program, local, remote, todo)
        except BaseException:
            workers.stop()  # threads that wait for them end
            raise


def _hunted(program: Simulator, workers: Workers, schedules: int, climbs: int, block: Block) -> Answers:
    if is_whole(block.quarry):
        return hunt_descriptions(workers, block, schedules, climbs)
    return [hunt_block(program, block, schedules, climbs)]


def _files(todo: Iterable[Block]) -> dict[str, str]:
    names = {block.quarry for block in todo if is_description(block.quarry)}
    return {name: Path(name).read_text(encoding="utf-8") for name in sorted(names)}


@cache
def _workers_here() -> Workers:
    return Workers()


def _in_a_worker(schedules: int, climbs: int, files: dict[str, str], block: Block) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        if block.quarry in files:
            path = Path(folder) / Path(block.quarry).name
            path.write_text(files[block.quarry], encoding="utf-8")
            block = replace(block, quarry=str(path))
        return _hunted(of_this_worker(PROGRAM), _workers_here(), schedules, climbs, block)
