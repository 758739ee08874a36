/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of an action's client for the canary TRUSTS: it does not ask again in a new session for what the old one
 * owed. */
#include "../../runtime/src/action/client.h"
static bool meet_no_session(tide_action_t *action) {
  (void)action;
  return false;
}
#define tide_action_meets_session meet_no_session
#include "../../runtime/src/action/client_replies.c"
