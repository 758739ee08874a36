# SPDX-License-Identifier: Apache-2.0
"""Reproduce published experiments, hunt for responses above their bounds, sweep and measure timers (the laboratory)."""
