/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of a trace record, counted by `make bench`:
 *
 *   valgrind --tool=callgrind --toggle-collect=measured_records build/release/bin/trace_bench
 */
#include <stdio.h>
#include <stdlib.h>

#include "tide/trace.h"

#define RECORDS 1024u

// The measured function writes `count` records as a lane does. It is never inlined, so that callgrind finds it.
__attribute__((noinline)) static void measured_records(tide_trace_ring_t *ring, uint32_t count) {
  for (uint32_t index = 0u; index < count; index++)
    (void)tide_trace_put(ring, TIDE_TRACE_START, TIDE_PRIORITY(3, 1), tide_trace_instance(ring, TIDE_PRIORITY(3, 1)),
                         0u, (int64_t)index);
}

int main(void) {
  static tide_trace_record_t records[RECORDS];
  static tide_trace_instances_t instances;
  tide_trace_ring_t ring;
  if (tide_trace_init(&ring, records, RECORDS, &instances, 0u, 0u) != 0) return EXIT_FAILURE;
  measured_records(&ring, RECORDS);
  printf("%u records, %u dropped, %zu bytes a record\n", ring.written, ring.dropped, sizeof records[0]);
  return ring.written == RECORDS && ring.dropped == 0u ? EXIT_SUCCESS : EXIT_FAILURE;
}
