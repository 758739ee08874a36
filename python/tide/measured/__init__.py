# SPDX-License-Identifier: Apache-2.0
"""Put measured execution times into a description, for `tide check`.

A program with a tide_measure_t (tide/measure.h) prints a line for each callback; `tide measured` reads them from its
log and writes the description with the longest times that were seen."""
