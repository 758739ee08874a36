/* SPDX-License-Identifier: Apache-2.0 */
/* Who may start: the rule that no callback overlaps itself, and the groups.
 *
 * Invariants, outside the critical section, of a ready callback that has no place in a round (tide policy, several
 * lanes): it is in the ready_list of its band exactly when it may start and, of an exclusive group, when it is the most
 * urgent of it. So whoever takes the head of a ready_list may run it, and nothing that may not run is ever looked at.
 * Of an exclusive group the rest is in group->waiting; one that waits for its own end is in no queue.
 *
 * The key is given once, when the callback becomes ready, and holds priority and order of arrival: moving between the
 * queues changes no order. */
#include "exec.h"

static void put_aside(tide_group_t *group, tide_callback_t *callback) {
  const int status = tide_queue_push(&group->waiting, &callback->ready_entry, callback->ready_entry.key);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK && group->waiting.count <= group->members);
}

/* What is offered is in the ready_list of its band, and precedes all that wait. Nothing is offered while one runs. */
static bool holds(const tide_group_t *group) {
  const tide_callback_t *offered = group->offered;
  const tide_queue_entry_t *next = tide_queue_head(&group->waiting);
  if (offered == NULL) return group->taken_by != NULL || next == NULL;
  return group->taken_by == NULL && offered->group == group && tide_queue_contains(&offered->ready_entry) &&
         (next == NULL || next->key > offered->ready_entry.key);
}

static void offer_next(tide_group_t *group) {
  tide_queue_entry_t *next = tide_queue_pop(&group->waiting);
  group->offered = next == NULL ? NULL : exec_callback_of(next);
  if (group->offered != NULL) {
    exec_show(group->offered);
  }
}

void tide_exec_offer_in_group(tide_callback_t *callback) {
  tide_group_t *group = callback->group;
  if (group->kind == TIDE_GROUP_REENTRANT) {
    exec_show(callback);
    return;
  }
  const tide_callback_t *offered = group->offered;
  if (group->taken_by != NULL || (offered != NULL && offered->ready_entry.key < callback->ready_entry.key)) {
    put_aside(group, callback);
    TIDE_INVARIANT(holds(group));
    return;
  }
  if (offered != NULL) {
    exec_hide(group->offered);
    put_aside(group, group->offered);
  }
  group->offered = callback;
  exec_show(callback);
  TIDE_INVARIANT(holds(group));
}

void tide_exec_withdraw_from_group(tide_callback_t *callback) {
  tide_group_t *group = callback->group;
  if (group->kind == TIDE_GROUP_REENTRANT) {
    exec_hide(callback);
  } else if (group->offered == callback) {
    exec_hide(callback);
    offer_next(group);
  } else {
    tide_queue_remove(&group->waiting, &callback->ready_entry);
  }
  TIDE_INVARIANT(group->kind == TIDE_GROUP_REENTRANT || holds(group));
}

void tide_exec_occupy_group(tide_lane_t *lane, tide_group_t *group) {
  if (group->kind == TIDE_GROUP_EXCLUSIVE) {
    TIDE_INVARIANT(group->taken_by == NULL && group->offered == lane->running);
    lane->group = group;
    group->offered = NULL;
    group->taken_by = lane;
  }
}

void tide_exec_vacate_group(tide_group_t *group) {
  TIDE_INVARIANT(group->taken_by != NULL && group->offered == NULL);
  group->taken_by = NULL;
  offer_next(group);
  TIDE_INVARIANT(holds(group));
}

int tide_group_init(tide_group_t *group, tide_group_kind_t kind, tide_queue_entry_t **waiting_storage,
                    size_t capacity) {
  const bool exclusive = kind == TIDE_GROUP_EXCLUSIVE;
  if (group == NULL || (!exclusive && kind != TIDE_GROUP_REENTRANT) ||
      (exclusive && (waiting_storage == NULL || capacity == 0u))) {
    return TIDE_ERROR_ARGUMENT;
  }
  *group = (tide_group_t){.kind = kind};
  tide_queue_init(&group->waiting, waiting_storage, exclusive ? capacity : 0u);
  return TIDE_OK;
}
