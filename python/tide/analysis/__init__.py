# SPDX-License-Identifier: Apache-2.0
"""Bounds of systems: the system description as the analysis reads it, and what it answers."""
