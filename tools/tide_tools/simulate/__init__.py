# SPDX-License-Identifier: Apache-2.0
"""Run a description, a plan or a campaign of random systems in virtual time, with every check on."""
