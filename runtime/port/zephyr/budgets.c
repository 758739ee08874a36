/* SPDX-License-Identifier: Apache-2.0 */
/* A sporadic server for each lane with a budget. The kernel counts the cycles of each thread; a timer comes when a
 * budget may be used up or comes back, and a thread above all lanes then looks and sets the priorities. Nobody tells
 * who is switched to, so a lane that has used time since the last look is taken to have had it at the end. */
#include "budgets.h"

#include <string.h>

#include "tide/status.h"
#include "tide_zephyr.h"

#define PRIORITY K_PRIO_COOP(CONFIG_NUM_COOP_PRIORITIES - 1) /* above all lanes, which are preemptible */
/* No earlier look than this, so that a rest of a microsecond does not become a look each tick; doubled for a lane that
 * does not get to run. */
#define GRAIN_NS INT64_C(50000)
#define GRAIN_DOUBLINGS 2u

typedef struct lane_budget {
  tide_budget_t budget;
  tide_replenishment_t replenishments[CONFIG_TIDE_REPLENISHMENTS];
  tide_lane_t *lane;
  size_t index;
  k_tid_t thread;
  int32_t applied;
  int64_t counted_ns; /* of the thread's time: what the budget knows of */
  int64_t look_ns;
  unsigned int idle_looks;
} lane_budget_t;

static K_THREAD_STACK_DEFINE(budgets_stack, CONFIG_TIDE_BUDGETS_STACK_BYTES);
static struct k_thread budgets_thread;
static struct k_timer alarm;

static struct {
  lane_budget_t lanes[CONFIG_TIDE_LANES_MAXIMUM];
  size_t count;
  tide_event_t look;
  bool stop;
} all;

static const tide_platform_t *platform(void) { return tide_port_platform(); }
static uintptr_t enter(void) { return platform()->critical_enter(platform()->context); }
static void leave(uintptr_t state) { platform()->critical_exit(platform()->context, state); }
static int64_t clock_ns(void) { return platform()->now_ns(platform()->context); }
static void look(void) { platform()->event_set(platform()->context, &all.look); }

/* ---- in the critical section ---- */

static int64_t take_consumed_locked(lane_budget_t *lane) {
  k_thread_runtime_stats_t statistics;
  if (k_thread_runtime_stats_get(lane->thread, &statistics) != 0) return 0;
  const int64_t used_ns = (int64_t)k_cyc_to_ns_floor64(statistics.execution_cycles);
  const int64_t consumed_ns = used_ns - lane->counted_ns;
  lane->counted_ns = used_ns;
  return consumed_ns;
}

static void account_locked(lane_budget_t *lane) {
  const int64_t now_ns = clock_ns(), consumed_ns = take_consumed_locked(lane);
  if (consumed_ns <= 0) {
    lane->idle_looks++;
    tide_budget_preempt(&lane->budget, 0, now_ns);
    return;
  }
  lane->idle_looks = 0u;
  tide_budget_run(&lane->budget, now_ns - consumed_ns);
  tide_budget_account(&lane->budget, consumed_ns, now_ns);
}

static int64_t next_look_ns(const lane_budget_t *lane) {
  const tide_budget_t *budget = &lane->budget;
  if (!budget->high) return tide_budget_deadline_ns(budget);
  if (!budget->ready) return TIDE_FOREVER;
  const int64_t grain_ns = GRAIN_NS << (lane->idle_looks < GRAIN_DOUBLINGS ? lane->idle_looks : GRAIN_DOUBLINGS);
  const int64_t available_ns = tide_budget_available_ns(budget);
  return budget->now_ns + (available_ns > grain_ns ? available_ns : grain_ns);
}

static void arm_locked(void) {
  int64_t next_ns = TIDE_FOREVER;
  for (size_t index = 0; index < all.count; index++)
    if (all.lanes[index].look_ns < next_ns) next_ns = all.lanes[index].look_ns;
  if (next_ns == TIDE_FOREVER || all.stop) {
    k_timer_stop(&alarm);
  } else {
    const k_ticks_t tick = (k_ticks_t)k_ns_to_ticks_ceil64((uint64_t)next_ns);
    k_timer_start(&alarm, K_TIMEOUT_ABS_TICKS(tick), K_NO_WAIT);
  }
}

/* After what did not come from the thread. */
static void settle_locked(lane_budget_t *lane) {
  const bool changes = tide_budget_priority(&lane->budget) != lane->applied;
  lane->look_ns = changes ? lane->budget.now_ns : next_look_ns(lane);
  arm_locked();
}

/* ---- what a lane says ---- */

static void hook_ready(void *context) {
  lane_budget_t *lane = context;
  const uintptr_t state = enter();
  if (!lane->budget.ready) {
    tide_budget_ready(&lane->budget, clock_ns());
    lane->idle_looks = 0u;
    settle_locked(lane);
  }
  leave(state);
}

