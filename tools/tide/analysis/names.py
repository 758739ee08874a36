# SPDX-License-Identifier: Apache-2.0
"""Names in documents that are not the user's. They contain a character which none of the user's may."""

from __future__ import annotations

NUMBER, ITSELF = "#", "!"


def alternative_name(chain: str, number: int) -> str:
    """Of a chain that stands for one of a join's inputs."""
    return f"{chain}{NUMBER}by{number}"


def chain_of(stretch: str) -> str:
    """The user's name of the chain that a name in a document belongs to."""
    return stretch.partition(NUMBER)[0]
