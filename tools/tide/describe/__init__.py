# SPDX-License-Identifier: Apache-2.0
"""Build a system description from a ROS 2 trace or from a run that was recorded."""
