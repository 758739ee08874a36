# SPDX-License-Identifier: Apache-2.0
"""Bound the latency of every chain before anything runs, and show what each bound consists of."""
