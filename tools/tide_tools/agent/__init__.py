# SPDX-License-Identifier: Apache-2.0
"""Run the agent, the bridge between boards and ROS 2."""
