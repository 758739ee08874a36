# SPDX-License-Identifier: Apache-2.0
"""Measure how late timers are, in comparison with cyclictest and an rclpy timer.

The timer belongs to the shipped executor (tide-timers). Settings and logs follow the published suite: number of
repetitions, timeout, policy, load, and logs of every measurement."""
