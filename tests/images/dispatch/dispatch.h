/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of an executor with many timers, of which one is due. The clock is virtual, so that only the executor's
 * instructions are counted, on this machine and on a board. */
#ifndef TIDE_BENCH_DISPATCH_H
#define TIDE_BENCH_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/executor.h"

#define DISPATCH_HANDLES_MAXIMUM 1000
#define DISPATCH_WATCHES_MAXIMUM 10

/* The periods are equal and the phases spread evenly, so one timer is due at a time. */
bool dispatch_prepare(tide_policy_t policy, size_t handles);
/* Call this after dispatch_prepare: it makes each timer a chain whose deadline the runtime watches
 * (tide/chain_watch.h). */
bool dispatch_watch(size_t handles);
/* Returns the number of callbacks that ran. Never inlined, because callgrind collects inside it. */
uint64_t measured_rounds(uint32_t rounds);

#endif
