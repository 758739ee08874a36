# SPDX-License-Identifier: Apache-2.0
"""Report what this machine lacks for tide, with the commands that install it."""
