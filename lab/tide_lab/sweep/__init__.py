# SPDX-License-Identifier: Apache-2.0
"""Shares of random chain sets that each analysis finds schedulable."""
