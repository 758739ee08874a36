# SPDX-License-Identifier: Apache-2.0
"""Measure how late timers are, beside cyclictest and an rclpy timer.

The timer is one of the shipped executor (tide-timers); the form of the published suite is kept: number of repetitions,
timeout, policy, load, logs of every measurement."""
