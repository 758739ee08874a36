# SPDX-License-Identifier: Apache-2.0
"""A package of types for rclpy, made from .idl files by the generators that ROS 2's wheels bring, and a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from unittest import mock

import numpy as np
from rosidl_generator_c.cli import GenerateC
from rosidl_generator_py.cli import GeneratePython
from rosidl_typesupport_c.cli import GenerateCTypesupport
from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport

WHEELS = Path(sys.prefix)
SUPPORT = ["rosidl_typesupport_fastrtps_c"]  # one alone is linked, not searched for
LIBRARIES = ["rosidl_typesupport_fastrtps_c", "rosidl_typesupport_fastrtps_cpp", "rosidl_typesupport_c"]
LIBRARIES += ["rosidl_runtime_c", "rmw", "rcutils", "fastcdr"]


def make_package(root: Path, folder: Path) -> None:
    """Of root/NAME/msg/*.idl the Python package folder/NAME."""
    name = root.name
    interfaces = [f"{root}:{file.relative_to(root)}" for file in sorted(root.glob("msg/*.idl"))]
    package = folder / name
    (package / "msg").mkdir(parents=True)
    (package / "__init__.py").touch()
    generators = [
        GenerateC("c"),
        GenerateFastRTPSCTypesupport("fastrtps_c"),
        GenerateCTypesupport("typesupport_c", typesupport_implementations=SUPPORT),
        GeneratePython("py", typesupport_implementations=["rosidl_typesupport_c"]),
    ]
    with mock.patch.dict(os.environ, AMENT_PREFIX_PATH=str(WHEELS)):
        for generator in generators:
            generator.generate(name, interfaces, [], package)
    library = package / f"{name}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    _compile(sorted([*package.rglob("*.c"), *package.rglob("*.cpp")]), folder, library)


def _compile(sources: list[Path], folder: Path, library: Path) -> None:
    includes = [
        folder,
        WHEELS / "include",
        *(WHEELS / "include").iterdir(),
        sysconfig.get_path("include"),
        np.get_include(),
    ]
    command = ["g++", "-shared", "-fPIC", "-w", *(f"-I{one}" for one in includes), "-D_GNU_SOURCE"]
    for source in sources:
        command += ["-x", "c" if source.suffix == ".c" else "c++", str(source)]
    command += ["-x", "none", f"-L{WHEELS / 'lib'}", *(f"-l{one}" for one in LIBRARIES)]
    folders = [WHEELS / "lib", *Path(sysconfig.get_path("purelib")).glob("ros_*.libs")]
    command += [f"-Wl,-rpath,{one}" for one in folders]
    subprocess.run([*command, "-o", str(library)], check=True)
