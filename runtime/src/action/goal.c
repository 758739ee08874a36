/* SPDX-License-Identifier: Apache-2.0 */
/* The goals of an action: a piece of the pool. Taken by whoever sends one, or by the server's callback; found by any
 * thread. */

#include "action.h"

static void clear_locked(tide_goal_t *goal, tide_action_t *action) {
  void *request = goal->handle.ros_goal_request; /* a server's places keep theirs */
  memset(&goal->handle, 0, sizeof goal->handle);
  memset(&goal->server, 0, sizeof goal->server); /* and the client's, which is smaller */
  goal->handle.ros_goal_request = request;
  goal->handle.action_server = action->program; /* or the client: they share the place */
  __atomic_store_n(&goal->action, action, __ATOMIC_RELEASE);
}

tide_goal_t *tide_action_new_goal(tide_action_t *action) {
  tide_goal_t *free = NULL;
  const uintptr_t critical = tide_action_enter();
  for (size_t i = 0; i < action->goal_count && free == NULL; i++) {
    if (!tide_action_is_used(&action->goals[i])) free = &action->goals[i];
  }
  if (free != NULL) clear_locked(free, action);
  tide_action_leave(critical);
  return free;
}

bool tide_action_has_free_goal(const tide_action_t *action) {
  for (size_t i = 0; i < action->goal_count; i++) {
    if (!tide_action_is_used(&action->goals[i])) return true;
  }
  return false;
}

void tide_action_free_goal(tide_goal_t *goal) { __atomic_store_n(&goal->action, NULL, __ATOMIC_RELEASE); }

_Static_assert(sizeof(((tide_goal_t *)0)->client) <= sizeof(((tide_goal_t *)0)->server), "cleared together");

/* A server's goals have no state before they are accepted, and neither have repetitions of them. */
static bool is_found(const tide_goal_t *goal, const uint8_t *goal_id) {
  const tide_action_t *action = tide_action_owner(goal);
  if (action == NULL || (action->is_server && tide_action_state(goal) == GOAL_STATE_UNKNOWN)) return false;
  return memcmp(goal->handle.goal_id.uuid, goal_id, sizeof goal->handle.goal_id.uuid) == 0;
}

tide_goal_t *tide_action_find_goal(tide_action_t *action, const uint8_t *goal_id) {
  for (size_t i = 0; i < action->goal_count; i++) {
    if (is_found(&action->goals[i], goal_id)) return &action->goals[i];
  }
  return NULL;
}

tide_goal_t *tide_action_goal_of(const rclc_action_goal_handle_t *handle, bool is_server) {
  const tide_action_pools_t *pools = tide_pools.actions;
  if (handle == NULL || pools == NULL) return NULL;
  const size_t distance = (uintptr_t)handle - (uintptr_t)pools->goals;
  if (distance >= pools->goal_count * sizeof *pools->goals || distance % sizeof *pools->goals != 0) return NULL;
  tide_goal_t *goal = &pools->goals[distance / sizeof *pools->goals];
  return tide_action_is_open(tide_action_owner(goal), is_server) ? goal : NULL;
}
