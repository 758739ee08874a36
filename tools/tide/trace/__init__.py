# SPDX-License-Identifier: Apache-2.0
"""Record, read and convert traces: instances for Perfetto, execution times and descriptions from what was measured."""
