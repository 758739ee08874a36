/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"

#include <string.h>

#include "tide/chain_watch.h"
#include "tide/status.h"

#define PERIOD_NS 1000

static int64_t virtual_ns;

static int64_t now_ns(void *context) {
  (void)context;
  return virtual_ns;
}

static uintptr_t critical_enter(void *context) {
  (void)context;
  return 0u;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  (void)state;
}

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0u;
}

static void event_set(void *context, tide_event_t *event) {
  (void)context;
  event->state = 1u;
}

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  (void)context;
  const int set = event->state == 1u ? 1 : 0;
  event->state = 0u;
  virtual_ns = set == 0 && deadline_ns > virtual_ns ? deadline_ns : virtual_ns;
  return set;
}

static const tide_platform_t platform = {.now_ns = now_ns,
                                         .critical_enter = critical_enter,
                                         .critical_exit = critical_exit,
                                         .event_init = event_init,
                                         .event_set = event_set,
                                         .event_wait = event_wait};

static tide_callback_t *callbacks[DISPATCH_HANDLES_MAXIMUM];
static tide_queue_entry_t *ready_storage[DISPATCH_HANDLES_MAXIMUM], *timer_storage[DISPATCH_HANDLES_MAXIMUM];
static tide_timer_t timers[DISPATCH_HANDLES_MAXIMUM];
static tide_lane_t lane;
static tide_executor_t executor;
static uint64_t expiries;

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  expiries++;
}

bool dispatch_prepare(tide_policy_t policy, size_t handles) {
  const tide_executor_config_t config = {.platform = &platform,
                                         .policy = policy,
                                         .callbacks = callbacks,
                                         .ready_storage = ready_storage,
                                         .timer_storage = timer_storage,
                                         .callback_count = DISPATCH_HANDLES_MAXIMUM,
                                         .lanes = &lane,
                                         .lane_count = 1};
  bool ready = tide_executor_init(&executor, &config) == TIDE_OK;
  memset(timers, 0, sizeof timers);
  for (size_t index = 0; index < handles; index++) {
    tide_timer_t *timer = &timers[index];
    timer->period_ns = (int64_t)handles * PERIOD_NS;
    timer->on_expiry = on_expiry;
    timer->callback.priority = (tide_priority_t)(index * 7u % handles);
    ready = ready && tide_executor_add_timer(&executor, timer) == TIDE_OK &&
            tide_timer_set_phase(timer, virtual_ns + (int64_t)(index + 1u) * PERIOD_NS) == TIDE_OK;
  }
  return ready;
}

bool dispatch_watch(size_t handles) {
  static tide_chain_watch_t watches[DISPATCH_WATCHES_MAXIMUM];
  memset(watches, 0, sizeof watches);
  for (size_t index = 0; index < handles; index++) {
    tide_chain_t chain;
    tide_callback_t *callback = &timers[index].callback;
    const int64_t period_ns = timers[index].period_ns;
    if (tide_chain_init(&chain, "watched", 1, period_ns, period_ns) != TIDE_OK ||
        tide_chain_watch(&watches[index], &chain, callback, callback) != TIDE_OK) {
      return false;
    }
  }
  return true;
}

__attribute__((noinline)) uint64_t measured_rounds(uint32_t rounds) {
  uint64_t ran = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    const int result = tide_executor_round(&executor, TIDE_FOREVER);
    ran += result > 0 ? (uint64_t)result : 0u;
  }
  return ran;
}
