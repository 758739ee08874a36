# SPDX-License-Identifier: Apache-2.0
"""Compute flash, RAM and stack of a described board, and print what each feature costs.

The description determines the size of every pool (`--header` writes the sizes as one header), so RAM is known when the
image is linked."""
