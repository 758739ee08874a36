/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of an executor as tasks of a kernel: their locks, their budgets, and the run from start to join. */
#include <string.h>

#include "rtos.h"

/* ---- locks: the priority ceiling ---- */

#define UNCHANGED UINTPTR_MAX

static const void *lock_current(void *context) {
  (void)context;
  return tide_port_in_interrupt() ? NULL : tide_kernel_self();
}

/* A lane rises to the priority of the lock's lane, if that lane has a priority of its own. All lanes that inherit their
 * scheduling have the same priority. */
static int lock_raise(void *context, const tide_lane_t *lane, uintptr_t *before) {
  const tide_lane_settings_t *settings = &lane->settings;
  const bool ranked =
      settings->scheduling == TIDE_SCHEDULING_FIFO || settings->scheduling == TIDE_SCHEDULING_ROUND_ROBIN;
  (void)context;
  *before = UNCHANGED;
  if (!TIDE_KERNEL_SETS_PRIORITY) return TIDE_ERROR_UNSUPPORTED;
  const int own = tide_kernel_priority();
  if (!ranked || own >= settings->priority) return TIDE_OK;
  *before = (uintptr_t)own;
  tide_kernel_set_priority(NULL, settings->priority);
  return TIDE_OK;
}

static void lock_restore(void *context, uintptr_t before) {
  (void)context;
  if (before != UNCHANGED) tide_kernel_set_priority(NULL, (int)before);
}

const tide_lock_port_t *tide_port_locks(void) {
  static const tide_lock_port_t port = {
      .current = lock_current, .raise = lock_raise, .restore = lock_restore, .may_wait = true};
  return &port;
}

/* ---- budgets ---- */

static const tide_platform_t *platform; /* fetched once: fetching may wait (NuttX), which is not allowed in a switch
                                           report */

#if TIDE_KERNEL_BUDGETS
/* A sporadic server for each lane with a budget. A task above all lanes, the keeper, sets their priorities. It is woken
 * when a budget may be exhausted or replenished, and when an event has changed a lane's priority. */
typedef struct lane_budget {
  tide_budget_t budget;
  tide_replenishment_t replenishments[TIDE_KERNEL_REPLENISHMENTS];
  tide_lane_t *lane;
  size_t index;
  const tide_rtos_task_t *task;
  void *self; /* the task that runs the lane, or null */
  int32_t applied;
  tide_kernel_stamp_t stamp;
  int64_t look_ns;         /* time at which the keeper has to check this lane */
  unsigned int idle_looks; /* checks since the lane had the processor; without TIDE_KERNEL_SWITCHES */
} lane_budget_t;

static struct {
  lane_budget_t lanes[TIDE_KERNEL_LANES];
  size_t count;
  const tide_lane_t *owner; /* the running lanes; null: none, and the counters are those of the previous run */
  lane_budget_t *running;   /* the lane that has the processor; with TIDE_KERNEL_SWITCHES */
  tide_rtos_task_t keeper;
  bool stop;
} all;

static int64_t clock_ns(void) { return platform->now_ns(platform->context); }

static int64_t take_consumed_masked(lane_budget_t *lane) {
  if (TIDE_KERNEL_SWITCHES && lane != all.running) return 0;
  return tide_kernel_consumed_ns(&lane->stamp, lane->self);
}

static void account_masked(lane_budget_t *lane) {
  const int64_t now_ns = clock_ns(), consumed_ns = take_consumed_masked(lane);
  if (!TIDE_KERNEL_SWITCHES && consumed_ns <= 0) {
    lane->idle_looks++;
    tide_budget_preempt(&lane->budget, 0, now_ns);
    return;
  }
  if (!TIDE_KERNEL_SWITCHES) {
    /* Without reports of switches, the lane is assumed to have run at the end of the interval, after other tasks,
     * unless it ran all the time. Budget that it left unused before then is not given back. */
    lane->idle_looks = 0u;
    tide_budget_preempt(&lane->budget, 0, lane->budget.now_ns);
    tide_budget_run(&lane->budget, now_ns - consumed_ns);
  }
  tide_budget_account(&lane->budget, consumed_ns, now_ns);
}

/* Earliest time at which the budget can be exhausted or replenished. If the alarm cannot be set when the lane gets the
 * processor, the lane is assumed to run all the time. The grain is the minimum, so that a remaining microsecond does
 * not cause a check each tick. It is doubled for a lane that does not get the processor. */
