/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of a record of a trace, and of draining one; run it with -icount shift=5, where an instruction takes
 * 32 ns. */
#include "board.h"
#include "measure.h"
#include "tide/port.h"
#include "tide/status.h"
#include "trace_records.h"

#define RECORDS 1024u

static tide_trace_record_t records[RECORDS];
static tide_trace_instances_t instances;

static int64_t now_ns(void) { return tide_port_platform()->now_ns(tide_port_platform()->context); }

static int take(void *context, const uint8_t *bytes, size_t count) {
  (void)context, (void)bytes, (void)count;
  return TIDE_OK;
}

static void print(const char *what, int64_t since_ns) {
  measure_print(what, (measure_instructions(now_ns() - since_ns) + RECORDS / 2) / RECORDS, " instructions\n");
}

int main(void) {
  tide_trace_ring_t ring;
  if (tide_trace_init(&ring, records, RECORDS, &instances, 0u, 0u) != TIDE_OK) return 1;
  int64_t start_ns = now_ns();
  measured_records(&ring, RECORDS);
  print("record: ", start_ns);
  start_ns = now_ns();
  if (tide_trace_drain(&ring, UINT32_MAX, take, NULL) != (int)RECORDS || ring.dropped != 0u) return 2;
  print("drained record: ", start_ns);
  return 0;
}
