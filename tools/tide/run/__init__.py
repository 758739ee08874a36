# SPDX-License-Identifier: Apache-2.0
"""Run a system on real parts: line, agent, ROS 2 nodes and client; measure every chain.

Each executor runs the same system after the other; latencies come out side by side as a table, results.json, two plots
and one HTML page."""