#define GRAIN_NS INT64_C(50000)
#define GRAIN_DOUBLINGS 2u
static int64_t next_look_ns(const lane_budget_t *lane) {
  const tide_budget_t *budget = &lane->budget;
  int64_t next_ns = tide_budget_deadline_ns(budget);
  if (!TIDE_KERNEL_ARMS_IN_SWITCH && budget->high) {
    const int64_t available_ns = tide_budget_available_ns(budget);
    const int64_t grain_ns = GRAIN_NS << (lane->idle_looks < GRAIN_DOUBLINGS ? lane->idle_looks : GRAIN_DOUBLINGS);
    next_ns = budget->now_ns + (TIDE_KERNEL_SWITCHES || available_ns > grain_ns ? available_ns : grain_ns);
  }
#ifdef TIDE_KERNEL_LOOK_NS
  if (next_ns > budget->now_ns + TIDE_KERNEL_LOOK_NS) next_ns = budget->now_ns + TIDE_KERNEL_LOOK_NS;
#endif
  return budget->high && !budget->ready ? TIDE_FOREVER : next_ns;
}

static void arm_masked(void) {
  int64_t next_ns = TIDE_FOREVER;
  for (size_t index = 0; index < all.count; index++) {
    const lane_budget_t *lane = &all.lanes[index];
    if (lane->self != NULL && lane->look_ns < next_ns) next_ns = lane->look_ns;
  }
  tide_kernel_look_at_masked(all.stop ? TIDE_FOREVER : next_ns);
}

/* Call after an event of the lane. True: its priority has changed, and the caller must wake the keeper after unmasking.
 */
static bool settle_masked(lane_budget_t *lane) {
  const bool changes = tide_budget_priority(&lane->budget) != lane->applied;
  lane->look_ns = changes ? lane->budget.now_ns : next_look_ns(lane);
  arm_masked();
  return changes;
}

#if TIDE_KERNEL_SWITCHES
void tide_rtos_switched(const void *task) {
  if (all.owner == NULL) return;
  const uintptr_t state = tide_kernel_mask();
  lane_budget_t *const before = all.running;
  lane_budget_t *next = NULL;
  for (size_t index = 0; index < all.count && task != NULL; index++)
    if (all.lanes[index].self == task) next = &all.lanes[index];
  if (next != before) {
    const int64_t now_ns = clock_ns();
    if (before != NULL) tide_budget_preempt(&before->budget, take_consumed_masked(before), now_ns);
    all.running = next;
    if (next != NULL) {
      (void)take_consumed_masked(next); /* discard the time of the previous task */
      tide_budget_run(&next->budget, now_ns);
    }
    if (TIDE_KERNEL_ARMS_IN_SWITCH) {
      if (before != NULL) (void)settle_masked(before);
      if (next != NULL) (void)settle_masked(next);
    }
  }
  tide_kernel_unmask(state);
}
#endif

static void ready_masked(lane_budget_t *lane) {
  if (TIDE_KERNEL_SWITCHES) (void)take_consumed_masked(lane); /* discard the time that the lane waited */
  tide_budget_ready(&lane->budget, clock_ns());
  if (lane == all.running) tide_budget_run(&lane->budget, lane->budget.now_ns);
  lane->idle_looks = 0u;
}

static void hook_ready(void *context) {
  lane_budget_t *lane = context;
  bool ask = false;
  const uintptr_t state = tide_kernel_mask();
  if (!lane->budget.ready) {
    ready_masked(lane);
    ask = settle_masked(lane);
  }
  tide_kernel_unmask(state);
  if (ask) tide_kernel_wake_keeper();
}

static void hook_block(void *context) {
  lane_budget_t *lane = context;
  bool ask = false;
  const uintptr_t state = tide_kernel_mask();
  if (lane->budget.ready) {
    account_masked(lane);
    tide_budget_block(&lane->budget, 0, lane->budget.now_ns);
    ask = settle_masked(lane);
  }
  tide_kernel_unmask(state);
  if (ask) tide_kernel_wake_keeper();
}

static void hook_read(void *context, tide_budget_counters_t *counters, bool *high) {
  const lane_budget_t *lane = context;
  const uintptr_t state = tide_kernel_mask();
  *counters = lane->budget.counters;
  *high = lane->budget.high;
  tide_kernel_unmask(state);
}

static void look_at(lane_budget_t *lane) {
  const uintptr_t state = tide_kernel_mask();
  const bool due = lane->self != NULL && lane->look_ns <= clock_ns();
  if (due) {
    account_masked(lane);
    lane->look_ns = next_look_ns(lane);
  }
  const int32_t wanted = tide_budget_priority(&lane->budget);
  const bool changes = due && wanted != lane->applied;
  if (changes) lane->applied = wanted; /* a following interrupt sees the new value and requests another check */
  tide_kernel_unmask(state);
  if (changes) tide_kernel_set_priority(lane->task, (int)wanted);
}

