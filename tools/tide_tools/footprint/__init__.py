# SPDX-License-Identifier: Apache-2.0
"""Compute flash, RAM and stack of a described board, and the cost of each option.

Every pool is sized from the description (one header, `--header`), so RAM is known when the image is linked."""
