/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of an action's client for the canary BELIEVES: a refusal is one, even if the request may have come twice. */
#include "../../runtime/src/action/client.h"
static bool is_never_in_doubt(const tide_action_t *action, const tide_goal_t *goal) {
  (void)action;
  (void)goal;
  return false;
}
#define tide_action_is_in_doubt is_never_in_doubt
#include "../../runtime/src/action/client_replies.c"
