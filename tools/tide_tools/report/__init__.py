# SPDX-License-Identifier: Apache-2.0
"""Print the verdict and tables of earlier results of tide run again."""
