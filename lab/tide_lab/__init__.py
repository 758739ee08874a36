# SPDX-License-Identifier: Apache-2.0
"""The laboratory: reproductions of published experiments, sweeps, hunts and timer tests, one folder a command."""
