/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of a server: its life and its replies (server.c), and what it is asked (server_requests.c). */
#ifndef TIDE_COMPAT_ACTION_SERVER_H
#define TIDE_COMPAT_ACTION_SERVER_H

#include "action.h"

/* Takes the oldest message that can be handled now; false: there is none. */
bool tide_action_server_take(tide_action_t *action);
bool tide_action_server_has_more(tide_action_t *action);

#endif
