# SPDX-License-Identifier: Apache-2.0
"""Run a plan, or a campaign of seeds, in virtual time with every check on."""
