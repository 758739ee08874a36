/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of a client: its life and its requests (client.c), and what comes for it (client_replies.c). */
#ifndef TIDE_COMPAT_ACTION_CLIENT_H
#define TIDE_COMPAT_ACTION_CLIENT_H

#include "action.h"

/* With another number. TIDE_ERROR_STATE: the program has other things where the request was; TIDE_ERROR_FULL,
 * TIDE_ERROR_DISCONNECTED: not now. */
int tide_action_send_goal_again(tide_action_t *action, tide_goal_t *goal);

/* True: the goal's request may have come to ROS 2 more than once. It was sent again, or a session has ended since, and
 * the stream sends again what no agent has acknowledged. */
bool tide_action_is_in_doubt(const tide_action_t *action, const tide_goal_t *goal);
void tide_action_forget_goal_request(const tide_action_t *action, const tide_goal_t *goal);

void tide_action_client_execute(tide_callback_t *callback, void *context);

#endif
