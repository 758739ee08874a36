# SPDX-License-Identifier: Apache-2.0
"""Say what this machine lacks for tide, and what to type for it."""
