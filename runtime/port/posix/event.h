/* SPDX-License-Identifier: Apache-2.0 */
/* Platform function for this port's links: sleep on an event and a descriptor at once. */
#pragma once

#include "tide/platform.h"

#define TIDE_POSIX_READABLE 2

/* Like event_wait of the platform. 1: the event was set (and is clear again). 0: the deadline passed.
 * TIDE_POSIX_READABLE: neither, but the descriptor is, or may be, readable. Without futexes, or with too many such
 * waits, TIDE_POSIX_READABLE is returned each millisecond. */
int tide_posix_event_wait_or_readable(tide_event_t *event, int descriptor, int64_t deadline_ns);
