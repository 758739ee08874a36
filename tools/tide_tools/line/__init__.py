# SPDX-License-Identifier: Apache-2.0
"""Emulate a serial cable between two pseudo terminals, with a baud rate and faults."""
