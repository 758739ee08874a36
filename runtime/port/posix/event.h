/* SPDX-License-Identifier: Apache-2.0 */
/* What only the links of this port ask of its platform: to sleep on an event and on a descriptor at once. */
#ifndef TIDE_PORT_POSIX_EVENT_H
#define TIDE_PORT_POSIX_EVENT_H

#include "tide/platform.h"

#define TIDE_POSIX_READABLE 2

/* As event_wait of the platform: 1 the event was set (and is clear again), 0 the deadline has come; or
 * TIDE_POSIX_READABLE: neither, and the descriptor can be read. Where the system has no futex, or too many wait like
 * this, the descriptor is not looked at. */
int tide_posix_event_wait_or_readable(tide_event_t *event, int descriptor, int64_t deadline_ns);

#endif
