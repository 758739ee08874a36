# SPDX-License-Identifier: Apache-2.0
"""Make a project that builds at once: a chain, its description, and its check."""
