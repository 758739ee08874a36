# SPDX-License-Identifier: Apache-2.0
"""Make a new description with a comment for each key, or a firmware project that is ready to build."""
