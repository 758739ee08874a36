# SPDX-License-Identifier: Apache-2.0
"""Run the agent: the bridge between clients and ROS 2."""