static void hook_block(void *context) {
  lane_budget_t *lane = context;
  const uintptr_t state = enter();
  if (lane->budget.ready) {
    account_locked(lane);
    tide_budget_block(&lane->budget, 0, lane->budget.now_ns);
    settle_locked(lane);
  }
  leave(state);
}

static void hook_read(void *context, tide_budget_counters_t *counters, bool *high) {
  const lane_budget_t *lane = context;
  const uintptr_t state = enter();
  *counters = lane->budget.counters;
  *high = lane->budget.high;
  leave(state);
}

/* ---- the thread ---- */

static void look_at(lane_budget_t *lane) {
  const uintptr_t state = enter();
  const bool due = lane->look_ns <= clock_ns();
  if (due) {
    account_locked(lane);
    lane->look_ns = next_look_ns(lane);
  }
  const int32_t wanted = tide_budget_priority(&lane->budget);
  const bool changes = due && wanted != lane->applied;
  if (changes) lane->applied = wanted; /* an interrupt that comes next sees what will be, and asks for another look */
  leave(state);
  if (changes) k_thread_priority_set(lane->thread, tide_zephyr_priority(wanted));
}

static void keep_budgets(void *unused, void *also_unused, void *unused_too) {
  ARG_UNUSED(unused);
  ARG_UNUSED(also_unused);
  ARG_UNUSED(unused_too);
  for (;;) {
    (void)platform()->event_wait(platform()->context, &all.look, TIDE_FOREVER);
    if (all.stop) return;
    for (size_t index = 0; index < all.count; index++) look_at(&all.lanes[index]);
    const uintptr_t state = enter();
    arm_locked();
    leave(state);
  }
}

static void on_alarm(struct k_timer *timer) {
  ARG_UNUSED(timer);
  look();
}

/* ---- between the lanes and the thread ---- */

void tide_zephyr_budgets_clear(void) { memset(&all, 0, sizeof all); }

int tide_zephyr_budgets_add(tide_lane_t *lane, size_t index) {
  const tide_lane_settings_t *settings = &lane->settings;
  if (settings->priority > CONFIG_NUM_PREEMPT_PRIORITIES || settings->low_priority < 0) return TIDE_ERROR_ARGUMENT;
  if (settings->maximum_replenishments > CONFIG_TIDE_REPLENISHMENTS) return TIDE_ERROR_FULL;
  lane_budget_t *place = &all.lanes[all.count];
  const uint16_t replenishments =
      settings->maximum_replenishments > 0u ? settings->maximum_replenishments : (uint16_t)CONFIG_TIDE_REPLENISHMENTS;
  const tide_budget_config_t config = {.priority = settings->priority,
                                       .low_priority = settings->low_priority < 1 ? 1 : settings->low_priority,
                                       .budget_ns = settings->runtime_ns,
                                       .period_ns = settings->period_ns,
                                       .replenishments = place->replenishments,
                                       .maximum_replenishments = replenishments};
  const int64_t now_ns = clock_ns();
  const int status = tide_budget_init(&place->budget, &config, now_ns);
  if (status != TIDE_OK) return status;
  place->lane = lane;
  place->index = index;
  place->applied = settings->priority;
  place->look_ns = TIDE_FOREVER;
  all.count++;
  return TIDE_OK;
}

void tide_zephyr_budgets_bind(size_t index, k_tid_t thread) {
  for (size_t place = 0; place < all.count; place++) {
    lane_budget_t *lane = &all.lanes[place];
    if (lane->index != index) continue;
    lane->thread = thread;
    lane->lane->budget =
        (tide_budget_hooks_t){.context = lane, .ready = hook_ready, .block = hook_block, .read = hook_read};
    hook_ready(lane);
  }
}

void tide_zephyr_budgets_start(void) {
  if (all.count == 0u) return;
  platform()->event_init(platform()->context, &all.look);
  k_timer_init(&alarm, on_alarm, NULL);
  k_tid_t thread = k_thread_create(&budgets_thread, budgets_stack, K_THREAD_STACK_SIZEOF(budgets_stack), keep_budgets,
                                   NULL, NULL, NULL, PRIORITY, 0, K_NO_WAIT);
  (void)k_thread_name_set(thread, "tide budgets");
}

/* The counters stay. */
void tide_zephyr_budgets_stop(void) {
  if (all.count == 0u) return;
  const uintptr_t state = enter();
  all.stop = true;
  arm_locked();
  look();
  leave(state);
  (void)k_thread_join(&budgets_thread, K_FOREVER);
  for (size_t index = 0; index < all.count; index++) all.lanes[index].lane->budget = (tide_budget_hooks_t){0};
}

const tide_budget_t *tide_zephyr_lane_budget(size_t lane) {
  for (size_t index = 0; index < all.count; index++)
    if (all.lanes[index].index == lane) return &all.lanes[index].budget;
  return NULL;
}
