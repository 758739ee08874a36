# SPDX-License-Identifier: Apache-2.0
"""Run a description or a plan in virtual time, with every check on."""
