# SPDX-License-Identifier: Apache-2.0
"""Campaigns in blocks: how an interrupted one resumes."""
