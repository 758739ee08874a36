# SPDX-License-Identifier: Apache-2.0
"""Live view of a running system: latencies with bounds and deadlines, links, agents and clients."""
