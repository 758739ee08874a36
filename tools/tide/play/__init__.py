# SPDX-License-Identifier: Apache-2.0
"""Descriptions as the simulators play them: what may vary from run to run, and the plan of one run."""
