# SPDX-License-Identifier: Apache-2.0
"""Start a description with a comment for each key, or a firmware project that builds at once."""
