/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in which a program tells of itself: each leaves at once or not at all, whatever the way of sending, and half
 * of the pool stays the program's. */
#ifndef TIDE_COMPAT_BACKGROUND_H
#define TIDE_COMPAT_BACKGROUND_H

#include "internal.h"

/* In the platform's critical section. promised: nodes of callers that have been let in and have none yet. */
bool tide_compat_has_room_locked(const tide_support_t *support, uint32_t promised);
/* Never waits, also within a round whose outputs leave together. Errors as tide_session_write_begin. */
int tide_compat_send_now(const tide_publisher_handle_t *publisher, const void *message);

#endif
