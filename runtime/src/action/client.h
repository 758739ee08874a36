/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of a client: its life and its requests (client.c), and what comes for it (client_replies.c). */
#ifndef TIDE_COMPAT_ACTION_CLIENT_H
#define TIDE_COMPAT_ACTION_CLIENT_H

#include "action.h"

void tide_action_client_execute(tide_callback_t *callback, void *context);

#endif
