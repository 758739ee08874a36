/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each lane, on static stacks. Zephyr counts priorities downwards; a lane's priority is written as on
 * other systems, larger for the more urgent: 1 is the least urgent preemptible one. */
#include <zephyr/kernel.h>

#include "budgets.h"
#include "tide/port.h"
#include "tide/status.h"

static K_THREAD_STACK_ARRAY_DEFINE(stacks, CONFIG_TIDE_LANES_MAXIMUM, CONFIG_TIDE_LANE_STACK_BYTES);
static struct k_thread threads[CONFIG_TIDE_LANES_MAXIMUM];

static struct {
  void (*run)(void *context, size_t index);
  void *context;
  bool running; /* threads and stacks are one set, for one executor at a time */
} lanes_run;

#ifdef CONFIG_SCHED_CPU_MASK
#define PROCESSORS CONFIG_MP_MAX_NUM_CPUS
static void pin(k_tid_t thread, uint16_t processor) {
  if (processor != 0u) (void)k_thread_cpu_pin(thread, processor - 1);
}
#else
#define PROCESSORS 0
static void pin(k_tid_t thread, uint16_t processor) {
  ARG_UNUSED(thread);
  ARG_UNUSED(processor);
}
#endif

static void lane_thread(void *index, void *unused, void *also_unused) {
  ARG_UNUSED(unused);
  ARG_UNUSED(also_unused);
  lanes_run.run(lanes_run.context, (size_t)(uintptr_t)index);
}

static int priority_of(const tide_lane_settings_t *settings, int *priority) {
  *priority = k_thread_priority_get(k_current_get());
  if (settings->stack_bytes > CONFIG_TIDE_LANE_STACK_BYTES) return TIDE_ERROR_UNSUPPORTED;
  if (settings->processor > PROCESSORS) return PROCESSORS > 0 ? TIDE_ERROR_ARGUMENT : TIDE_ERROR_UNSUPPORTED;
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_INHERIT:
      return TIDE_OK;
    case TIDE_SCHEDULING_NORMAL:
      *priority = K_LOWEST_APPLICATION_THREAD_PRIO;
      return TIDE_OK;
    case TIDE_SCHEDULING_FIFO:
    case TIDE_SCHEDULING_ROUND_ROBIN: /* in turns where CONFIG_TIMESLICING says so */
      if (settings->priority < 1 || settings->priority > CONFIG_NUM_PREEMPT_PRIORITIES) return TIDE_ERROR_ARGUMENT;
      *priority = tide_zephyr_priority(settings->priority);
      return TIDE_OK;
#ifdef CONFIG_TIDE_BUDGETS
    case TIDE_SCHEDULING_SPORADIC: /* the rest is looked at in add_budgets */
      *priority = tide_zephyr_priority(settings->priority);
      return TIDE_OK;
#endif
    default:
      return settings->may_run_normally ? TIDE_OK : TIDE_ERROR_UNSUPPORTED;
  }
}

static bool begin(void) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t state = platform->critical_enter(platform->context);
  const bool free = !lanes_run.running;
  lanes_run.running = true;
  platform->critical_exit(platform->context, state);
  return free;
}

static void end(void) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t state = platform->critical_enter(platform->context);
  lanes_run.running = false;
  platform->critical_exit(platform->context, state);
}

#ifdef CONFIG_TIDE_BUDGETS
static int add_budgets(tide_lane_t *lanes, size_t count, size_t *refused) {
  tide_zephyr_budgets_clear();
  for (size_t index = 0; index < count; index++) {
    if (lanes[index].settings.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    const int status = tide_zephyr_budgets_add(&lanes[index], index);
    if (status == TIDE_OK) continue;
    if (refused != NULL) *refused = index;
    return status;
  }
  return TIDE_OK;
}
#else
static int add_budgets(const tide_lane_t *lanes, size_t count, const size_t *refused) {
  ARG_UNUSED(lanes);
  ARG_UNUSED(count);
  ARG_UNUSED(refused);
  return TIDE_OK;
}
#endif

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || run == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > CONFIG_TIDE_LANES_MAXIMUM) return TIDE_ERROR_FULL;
  int priorities[CONFIG_TIDE_LANES_MAXIMUM];
  for (size_t index = 0; index < count; index++) {
    const int status = priority_of(&lanes[index].settings, &priorities[index]);
    if (status == TIDE_OK) continue;
    if (refused != NULL) *refused = index;
    return status;
  }
  if (!begin()) return TIDE_ERROR_STATE;
  const int added = add_budgets(lanes, count, refused);
  if (added != TIDE_OK) {
    end();
    return added;
  }
  tide_zephyr_budgets_start();
  lanes_run.run = run;
  lanes_run.context = context;
  for (size_t index = 0; index < count; index++) { /* none starts before all are there, on no processor */
    k_tid_t thread = k_thread_create(&threads[index], stacks[index], K_THREAD_STACK_SIZEOF(stacks[index]), lane_thread,
                                     (void *)(uintptr_t)index, NULL, NULL, priorities[index], 0, K_FOREVER);
    (void)k_thread_name_set(thread, lanes[index].settings.name != NULL ? lanes[index].settings.name : "tide lane");
    pin(thread, lanes[index].settings.processor);
    tide_zephyr_budgets_bind(index, thread);
  }
  k_sched_lock();
  for (size_t index = 0; index < count; index++) k_thread_start(&threads[index]);
  k_sched_unlock();
  for (size_t index = 0; index < count; index++) (void)k_thread_join(&threads[index], K_FOREVER);
  tide_zephyr_budgets_stop();
  end();
  return TIDE_OK;
}
