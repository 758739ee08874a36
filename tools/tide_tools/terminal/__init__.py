# SPDX-License-Identifier: Apache-2.0
"""Appearance of tables, text and plots; uses no other package of tide."""
