/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of an executor with many timers, of which one is due. The clock is a variable, so that only the executor's
 * instructions are counted, on a PC as on a board. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/executor.h"

#define DISPATCH_HANDLES_MAXIMUM 1000
#define DISPATCH_WATCHES_MAXIMUM 10

/* Prepares this number of timers. They have equal periods and evenly spread phases, so one timer is due at a time. */
bool dispatch_prepare(tide_policy_t policy, size_t handles);
/* Called after dispatch_prepare, this makes a chain of each timer. The runtime watches the chain's deadline
 * (tide/chain_watch.h). */
bool dispatch_watch(size_t handles);
/* Runs rounds and returns the number of callbacks that ran. It is never inlined, because callgrind counts what happens
 * inside it. */
uint64_t measured_rounds(uint32_t rounds);
