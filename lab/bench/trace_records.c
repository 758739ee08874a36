/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_records.h"

__attribute__((noinline)) void measured_records(tide_trace_ring_t *ring, uint32_t count) {
  for (uint32_t index = 0u; index < count; index++)
    (void)tide_trace_put(ring, TIDE_TRACE_START, TIDE_PRIORITY(3, 1), tide_trace_instance(ring, TIDE_PRIORITY(3, 1)),
                         0u, (int64_t)index);
}
