# SPDX-License-Identifier: Apache-2.0
"""Campaigns in blocks: where they run, and what is kept of an interrupted one."""
