# SPDX-License-Identifier: Apache-2.0
"""Test many random chain sets: the share that each analysis finds schedulable."""
