# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from projects import ROOT, UNOPTIMISED, run


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix in which a runtime is installed that was built without a C++ compiler."""
    folder = tmp_path_factory.mktemp("install")
    without_cpp = {"CXX": "/nonexistent/c++"}
    options = ["-DTIDE_TESTS=OFF", UNOPTIMISED, f"-DCMAKE_INSTALL_PREFIX={folder / 'prefix'}"]
    run(["cmake", "-S", ROOT / "runtime", "-B", folder / "build", "-G", "Ninja", *options], folder, without_cpp)
    run(["cmake", "--build", folder / "build", "-j", "2"], folder)
    run(["cmake", "--install", folder / "build", "--prefix", folder / "removed"], folder)
    assert (folder / "removed/lib/libtide.a").exists()
    run(["cmake", "--build", folder / "build", "--target", "uninstall"], folder)
    assert not (folder / "removed").exists()
    run(["cmake", "--install", folder / "build"], folder)
    shutil.rmtree(folder / "build")
    return folder / "prefix"
