# SPDX-License-Identifier: Apache-2.0
"""Tools of tide: one folder per command."""

__version__ = "0.1.0"
