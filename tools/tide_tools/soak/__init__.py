# SPDX-License-Identifier: Apache-2.0
"""Soak-test a board at a serial port for an hour, and write one page of results."""
