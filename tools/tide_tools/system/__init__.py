# SPDX-License-Identifier: Apache-2.0
"""Reads and checks a system description. All commands that take a description read the same system.toml."""
