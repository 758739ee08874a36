/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIDE_BENCH_TRACE_RECORDS_H
#define TIDE_BENCH_TRACE_RECORDS_H

#include <stdint.h>

#include "tide/trace.h"

/* What is measured: puts so many records as a lane does. Never inlined, so that callgrind finds it. */
void measured_records(tide_trace_ring_t *ring, uint32_t count);

#endif
