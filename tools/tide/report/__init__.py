# SPDX-License-Identifier: Apache-2.0
"""Print the table of a results.json again."""
