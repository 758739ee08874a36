# SPDX-License-Identifier: Apache-2.0
"""Try a board: numbered messages both ways while the agent is killed, and what the board says of itself.

The board runs the program of runtime/port/exchange."""
