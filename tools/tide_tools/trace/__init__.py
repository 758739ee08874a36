# SPDX-License-Identifier: Apache-2.0
"""Record and convert traces, read measured execution times, and describe running systems and ROS 2 traces."""
