# SPDX-License-Identifier: Apache-2.0
"""tide sweep on a Dask cluster of real processes, one of which dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from distributed import LocalCluster

from tide_lab.sweep.engine import EngineError, each
from tide_lab.sweep.study import STUDIES, blocks, changed


def test_a_worker_that_dies_changes_nothing(tmp_path: Path) -> None:
    study = changed(STUDIES["mt-schedulability-utilisation"], values=(0.4, 0.8, 1.2), sets=2000)
    expected = dict(each("local", study, blocks(study)))
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        worker_dashboard_address=None,
        local_directory=str(tmp_path),
        host="127.0.0.1",
    ) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        found = {}
        for block, counts in each(f"dask://{address}", study, blocks(study)):
            if not found:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)
            found[block] = counts
    assert found == expected


def test_no_scheduler_is_said_so() -> None:
    study = STUDIES["mt-schedulability-utilisation"]
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        list(each("dask://127.0.0.1:9", study, blocks(study)))
