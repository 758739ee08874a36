# SPDX-License-Identifier: Apache-2.0
"""What `tide record` leaves: traces of boards in a folder, and how their clocks stood."""
