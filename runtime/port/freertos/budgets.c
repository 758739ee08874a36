/* SPDX-License-Identifier: Apache-2.0 */
/* A sporadic server for each lane with a budget. The kernel tells each switch to a task, so time is charged exactly;
 * the alarm comes when a budget is used up or comes back, and a task above all lanes then sets the priorities. */
#include "budgets.h"

#include <string.h>

#include "tide/status.h"

#if TIDE_FREERTOS_BUDGETS

#define STACK_BYTES 1024u
#define NOBODY SIZE_MAX

typedef struct lane_budget {
  tide_budget_t budget;
  tide_replenishment_t replenishments[TIDE_FREERTOS_REPLENISHMENTS];
  tide_lane_t *lane; /* null: none */
  size_t index;
  TaskHandle_t task;
  int32_t applied;
} lane_budget_t;

static struct {
  lane_budget_t lanes[TIDE_FREERTOS_LANES];
  size_t count;
  size_t running; /* the one that has the processor */
  int64_t since_ns;
  tide_event_t look, ended;
  TaskHandle_t task;
  bool stop;
} all = {.running = NOBODY};

static const tide_platform_t *platform(void) { return tide_port_platform(); }
static uintptr_t enter(void) { return platform()->critical_enter(platform()->context); }
static void leave(uintptr_t state) { platform()->critical_exit(platform()->context, state); }

/* ---- in the critical section ---- */

static int64_t take_consumed_locked(int64_t now_ns) {
  const int64_t consumed_ns = now_ns - all.since_ns;
  all.since_ns = now_ns;
  return consumed_ns;
}

static void arm_locked(void) {
  int64_t next_ns = TIDE_FOREVER;
  for (size_t index = 0; index < all.count; index++) {
    const int64_t look_ns = tide_budget_deadline_ns(&all.lanes[index].budget);
    if (look_ns < next_ns) next_ns = look_ns;
  }
  tide_freertos_look_at_locked(&all.look, next_ns);
}

static size_t lane_of_locked(TaskHandle_t task) {
  for (size_t index = 0; index < all.count; index++)
    if (all.lanes[index].task == task) return index;
  return NOBODY;
}

/* The kernel has chosen a task. */
void tide_freertos_switched_in(void) {
  if (all.count == 0u) return;
  const uintptr_t state = enter();
  const int64_t now_ns = tide_freertos_clock_ns();
  const size_t next = lane_of_locked(xTaskGetCurrentTaskHandle());
  if (next != all.running) {
    const int64_t consumed_ns = take_consumed_locked(now_ns);
    if (all.running != NOBODY) tide_budget_preempt(&all.lanes[all.running].budget, consumed_ns, now_ns);
    all.running = next;
    if (next != NOBODY) tide_budget_run(&all.lanes[next].budget, now_ns);
    arm_locked();
  }
  leave(state);
}

/* ---- what a lane says ---- */

static void hook_ready(void *context) {
  lane_budget_t *lane = context;
  const uintptr_t state = enter();
  const int64_t now_ns = tide_freertos_clock_ns();
  if (!lane->budget.ready) {
    tide_budget_ready(&lane->budget, now_ns);
    if (all.running == (size_t)(lane - all.lanes)) { /* else its waker says so */
      all.since_ns = now_ns;
      tide_budget_run(&lane->budget, now_ns);
    }
    arm_locked();
  }
  leave(state);
}

static void hook_block(void *context) {
  lane_budget_t *lane = context;
  const uintptr_t state = enter();
  const int64_t now_ns = tide_freertos_clock_ns();
  tide_budget_block(&lane->budget, take_consumed_locked(now_ns), now_ns);
  arm_locked();
  leave(state);
}

static void hook_read(void *context, tide_budget_counters_t *counters, bool *high) {
  const lane_budget_t *lane = context;
  const uintptr_t state = enter();
  *counters = lane->budget.counters;
  *high = lane->budget.high;
  leave(state);
}

/* ---- the task ---- */

