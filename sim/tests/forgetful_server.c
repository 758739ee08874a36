/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of an action's server for the canary FORGETS: a goal that has ended is a new one when it comes again. */
#include "../../runtime/src/action/server.h"
static tide_action_result_t *forget_result(const tide_action_t *action, const uint8_t *goal_id) {
  (void)action;
  (void)goal_id;
  return NULL;
}
#define tide_action_find_result forget_result
#include "../../runtime/src/action/server_requests.c"
