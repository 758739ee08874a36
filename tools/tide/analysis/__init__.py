# SPDX-License-Identifier: Apache-2.0
"""Bounds of systems: the system description as the analysis reads it, and what it answers."""

from tide.programs.binaries import build_folder

__path__.append(str(build_folder() / "lib"))  # where a build puts the module `native`
