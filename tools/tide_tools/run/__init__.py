# SPDX-License-Identifier: Apache-2.0
"""Run a system on real parts (lines, agent, ROS 2 nodes, boards) and measure every chain.

With --executor all, several executors run the same system, one after the other. The latencies are printed, and written
into results.json, two plots and one HTML page."""
