# SPDX-License-Identifier: Apache-2.0
"""Where the blocks of a campaign run: on the processors of this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from tide.programs.simulator import Simulator

Block = TypeVar("Block")
Answer = TypeVar("Answer")

LOCAL = "local"
HELP = "Place where blocks run: this machine, or the workers of a Dask cluster. Default: local."
METAVAR = "local|dask://HOST:PORT"
_SCHEME = "dask://"
ANSWER_LIMIT = "10s"  # for the scheduler, which may be remote
# Blocks queued for each thread of the cluster, so that a worker that has finished one finds the next.
_AHEAD = 3


class EngineError(Exception):
    """The engine cannot be used; the text says why and what to do."""


def require_engine(engine: str) -> None:
    """EngineError for an invalid name. Does not connect."""
    if engine != LOCAL and not (engine.startswith(_SCHEME) and ":" in engine.removeprefix(_SCHEME)):
        raise EngineError(f"--engine does not take '{engine}'; write local or dask://HOST:PORT")


def each(
    engine: str,
    simulator: Simulator,
    local: Callable[[Block], Answer],
    remote: Callable[[Block], Answer],
    blocks: Iterable[Block],
) -> Iterator[tuple[Block, Answer]]:
    """All blocks with their results, in the order in which they finish.

    `local` runs in threads of this process, with programs started by `simulator`, which an interruption ends. `remote`
    does the same in a worker of the cluster: it can be pickled, and a block runs again if its worker died.
    """
    require_engine(engine)
    if engine == LOCAL:
        return simulator.each(local, blocks)
    return _on_cluster(engine.removeprefix(_SCHEME), remote, iter(blocks))


@cache
def of_this_worker(program: str | Path) -> Simulator:
    """For `remote`: a worker's process may start any number of programs."""
    return Simulator(program)


def _on_cluster(
    address: str, remote: Callable[[Block], Answer], remaining: Iterator[Block]
) -> Iterator[tuple[Block, Answer]]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise EngineError("--engine dask:// needs the package distributed; install tide[cluster]") from None
    try:
        client: Any = Client(f"tcp://{address}", timeout=ANSWER_LIMIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(f"no Dask scheduler answers at {address}: {error}; start `dask scheduler` there") from None
    with client:
        if not client.ncores():
            raise EngineError(f"the Dask scheduler at {address} has no workers; start `dask worker tcp://{address}`")
        pending: dict[Any, Block] = {}

        def submit() -> Iterator[Any]:
            room = _AHEAD * max(1, sum(client.ncores().values())) - len(pending)
            for block in islice(remaining, max(0, room)):
                future = client.submit(remote, block, pure=False)
                pending[future] = block
                yield future

        finished = as_completed(list(submit()), loop=client.loop)
        for future in finished:
            block = pending.pop(future)
            yield block, _result(future, address)
            for more in submit():
                finished.add(more)


def _result(future: Any, address: str) -> Any:
    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise EngineError(f"workers of the Dask cluster at {address} died over the same block: {error}") from None
