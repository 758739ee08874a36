# SPDX-License-Identifier: Apache-2.0
"""Soak-test a board: numbered messages both ways while the agent is killed, and the board's own counters.

The board runs the program of runtime/port/exchange."""
