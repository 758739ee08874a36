# SPDX-License-Identifier: Apache-2.0
"""Join two pseudo terminals as a serial cable with a baud rate and faults."""
