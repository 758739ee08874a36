# SPDX-License-Identifier: Apache-2.0
"""Soak-test a board for an hour, and write one page of results."""
