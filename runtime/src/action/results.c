/* SPDX-License-Identifier: Apache-2.0 */
/* Results that are kept, serialised, after their goals have ended; and the states of all goals for the status topic.
 * Any thread ends goals; only the server's callback sends, and lets handles go. */
#include "action.h"
#include "tide/invariant.h"
#include "tide/message_memory.h"

#define STATUS_BYTES 28u  /* of one goal: id, stamp, state and padding */
#define PADDING_BYTES 3u  /* none before the stamp of the first */
#define LOOKED_AT_ONCE 4u /* kept results in one critical section */

static int64_t now_ns(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_now_ns(platform);
}

uint8_t *tide_action_result_bytes(const tide_action_result_t *result) {
  const tide_action_pools_t *pools = tide_pools.actions;
  return pools->result_bytes + (size_t)(result - pools->results) * pools->result_capacity;
}

/* Which of two may go first: what nobody has, what is out of date, what was delivered, what is oldest. */
static int64_t worth(const tide_action_result_t *result, int64_t now) {
  if (result->action == NULL) return INT64_MIN;
  if (result->expires_ns <= now) return INT64_MIN + 1;
  return result->delivered ? result->expires_ns / 2 - INT64_MAX / 2 : result->expires_ns / 2;
}

/* Kept ones that are being sent, and those whose goals have handles yet, stay. */
static tide_action_result_t *least_worth_locked(const tide_action_pools_t *pools, int64_t now) {
  tide_action_result_t *least = NULL;
  for (size_t i = 0; i < pools->result_count; i++) {
    tide_action_result_t *result = &pools->results[i];
    if (result->action != NULL && (result->goal != NULL || result->sending || !result->ready)) continue;
    if (least == NULL || worth(result, now) < worth(least, now)) least = result;
  }
  return least;
}

tide_action_result_t *tide_action_keep(tide_goal_t *goal, size_t bytes) {
  const tide_action_pools_t *pools = tide_pools.actions;
  if (bytes > pools->result_capacity) return NULL;
  const int64_t now = now_ns();
  const uintptr_t critical = tide_action_enter();
  tide_action_result_t *result = least_worth_locked(pools, now);
  if (result != NULL) {
    if (result->action != NULL && !result->delivered && result->expires_ns > now) {
      result->action->counters.results_gone++;
    }
    memset(result, 0, sizeof *result);
    result->action = goal->action;
    result->goal = goal;
    memcpy(result->goal_id, goal->handle.goal_id.uuid, sizeof result->goal_id);
    result->accepted_ns = goal->server.accepted_ns;
    const int64_t timeout_ns = goal->action->server.result_timeout_ns;
    result->expires_ns = timeout_ns < 0 || timeout_ns > TIDE_FOREVER - now ? TIDE_FOREVER : now + timeout_ns;
  }
  tide_action_leave(critical);
  return result;
}

void tide_action_drop_result(tide_action_result_t *result) {
  const uintptr_t critical = tide_action_enter();
  result->action = NULL;
  tide_action_leave(critical);
}

static bool is_one_of(const tide_action_result_t *result, const tide_action_t *action) {
  return result->action == action && result->ready;
}
/* In short critical sections: others keep results meanwhile. */
static void for_each_result(void (*visit)(tide_action_result_t *result, void *context), void *context) {
  const tide_action_pools_t *pools = tide_pools.actions;
  for (size_t next = 0; next < pools->result_count;) {
    const uintptr_t critical = tide_action_enter();
    for (size_t last = next + LOOKED_AT_ONCE; next < last && next < pools->result_count; next++) {
      visit(&pools->results[next], context);
    }
    tide_action_leave(critical);
  }
}

static bool is_over(const tide_action_result_t *result, int64_t now) {
  return result->goal == NULL && result->expires_ns <= now;
}

tide_action_result_t *tide_action_find_result(const tide_action_t *action, const uint8_t *goal_id) {
  const tide_action_pools_t *pools = tide_pools.actions;
  const int64_t now = now_ns();
  tide_action_result_t *found = NULL;
  const uintptr_t critical = tide_action_enter();
  for (size_t i = 0; i < pools->result_count && found == NULL; i++) {
    tide_action_result_t *result = &pools->results[i];
    if (!is_one_of(result, action) || is_over(result, now)) continue;
    if (memcmp(result->goal_id, goal_id, sizeof result->goal_id) == 0) found = result;
  }
  tide_action_leave(critical);
  return found;
}

tide_action_result_t *tide_action_result_of(const tide_goal_t *goal) {
  const tide_action_pools_t *pools = tide_pools.actions;
  tide_action_result_t *found = NULL;
  const uintptr_t critical = tide_action_enter();
  for (size_t i = 0; i < pools->result_count && found == NULL; i++) {
    tide_action_result_t *result = &pools->results[i];
    if (result->action == goal->action && result->goal == goal && result->ready) found = result;
  }
  tide_action_leave(critical);
  return found;
}

/* ---- to those who asked ---- */

static int write_octets(tide_service_handle_t *service, const rmw_request_id_t *asker, const uint8_t *bytes,
                        size_t count) {
  tide_write_t write;
  const int status = tide_compat_begin_response(service, asker, &write, count);
  if (status != TIDE_OK) return status;
  tide_cdr_put_bytes(&write.cdr, bytes, count);
  return tide_compat_write_end(service->end.support, &write);
}

