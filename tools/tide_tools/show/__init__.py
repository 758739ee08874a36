# SPDX-License-Identifier: Apache-2.0
"""Show a description as a table, as levels, or as ROS 2 parameters; print the reference and the JSON schema."""
