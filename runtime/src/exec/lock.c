/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/lock.h"

#include "tide/invariant.h"
#include "tide/status.h"

/* A waiting lane's entry, on that lane's stack. */
struct tide_lock_waiter {
  const void *who;
  tide_event_t event;
  tide_lock_waiter_t *next;
};

int tide_lock_set_init(tide_lock_set_t *set, const tide_platform_t *platform, const tide_lock_port_t *port) {
  if (set == NULL || platform == NULL || port == NULL) return TIDE_ERROR_ARGUMENT;
  *set = (tide_lock_set_t){.platform = platform, .port = port};
  return TIDE_OK;
}

int tide_lock_init(tide_lock_t *lock, tide_lock_set_t *set) {
  if (lock == NULL || set == NULL || set->port == NULL) return TIDE_ERROR_ARGUMENT;
  *lock = (tide_lock_t){.set = set, .next = set->first, .ceiling = -1};
  set->first = lock;
  return TIDE_OK;
}

/* Lanes are ordered as in the ports: by the system's priority, and among equals by level. */
static bool is_above(const tide_lane_t *lane, const tide_lane_t *other) {
  const tide_lane_settings_t *mine = &lane->settings, *theirs = &other->settings;
  return mine->priority != theirs->priority ? mine->priority > theirs->priority
                                            : mine->least_level > theirs->least_level;
}

static bool keeps_its_processor(const tide_lane_t *lane) {
  return lane->settings.scheduling != TIDE_SCHEDULING_SPORADIC && lane->settings.scheduling != TIDE_SCHEDULING_DEADLINE;
}

int tide_lock_allow(tide_lock_t *lock, const tide_callback_t *callback) {
  if (lock == NULL || lock->set == NULL || callback == NULL) return TIDE_ERROR_ARGUMENT;
  if (callback->executor == NULL) return TIDE_ERROR_STATE;
  const tide_executor_config_t *config = &callback->executor->config;
  const tide_lane_t *most = lock->lane;
  for (size_t index = 0; index < config->lane_count; index++) {
    const tide_lane_t *lane = &config->lanes[index];
    if (lane->band != callback->band) continue;
    if (!keeps_its_processor(lane)) return TIDE_ERROR_UNSUPPORTED;
    if (most == NULL || is_above(lane, most)) most = lane;
  }
  lock->lane = most;
  if (callback->priority > lock->ceiling) lock->ceiling = callback->priority;
  return TIDE_OK;
}

/* Call this and the next three functions in the critical section. */
static int check_caller(const tide_lock_t *lock, const tide_callback_t *callback, const void *who) {
  if (who == NULL || callback->running == 0u) return TIDE_ERROR_LOCK_CONTEXT;
  for (const tide_lock_t *other = lock->set->first; other != NULL; other = other->next) {
    if (other->owner == who) return TIDE_ERROR_LOCK_HELD;
  }
  return callback->priority > lock->ceiling ? TIDE_ERROR_LOCK_CEILING : TIDE_OK;
}

static void queue_up(tide_lock_t *lock, tide_lock_waiter_t *waiter) {
  if (lock->last_waiter != NULL) {
    lock->last_waiter->next = waiter;
  } else {
    lock->first_waiter = waiter;
  }
  lock->last_waiter = waiter;
  lock->waits++;
}

/* Passes the lock to the longest waiter; returns null if there is none. */
static tide_lock_waiter_t *hand_over(tide_lock_t *lock) {
  tide_lock_waiter_t *next = lock->first_waiter;
  lock->owner = next == NULL ? NULL : next->who;
  if (next != NULL) lock->first_waiter = next->next;
  if (lock->first_waiter == NULL) lock->last_waiter = NULL;
  return next;
}

/* Leaves the critical section while the caller sleeps, and enters it again before returning. The event is the caller's
 * own, so nothing else wakes the caller. */
static uintptr_t wait_for_turn(tide_lock_t *lock, const void *who, uintptr_t state) {
  const tide_platform_t *platform = lock->set->platform;
  tide_lock_waiter_t waiter = {.who = who};
  tide_platform_event_init(platform, &waiter.event);
  queue_up(lock, &waiter);
  while (lock->owner != who) {
    tide_platform_exit(platform, state);
    (void)tide_platform_event_wait(platform, &waiter.event, TIDE_FOREVER);
    state = tide_platform_enter(platform);
  }
  return state;
}

int tide_lock_take(tide_lock_t *lock, const tide_callback_t *callback) {
  if (lock == NULL || lock->set == NULL || callback == NULL) return TIDE_ERROR_ARGUMENT;
  const tide_platform_t *platform = lock->set->platform;
  const tide_lock_port_t *port = lock->set->port;
  const void *who = port->current(port->context);
  uintptr_t state = tide_platform_enter(platform), before = 0;
  int status = check_caller(lock, callback, who);
  tide_platform_exit(platform, state);
  if (status == TIDE_OK) status = port->raise(port->context, lock->lane, &before);
  if (status != TIDE_OK) return status;
  state = tide_platform_enter(platform);
  if (lock->owner == NULL) {
    lock->owner = who;
  } else if (port->may_wait) {
    state = wait_for_turn(lock, who, state);
  } else {
    status = TIDE_ERROR_LOCK_CEILING;
  }
  if (status == TIDE_OK) {
    lock->before = before;
    lock->takes++;
  }
  tide_platform_exit(platform, state);
  if (status != TIDE_OK) port->restore(port->context, before);
  return status;
}

int tide_lock_give(tide_lock_t *lock) {
  if (lock == NULL || lock->set == NULL) return TIDE_ERROR_ARGUMENT;
  const tide_platform_t *platform = lock->set->platform;
  const tide_lock_port_t *port = lock->set->port;
  const void *who = port->current(port->context);
  const uintptr_t state = tide_platform_enter(platform);
  const uintptr_t before = lock->before;
  tide_lock_waiter_t *next = NULL;
  int status = TIDE_OK;
  if (lock->owner == NULL) {
    status = TIDE_ERROR_STATE;
  } else if (lock->owner != who) {
    status = TIDE_ERROR_LOCK_OWNER;
  } else {
    next = hand_over(lock);
  }
  tide_platform_exit(platform, state);
  if (next != NULL) tide_platform_event_set(platform, &next->event);
  if (status == TIDE_OK) port->restore(port->context, before);
  return status;
}

const char *tide_lock_text(int status) {
  switch (status) {
    case TIDE_ERROR_LOCK_CONTEXT: return "only the running callback may take a lock, not an interrupt";
    case TIDE_ERROR_LOCK_HELD: return "the caller already holds a lock, and may hold only one";
    case TIDE_ERROR_LOCK_OWNER: return "another lane holds the lock";
    case TIDE_ERROR_LOCK_CEILING: return "the callback is more urgent than any that was allowed to take the lock";
    default: return tide_status_text(status);
  }
}