static void apply(lane_budget_t *lane) {
  const uintptr_t state = enter();
  tide_budget_account(&lane->budget, 0, tide_freertos_clock_ns());
  const int32_t wanted = tide_budget_priority(&lane->budget);
  arm_locked();
  leave(state);
  if (wanted == lane->applied) return;
  lane->applied = wanted;
  vTaskPrioritySet(lane->task, (UBaseType_t)wanted);
}

static void look_task(void *argument) {
  (void)argument;
  for (;;) {
    (void)platform()->event_wait(platform()->context, &all.look, TIDE_FOREVER);
    if (all.stop) break;
    for (size_t index = 0; index < all.count; index++) apply(&all.lanes[index]);
  }
  platform()->event_set(platform()->context, &all.ended);
  for (;;) vTaskSuspend(NULL);
}

int tide_freertos_budgets_start(void) {
  if (all.task != NULL) return TIDE_ERROR_STATE; /* of another executor */
  all.count = 0u;
  all.running = NOBODY;
  all.stop = false;
  platform()->event_init(platform()->context, &all.look);
  platform()->event_init(platform()->context, &all.ended);
  const configSTACK_DEPTH_TYPE depth = (configSTACK_DEPTH_TYPE)(STACK_BYTES / sizeof(StackType_t));
  const BaseType_t made = xTaskCreate(look_task, "tide budgets", depth, NULL, TIDE_FREERTOS_LINK_PRIORITY, &all.task);
  return made == pdPASS ? TIDE_OK : TIDE_ERROR_FULL;
}

int tide_freertos_budgets_add(tide_lane_t *lane, size_t index, TaskHandle_t task) {
  const tide_lane_settings_t *settings = &lane->settings;
  if (all.count == TIDE_FREERTOS_LANES) return TIDE_ERROR_FULL;
  if (settings->maximum_replenishments > TIDE_FREERTOS_REPLENISHMENTS) return TIDE_ERROR_FULL;
  lane_budget_t *place = &all.lanes[all.count];
  memset(place, 0, sizeof *place);
  const uint16_t replenishments =
      settings->maximum_replenishments > 0u ? settings->maximum_replenishments : TIDE_FREERTOS_REPLENISHMENTS;
  const tide_budget_config_t config = {.priority = settings->priority,
                                       .low_priority = settings->low_priority,
                                       .budget_ns = settings->runtime_ns,
                                       .period_ns = settings->period_ns,
                                       .replenishments = place->replenishments,
                                       .maximum_replenishments = replenishments};
  const int status = tide_budget_init(&place->budget, &config, tide_freertos_clock_ns());
  if (status != TIDE_OK) return status;
  place->lane = lane;
  place->index = index;
  place->task = task;
  place->applied = settings->priority;
  lane->budget = (tide_budget_hooks_t){.context = place, .ready = hook_ready, .block = hook_block, .read = hook_read};
  const uintptr_t state = enter();
  tide_budget_ready(&place->budget, tide_freertos_clock_ns());
  all.count++;
  leave(state);
  return TIDE_OK;
}

void tide_freertos_budgets_stop(void) {
  if (all.task == NULL) return;
  uintptr_t state = enter();
  all.stop = true;
  leave(state);
  platform()->event_set(platform()->context, &all.look);
  (void)platform()->event_wait(platform()->context, &all.ended, TIDE_FOREVER);
  vTaskDelete(all.task);
  state = enter();
  tide_freertos_look_at_locked(&all.look, TIDE_FOREVER);
  for (size_t index = 0; index < all.count; index++) {
    all.lanes[index].lane->budget = (tide_budget_hooks_t){0};
    all.lanes[index].task = NULL; /* the counters stay */
  }
  all.running = NOBODY;
  all.task = NULL;
  leave(state);
}

const tide_budget_t *tide_freertos_lane_budget(size_t lane) {
  for (size_t index = 0; index < all.count; index++)
    if (all.lanes[index].index == lane) return &all.lanes[index].budget;
  return NULL;
}

#else
typedef int tide_freertos_has_no_budgets_t; /* a translation unit is not empty */
#endif
