# SPDX-License-Identifier: Apache-2.0
"""Descriptions as input of the simulators: the values that may vary from run to run, and the plan of one run."""
