# SPDX-License-Identifier: Apache-2.0
"""Native programs and other child processes: where they are, how they are started, and how all of them end."""
