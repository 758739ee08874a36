/* SPDX-License-Identifier: Apache-2.0 */
/* What a record of a trace costs, in instructions, counted by lab/bench/trace_cost.py:
 *
 *   valgrind --tool=callgrind --toggle-collect=measured_records build/release/bin/trace_bench
 */
#include <stdio.h>
#include <stdlib.h>

#include "trace_records.h"

#define RECORDS 1024u

int main(void) {
  static tide_trace_record_t records[RECORDS];
  static tide_trace_instances_t instances;
  tide_trace_ring_t ring;
  if (tide_trace_init(&ring, records, RECORDS, &instances, 0u, 0u) != 0) return EXIT_FAILURE;
  measured_records(&ring, RECORDS);
  printf("%u records, %u dropped, %zu bytes a record\n", ring.written, ring.dropped, sizeof records[0]);
  return ring.written == RECORDS && ring.dropped == 0u ? EXIT_SUCCESS : EXIT_FAILURE;
}
