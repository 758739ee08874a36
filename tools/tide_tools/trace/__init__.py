# SPDX-License-Identifier: Apache-2.0
"""Record and convert traces, read measured execution times, and make descriptions from ROS 2 traces."""