#define UNKNOWN_BYTES 256u

/* A result of zeroes, whose status is unknown; of large ones none. */
static int send_unknown(tide_action_t *action, const rmw_request_id_t *asker) {
  uint64_t nothing[UNKNOWN_BYTES / 8] = {0};
  action->counters.unknown++;
  const tide_service_handle_t *service = action->services[PART_RESULT].impl;
  if (service->end.type->response->structure_bytes > sizeof nothing) return TIDE_ERROR_TOO_LARGE;
  return tide_compat_send_response(action->services[PART_RESULT].impl, asker, nothing);
}

static void set_sending(tide_action_result_t *result, bool sending) {
  const uintptr_t critical = tide_action_enter();
  result->sending = sending;
  tide_action_leave(critical);
}

int tide_action_send_kept(tide_action_t *action, const rmw_request_id_t *asker, const uint8_t *goal_id) {
  const uintptr_t critical = tide_action_enter();
  tide_action_result_t *result = tide_action_find_result(action, goal_id);
  if (result != NULL) result->sending = true;
  tide_action_leave(critical);
  if (result == NULL) return send_unknown(action, asker);
  const int status =
      write_octets(action->services[PART_RESULT].impl, asker, tide_action_result_bytes(result), result->bytes);
  if (status == TIDE_OK) {
    result->delivered = true;
    action->counters.results++;
  }
  set_sending(result, false);
  return status;
}

/* ---- the status topic ---- */

typedef struct listing {
  const tide_action_t *action;
  int64_t now_ns; /* of the first round, which also lets go what is out of date */
  uint8_t *next;  /* where the next one is written; null: they are counted */
  uint32_t count, limit;
} listing_t;

static uint8_t *put_word(uint8_t *place, uint32_t value) {
  place[0] = (uint8_t)value;
  place[1] = (uint8_t)(value >> 8);
  place[2] = (uint8_t)(value >> 16);
  place[3] = (uint8_t)(value >> 24);
  return place + 4;
}

/* A stamp stands at a multiple of four; an id stands right behind the state before it. */
static uint8_t *put_state(uint8_t *place, bool first, const uint8_t *goal_id, int64_t accepted_ns, int8_t state) {
  const int64_t seconds = accepted_ns / 1000000000;
  memcpy(place, goal_id, 16);
  memset(place + 16, 0, PADDING_BYTES);
  place += first ? 16u : 16u + PADDING_BYTES;
  place = put_word(place, (uint32_t)seconds);
  place = put_word(place, (uint32_t)(accepted_ns - seconds * 1000000000));
  *place = (uint8_t)state;
  return place + 1;
}

static void list(listing_t *listing, const uint8_t *goal_id, int64_t accepted_ns, int8_t state) {
  if (listing->count == listing->limit) return;
  listing->count++;
  if (listing->next == NULL) return;
  listing->next = put_state(listing->next, listing->count == 1, goal_id, accepted_ns, state);
}

static void list_result_locked(tide_action_result_t *result, void *context) {
  listing_t *listing = context;
  if (!is_one_of(result, listing->action) || result->goal != NULL) return;
  list(listing, result->goal_id, result->accepted_ns, result->status);
}

/* What is out of date goes, out of the list and out of the pool. */
static void count_result_locked(tide_action_result_t *result, void *context) {
  listing_t *listing = context;
  if (!is_one_of(result, listing->action) || result->goal != NULL) return;
  if (is_over(result, listing->now_ns)) {
    result->action = NULL;
  } else {
    listing->count++;
  }
}

/* Meanwhile others end goals, and kept results give way to those of other servers. */
static void list_goals(listing_t *listing) {
  const tide_action_t *action = listing->action;
  for (size_t i = 0; i < action->goal_count; i++) {
    const tide_goal_t *goal = &action->goals[i];
    const rcl_action_goal_state_t state = tide_action_state(goal);
    if (!tide_action_is_used(goal) || state == GOAL_STATE_UNKNOWN) continue;
    list(listing, goal->handle.goal_id.uuid, goal->server.accepted_ns, state);
  }
}

int tide_action_publish_status(tide_action_t *action) {
  const tide_publisher_handle_t *publisher = action->server.status.impl;
  listing_t counted = {action, now_ns(), NULL, 0, UINT32_MAX};
  list_goals(&counted);
  for_each_result(count_result_locked, &counted);
  tide_write_t write;
  const int status =
      tide_session_write_begin(&action->support->session, &write, publisher->topic.endpoint.id, publisher->reliable,
                               publisher->priority, 4u + counted.count * STATUS_BYTES);
  if (status != TIDE_OK) return status;
  uint8_t *count = write.cdr.bytes + write.cdr.position;
  TIDE_INVARIANT(write.cdr.capacity - write.cdr.position >= 4u + counted.count * STATUS_BYTES);
  listing_t listed = {action, 0, count + 4, 0, counted.count};
  list_goals(&listed);
  for_each_result(list_result_locked, &listed);
  (void)put_word(count, listed.count);
  write.cdr.position += 4u + listed.count * STATUS_BYTES - (listed.count > 0 ? PADDING_BYTES : 0u);
  return tide_compat_write_end(action->support, &write);
}
