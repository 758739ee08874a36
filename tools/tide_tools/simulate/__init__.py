# SPDX-License-Identifier: Apache-2.0
"""Run a description in virtual time, with all invariants checked."""
