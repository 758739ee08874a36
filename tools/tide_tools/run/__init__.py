# SPDX-License-Identifier: Apache-2.0
"""Run a system on real parts (lines, agent, ROS 2 nodes, boards) and measure every chain.

All executors run the same system, one after the other. The latencies appear side by side in a table, in results.json,
in two plots and in one HTML page."""
