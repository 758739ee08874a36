# SPDX-License-Identifier: Apache-2.0
"""Hunt for observations above their bounds: random systems on exact schedules and on the shipped executor."""
