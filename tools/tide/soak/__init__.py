# SPDX-License-Identifier: Apache-2.0
"""Soak-tests a board at a serial port for an hour, and writes one page about it."""