static void keep_budgets(void *unused) {
  (void)unused;
  for (;;) {
    tide_kernel_await_look();
    if (__atomic_load_n(&all.stop, __ATOMIC_ACQUIRE)) return;
    for (size_t index = 0; index < all.count; index++) look_at(&all.lanes[index]);
    const uintptr_t state = tide_kernel_mask();
    arm_masked();
    tide_kernel_unmask(state);
  }
}

static int start_keeper(const tide_lane_t *owner) {
  static const tide_lane_settings_t settings = {.name = "tide budgets", .scheduling = TIDE_SCHEDULING_FIFO};
  if (all.owner != NULL) return TIDE_ERROR_STATE; /* another executor's lanes run */
  const int status = tide_kernel_prepare_budgets();
  if (status != TIDE_OK) return status;
  memset(&all, 0, sizeof all);
  all.keeper.run = keep_budgets;
  all.owner = owner;
  const int started = tide_kernel_start(&all.keeper, TIDE_RTOS_KEEPER, &settings, TIDE_KERNEL_PRIORITY_KEEPER);
  if (started != TIDE_OK) all.owner = NULL;
  return started;
}

static void stop_budgets(const tide_lane_t *owner) {
  if (all.owner == NULL || all.owner != owner) return;
  uintptr_t state = tide_kernel_mask();
  __atomic_store_n(&all.stop, true, __ATOMIC_RELEASE);
  arm_masked();
  tide_kernel_unmask(state);
  tide_kernel_wake_keeper();
  tide_kernel_join(&all.keeper);
  state = tide_kernel_mask();
  for (size_t index = 0; index < all.count; index++) all.lanes[index].lane->budget = (tide_budget_hooks_t){0};
  all.running = NULL;
  all.owner = NULL;
  tide_kernel_unmask(state);
}

static int add_budget(tide_lane_t *lanes, size_t index, const tide_rtos_task_t *task) {
  const tide_lane_settings_t *settings = &lanes[index].settings;
  const int32_t low = settings->low_priority, least = TIDE_KERNEL_PRIORITY_LEAST;
  const int status = all.owner == lanes ? TIDE_OK : start_keeper(lanes);
  if (status != TIDE_OK) return status;
  if (settings->priority > TIDE_KERNEL_PRIORITY_BUDGET || low < 0) return TIDE_ERROR_ARGUMENT;
  if (settings->maximum_replenishments > TIDE_KERNEL_REPLENISHMENTS) return TIDE_ERROR_FULL;
  lane_budget_t *added = &all.lanes[all.count];
  const uint16_t replenishments =
      settings->maximum_replenishments > 0u ? settings->maximum_replenishments : (uint16_t)TIDE_KERNEL_REPLENISHMENTS;
  const tide_budget_config_t config = {.priority = settings->priority,
                                       .low_priority = low < least ? least : low,
                                       .budget_ns = settings->runtime_ns,
                                       .period_ns = settings->period_ns,
                                       .replenishments = added->replenishments,
                                       .maximum_replenishments = replenishments};
  const int refused = tide_budget_init(&added->budget, &config, clock_ns());
  if (refused != TIDE_OK) return refused;
  added->lane = &lanes[index];
  added->index = index;
  added->task = task;
  added->applied = settings->priority;
  added->look_ns = TIDE_FOREVER;
  lanes[index].budget =
      (tide_budget_hooks_t){.context = added, .ready = hook_ready, .block = hook_block, .read = hook_read};
  all.count++;
  return TIDE_OK;
}

/* begin_budget and end_budget are called by the lane's own task, around its run. */
static void begin_budget(lane_budget_t *lane) {
  const uintptr_t state = tide_kernel_mask();
  lane->self = tide_kernel_self();
  if (TIDE_KERNEL_SWITCHES) all.running = lane;
  ready_masked(lane);
  (void)settle_masked(
      lane); /* no wake-up needed: if the keeper is already late for this lane, the alarm fires at once */
  tide_kernel_unmask(state);
}

static void end_budget(lane_budget_t *lane) {
  hook_block(lane);
  const uintptr_t state = tide_kernel_mask();
  if (lane == all.running) all.running = NULL;
  lane->self = NULL;
  tide_kernel_unmask(state);
}
#endif

const tide_budget_t *tide_port_lane_budget(size_t lane) {
#if TIDE_KERNEL_BUDGETS
  for (size_t index = 0; index < all.count; index++)
    if (all.lanes[index].index == lane) return &all.lanes[index].budget;
#endif
  (void)lane;
  return NULL;
}

