# SPDX-License-Identifier: Apache-2.0
"""Bounds of systems: the system description as input of the analysis, and its results."""

from tide_tools.programs.binaries import build_folder

__path__.append(str(build_folder() / "lib"))  # where a build places the module `native`
