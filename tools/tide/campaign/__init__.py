# SPDX-License-Identifier: Apache-2.0
"""Campaigns in blocks: where they run, and how an interrupted one resumes."""
