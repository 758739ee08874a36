# SPDX-License-Identifier: Apache-2.0
"""Where blocks run: on the processors of this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from tide.programs.binaries import find_binary
from tide.programs.simulator import workers
from tide_lab.sweep.study import Block, Study, run_block, words

Finished = tuple[Block, dict[str, int]]


class EngineError(Exception):
    """The engine cannot be used; the text says why and what to do."""


def each(engine: str, study: Study, todo: Iterable[Block]) -> Iterator[Finished]:
    """All blocks, in the order in which they finish. engine: local or dask://HOST:PORT."""
    if engine == "local":
        return _local(study, todo)
    if engine.startswith("dask://") and engine.removeprefix("dask://"):
        return _dask(engine.removeprefix("dask://"), study, todo)
    raise EngineError(f"--engine does not take '{engine}'; write local or dask://HOST:PORT")


def _local(study: Study, todo: Iterable[Block]) -> Iterator[Finished]:
    binary = str(find_binary("tide-analysis"))
    remaining = iter(todo)
    pending: dict[Future[dict[str, int]], Block] = {}
    with ThreadPoolExecutor(workers()) as pool:
        try:
            while True:
                while len(pending) <= workers() and (block := next(remaining, None)) is not None:
                    pending[pool.submit(run_block, binary, words(study, block))] = block
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(future), future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _dask(address: str, study: Study, todo: Iterable[Block]) -> Iterator[Finished]:
    """Workers need this package and tide-analysis at the same place. A block whose worker dies runs on another."""
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise EngineError("--engine dask:// needs the package distributed; install tide[cluster]") from None
    binary = str(find_binary("tide-analysis"))
    try:
        client: Any = Client(f"tcp://{address}", timeout="10s", set_as_default=False)
    except OSError as error:
        raise EngineError(f"no Dask scheduler answers at {address}: {error}; start `dask scheduler` there") from None
    with client:
        futures = {client.submit(run_block, binary, words(study, block), pure=False): block for block in todo}
        for future in as_completed(list(futures), loop=client.loop):
            yield futures[future], future.result()
