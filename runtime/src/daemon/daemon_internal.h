/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the daemon share: how they enter and leave its critical section. */
#ifndef TIDE_DAEMON_INTERNAL_H
#define TIDE_DAEMON_INTERNAL_H

#include "tide/daemon.h"
#include "tide/invariant.h"

#define DAEMON_HAS_WAITERS (TIDE_NODE_WAITERS && !TIDE_SINGLE_CONTEXT)
#define DAEMON_LINK_MAY_GO (!TIDE_STATIC_PLATFORM) /* while it starts a frame */

/* A frame is being started only on an open link, or on one that is given up; what was reported of it belongs to it. */
static inline bool daemon_wire_holds(const tide_daemon_t *d) {
  if (!DAEMON_LINK_MAY_GO && d->cancelled) return false;
  return !d->starting || d->transmitter.busy;
}

static inline int64_t daemon_now_ns(const tide_daemon_t *d) { return tide_platform_now_ns(d->platform); }

static inline uintptr_t daemon_enter(tide_daemon_t *d) { return tide_platform_enter(d->platform); }
static inline void daemon_leave(tide_daemon_t *d, uintptr_t state) {
  TIDE_INVARIANT(daemon_wire_holds(d));
  tide_platform_exit(d->platform, state);
}

/* Leaves it once the link has started what is most urgent, and reports activity. */
void tide_daemon_leave_busy(tide_daemon_t *d, uintptr_t state);
/* A node of so many bytes is free, or will be when the critical section is left. */
void tide_daemon_wake_waiters(tide_daemon_t *d, uint32_t bytes);

#endif
