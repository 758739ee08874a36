# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from messages.build import HERE, compile_c, run_tide
from messages.harness import Harness


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("common")
    run_tide("--out", out, "--all-common", "--registry")
    return out


@pytest.fixture(scope="session")
def harness(common: Path) -> Harness:
    return Harness(compile_c(HERE / "harness.c", common, common / "harness.so", "-shared", "-fPIC", "-O0"))


@pytest.fixture(scope="session")
def sanitized(common: Path) -> Path:
    """A program with sanitizers that reads records of serialised messages and stops at the first memory error."""
    options = ("-DHARNESS_PROGRAM", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    return compile_c(HERE / "harness.c", common, common / "harness", *options)
