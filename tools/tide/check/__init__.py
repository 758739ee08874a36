# SPDX-License-Identifier: Apache-2.0
"""Bound every chain before anything runs: is each deadline met, and what is the time made of?"""