/* ---- the run ---- */

typedef struct run {
  void (*function)(void *context, size_t index);
  void *context;
  bool called_off;
} run_t;

typedef struct start {
  run_t *run;
  tide_lane_t *lane;
  size_t index;
  tide_event_t gate; /* all tasks exist, or the run was cancelled */
  tide_rtos_task_t task;
} start_t;

static void run_lane(void *argument) {
  start_t *start = argument;
  (void)platform->event_wait(platform->context, &start->gate, TIDE_FOREVER);
  if (start->run->called_off) return;
#if TIDE_KERNEL_BUDGETS
  if (start->lane->budget.context != NULL) begin_budget(start->lane->budget.context);
#endif
  start->run->function(start->run->context, start->index);
#if TIDE_KERNEL_BUDGETS
  if (start->lane->budget.context != NULL) end_budget(start->lane->budget.context);
#endif
}

static int start_lane(start_t *start) {
  const tide_lane_settings_t *settings = &start->lane->settings;
  int priority = tide_kernel_priority();
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_INHERIT: break;
    case TIDE_SCHEDULING_NORMAL: priority = TIDE_KERNEL_PRIORITY_NORMAL; break;
    case TIDE_SCHEDULING_FIFO:
    case TIDE_SCHEDULING_ROUND_ROBIN: /* round robin if the kernel slices time */
      priority = settings->priority;
      if (priority < TIDE_KERNEL_PRIORITY_LEAST || priority > TIDE_KERNEL_PRIORITY_MOST) return TIDE_ERROR_ARGUMENT;
      break;
    case TIDE_SCHEDULING_SPORADIC:
      if (TIDE_KERNEL_BUDGETS) {
        priority = settings->priority;
        if (priority < TIDE_KERNEL_PRIORITY_LEAST || priority > TIDE_KERNEL_PRIORITY_MOST) return TIDE_ERROR_ARGUMENT;
        break;
      }
      if (!settings->may_run_normally) return TIDE_ERROR_UNSUPPORTED;
      break;
    default: /* deadline scheduling: no kernel here supports it */
      if (!settings->may_run_normally) return TIDE_ERROR_UNSUPPORTED;
  }
  platform->event_init(platform->context, &start->gate);
  start->task.run = run_lane;
  start->task.argument = start;
  return tide_kernel_start(&start->task, start->index, settings, priority);
}

#if TIDE_KERNEL_ONE_SET
static bool is_taken; /* set while an executor uses the only set of tasks and stacks */
static bool take_set(bool take) {
  const uintptr_t state = tide_kernel_enter(NULL);
  const bool was_free = !is_taken;
  is_taken = take;
  tide_kernel_exit(NULL, state);
  return was_free || !take;
}
#endif

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*function)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || function == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > TIDE_KERNEL_LANES) return TIDE_ERROR_FULL;
#if TIDE_KERNEL_ONE_SET
  if (!take_set(true)) return TIDE_ERROR_STATE;
#endif
  platform = tide_port_platform();
  run_t run = {.function = function, .context = context};
  start_t starts[TIDE_KERNEL_LANES];
  size_t started = 0;
  int status = TIDE_OK;
  for (size_t index = 0; index < count && status == TIDE_OK; index++) {
    starts[index] = (start_t){.run = &run, .lane = &lanes[index], .index = index};
    status = start_lane(&starts[index]);
    if (status == TIDE_OK) started++;
    if (status != TIDE_OK && refused != NULL) *refused = index;
  }
#if TIDE_KERNEL_BUDGETS
  for (size_t index = 0; index < count && status == TIDE_OK; index++) {
    if (lanes[index].settings.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    status = add_budget(lanes, index, &starts[index].task);
    if (status != TIDE_OK && refused != NULL) *refused = index;
  }
#endif
  run.called_off = status != TIDE_OK;
  /* Opened with the scheduler locked: on one processor no lane runs before all may. */
  const uintptr_t state = platform->lanes_enter != NULL ? platform->lanes_enter(platform->context) : 0u;
  for (size_t index = 0; index < started; index++) platform->event_set(platform->context, &starts[index].gate);
  if (platform->lanes_exit != NULL) platform->lanes_exit(platform->context, state);
  while (started > 0u) tide_kernel_join(&starts[--started].task);
#if TIDE_KERNEL_BUDGETS
  stop_budgets(lanes);
#endif
#if TIDE_KERNEL_ONE_SET
  (void)take_set(false);
#endif
  return status;
}
