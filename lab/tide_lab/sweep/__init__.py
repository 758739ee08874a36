# SPDX-License-Identifier: Apache-2.0
"""Judge many random chain sets: which share of them does each analysis find schedulable?"""
