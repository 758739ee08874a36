# SPDX-License-Identifier: Apache-2.0
"""Measure how late timers are, in comparison with cyclictest and an rclpy timer.

The program tide-timers runs a timer of the shipped executor. The settings (number of repetitions, timeout, policy,
load) and the logs of every measurement are like those of the published suite."""
