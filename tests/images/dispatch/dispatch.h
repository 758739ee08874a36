/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of an executor with many timers of which one is due. The clock is virtual, so that what is counted is the
 * executor alone, on this machine and on a board. */
#ifndef TIDE_BENCH_DISPATCH_H
#define TIDE_BENCH_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/executor.h"

#define DISPATCH_HANDLES_MAXIMUM 1000
#define DISPATCH_WATCHES_MAXIMUM 10

/* Periods are equal and phases spread evenly: one timer is due at a time. */
bool dispatch_prepare(tide_policy_t policy, size_t handles);
/* Behind it: each timer is a chain whose deadline the runtime watches (tide/chain_watch.h). */
bool dispatch_watch(size_t handles);
/* Returns how many callbacks ran. Never inlined: callgrind collects inside it. */
uint64_t measured_rounds(uint32_t rounds);

#endif
