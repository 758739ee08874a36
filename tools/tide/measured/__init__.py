# SPDX-License-Identifier: Apache-2.0
"""Put measured execution times into a description, for `tide check`.

A program with a tide_measure_t (tide/measure.h) prints a line for each callback, and tide run writes them for its own;
`tide measured` reads them from the log and writes the description with the longest times that were seen."""
