# SPDX-License-Identifier: Apache-2.0
"""Makes a package of types for rclpy from .idl files, with the generators in the ROS 2 wheels and a compiler."""

from __future__ import annotations

import ctypes
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
from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport

WHEELS = Path(sys.prefix)
SUPPORTS = ("rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c")
LIBRARIES = (
    *SUPPORTS,
    "rosidl_typesupport_fastrtps_cpp",
    "rosidl_typesupport_c",
    "rosidl_runtime_c",
    "rcutils",
    "fastcdr",
)


def make_package(root: Path, folder: Path) -> None:
    """Makes the Python package folder/NAME from root/NAME/msg/*.idl, and loads its libraries into this process."""
    name = root.name
    interfaces = [f"{root}:{file.relative_to(root)}" for file in sorted(root.glob("msg/*.idl"))]
    package = folder / name
    (package / "msg").mkdir(parents=True)
    (package / "__init__.py").touch()
    generators = [
        GenerateC("c"),
        GenerateFastRTPSCTypesupport("fastrtps_c"),
        GenerateIntrospectionCTypesupport("introspection_c"),
        GenerateCTypesupport("typesupport_c", typesupport_implementations=SUPPORTS),
        GeneratePython("py", typesupport_implementations=["rosidl_typesupport_c"]),
    ]
    with mock.patch.dict(os.environ, AMENT_PREFIX_PATH=str(WHEELS)):
        for generator in generators:
            generator.generate(name, interfaces, [], package)
    library = package / f"{name}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"
    _compile([*package.rglob("*.c"), *package.rglob("*.cpp")], folder, library)
    for support in SUPPORTS:
        _name_also(library, f"lib{name}__{support}.so")


def _compile(sources: list[Path], folder: Path, library: Path) -> None:
    wheels = WHEELS / "include"
    includes = [folder, wheels, *wheels.iterdir(), sysconfig.get_path("include"), np.get_include()]
    command = ["g++", "-shared", "-fPIC", "-w", *(f"-I{one}" for one in includes)]
    for source in sources:
        command += ["-x", "c" if source.suffix == ".c" else "c++", str(source)]
    command += ["-x", "none", f"-L{WHEELS / 'lib'}", *(f"-l{one}" for one in LIBRARIES)]
    folders = [WHEELS / "lib", *Path(sysconfig.get_path("purelib")).glob("ros_*.libs")]
    subprocess.run([*command, *(f"-Wl,-rpath,{one}" for one in folders), "-o", str(library)], check=True)


def _name_also(library: Path, name: str) -> None:
    """Gives the library a further name. ROS 2 expects each kind of support in a library of a certain name, and finds
    loaded libraries by their names."""
    out = library.with_name(name)
    words = ["-Wl,--no-as-needed", str(library), f"-Wl,-soname,{name}", "-o", str(out)]
    subprocess.run(["g++", "-shared", *words], check=True)
    ctypes.CDLL(str(out))
