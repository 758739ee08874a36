# SPDX-License-Identifier: Apache-2.0
"""Bytes of a message between a board and its agent. What a service adds goes with the payload: a board that serves gets
the identity of who asks and sends it back with the reply, and a board that asks gets the number of its request."""

from __future__ import annotations

from tide.system.model import Callback

_IDENTITY_BYTES = 24  # TIDE_SAMPLE_IDENTITY_BYTES of include/tide/session.h
_NUMBER_BYTES = 4  # TIDE_REPLY_HEADER_BYTES there


def up_bytes(sender: Callback) -> int:
    """Of what a callback of a board sends, to the agent. 0: nothing."""
    return sender.sent_bytes + (_IDENTITY_BYTES if sender.replies else 0)


def down_bytes(sender: Callback) -> int:
    """Of what any callback sends, from the agent to the board that takes it. 0: nothing."""
    return sender.sent_bytes + (_IDENTITY_BYTES if sender.requests else _NUMBER_BYTES if sender.replies else 0)
