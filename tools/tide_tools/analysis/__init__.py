# SPDX-License-Identifier: Apache-2.0
"""Bounds of systems: conversion of a system description into the input of the analysis, and its results."""

from tide_tools.programs.binaries import build_folder

__path__.append(str(build_folder() / "lib"))  # the build puts the module `native` there
