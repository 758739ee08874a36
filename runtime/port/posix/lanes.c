/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each lane of an executor. All threads have their scheduling and wait at a gate before the first one
 * continues. Lanes with a budget share a supervisor, whose priority is one above that of the most urgent of them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "tide/budget_posix.h"
#include "tide/port.h"
#include "tide/posix_thread.h"
#include "tide/status.h"

typedef enum gate { GATE_SHUT, GATE_OPEN, GATE_CALLED_OFF } gate_t;

typedef struct lanes {
  void (*run)(void *context, size_t index);
  void *context;
  pthread_mutex_t mutex;
  pthread_cond_t decided;
  gate_t gate;
  tide_posix_budgets_t budgets;
  int budgets_status; /* status of the supervisor */
} lanes_t;

typedef struct lane {
  lanes_t *lanes;
  tide_lane_t *lane;
  size_t index;
  bool started;
  tide_posix_thread_t thread;
  tide_posix_budget_t budget;
  tide_replenishment_t *replenishments; /* null: no budget */
} lane_t;

enum { REPLENISHMENTS = 16 };

static void decide(lanes_t *lanes, gate_t gate) {
  (void)pthread_mutex_lock(&lanes->mutex);
  lanes->gate = gate;
  (void)pthread_cond_broadcast(&lanes->decided);
  (void)pthread_mutex_unlock(&lanes->mutex);
}

static gate_t wait_at_gate(lanes_t *lanes) {
  (void)pthread_mutex_lock(&lanes->mutex);
  while (lanes->gate == GATE_SHUT) (void)pthread_cond_wait(&lanes->decided, &lanes->mutex);
  const gate_t gate = lanes->gate;
  (void)pthread_mutex_unlock(&lanes->mutex);
  return gate;
}

static void run_lane(void *context) {
  lane_t *lane = context;
  if (wait_at_gate(lane->lanes) == GATE_OPEN) lane->lanes->run(lane->lanes->context, lane->index);
  (void)tide_posix_budget_detach(&lane->budget); /* must precede the end of the thread; no effect without a budget */
}

static int scheduling_of(const lane_t *lane, tide_posix_scheduling_t *scheduling) {
  const tide_lane_settings_t *settings = &lane->lane->settings;
  *scheduling = tide_posix_own_scheduling();
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_INHERIT: break;
    case TIDE_SCHEDULING_NORMAL:
      scheduling->policy = SCHED_OTHER;
      scheduling->priority = 0;
      break;
    case TIDE_SCHEDULING_FIFO:
      scheduling->policy = SCHED_FIFO;
      scheduling->priority = settings->priority;
      break;
    case TIDE_SCHEDULING_ROUND_ROBIN:
      scheduling->policy = SCHED_RR;
      scheduling->priority = settings->priority;
      break;
    case TIDE_SCHEDULING_SPORADIC:
      if (lane->lanes->budgets_status != TIDE_OK) return lane->lanes->budgets_status;
      scheduling->policy = SCHED_FIFO;
      scheduling->priority = settings->priority;
      break;
    case TIDE_SCHEDULING_DEADLINE:
#ifdef SCHED_DEADLINE
      scheduling->policy = SCHED_DEADLINE;
      scheduling->priority = 0;
      scheduling->runtime_ns = settings->runtime_ns;
      scheduling->period_ns = settings->period_ns;
      scheduling->deadline_ns = settings->deadline_ns == 0 ? settings->period_ns : settings->deadline_ns;
      break;
#else
      return TIDE_ERROR_UNSUPPORTED;
#endif
  }
  if (settings->processor != 0u) scheduling->cpu = (int)settings->processor - 1;
  return TIDE_OK;
}

static int give_budget(lane_t *lane) {
  const tide_lane_settings_t *settings = &lane->lane->settings;
  const uint16_t places = settings->maximum_replenishments == 0u ? REPLENISHMENTS : settings->maximum_replenishments;
  lane->replenishments = calloc(places, sizeof *lane->replenishments);
  if (lane->replenishments == NULL) return TIDE_ERROR_FULL;
  const tide_budget_config_t config = {.priority = settings->priority,
                                       .low_priority = settings->low_priority,
                                       .budget_ns = settings->runtime_ns,
                                       .period_ns = settings->period_ns,
                                       .replenishments = lane->replenishments,
                                       .maximum_replenishments = places};
  return tide_posix_budget_attach(&lane->lanes->budgets, &lane->budget, lane->thread.thread, &config);
}

static int start_lane(lane_t *lane) {
  const tide_lane_settings_t *settings = &lane->lane->settings;
  tide_posix_thread_config_t config = {.name = settings->name == NULL ? "tide lane" : settings->name,
                                       .stack_bytes = settings->stack_bytes,
                                       .function = run_lane,
                                       .context = lane};
  int status = scheduling_of(lane, &config.scheduling);
  if (status == TIDE_OK) status = tide_posix_thread_start(&lane->thread, &config);
  const bool refused = status == TIDE_ERROR_NOT_PERMITTED || status == TIDE_ERROR_UNSUPPORTED;
  if (refused && settings->may_run_normally) {
    config.scheduling.policy = SCHED_OTHER;
    config.scheduling.priority = 0;
    status = tide_posix_thread_start(&lane->thread, &config);
  }
  lane->started = status == TIDE_OK;
  const bool has_budget = lane->started && !refused && settings->scheduling == TIDE_SCHEDULING_SPORADIC;
  if (has_budget) status = give_budget(lane);
  if (has_budget && status == TIDE_OK) lane->lane->budget = tide_posix_budget_hooks(&lane->budget);
  return status;
}

/* Also TIDE_OK when no lane has a budget. */
static int start_supervisor(lanes_t *all, const tide_lane_t *lanes, size_t count) {
  bool wanted = false;
  int highest = 0;
  for (size_t index = 0; index < count; index++) {
    const tide_lane_settings_t *settings = &lanes[index].settings;
    const bool sporadic = settings->scheduling == TIDE_SCHEDULING_SPORADIC;
    if (sporadic && settings->priority > highest) highest = settings->priority;
    wanted = wanted || sporadic;
  }
  if (highest >= sched_get_priority_max(SCHED_FIFO)) return TIDE_ERROR_ARGUMENT;
  return wanted ? tide_posix_budgets_start(&all->budgets, highest + 1, TIDE_POSIX_ANY_CPU) : TIDE_OK;
}

static int run_all(lanes_t *all, lane_t *threads, tide_lane_t *lanes, size_t count, size_t *refused) {
  int status = TIDE_OK;
  all->budgets_status = start_supervisor(all, lanes, count);
  for (size_t index = 0; index < count && status == TIDE_OK; index++) {
    threads[index].lanes = all;
    threads[index].lane = &lanes[index];
    threads[index].index = index;
    status = start_lane(&threads[index]);
    if (status != TIDE_OK && refused != NULL) *refused = index;
  }
  decide(all, status == TIDE_OK ? GATE_OPEN : GATE_CALLED_OFF);
  for (size_t index = 0; index < count; index++) {
    if (threads[index].started) tide_posix_thread_join(&threads[index].thread);
    free(threads[index].replenishments);
  }
  /* Called only after all lanes have ended, because a callback of one lane may read the counters of others. */
  for (size_t index = 0; index < count; index++) lanes[index].budget = (tide_budget_hooks_t){0};
  tide_posix_budgets_stop(&all->budgets);
  return status;
}

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || run == NULL) return TIDE_ERROR_ARGUMENT;
  lane_t *threads = calloc(count, sizeof *threads);
  if (threads == NULL) return TIDE_ERROR_FULL;
  lanes_t all = {.run = run, .context = context, .gate = GATE_SHUT};
  (void)pthread_mutex_init(&all.mutex, NULL);
  (void)pthread_cond_init(&all.decided, NULL);
  const int status = run_all(&all, threads, lanes, count, refused);
  (void)pthread_cond_destroy(&all.decided);
  (void)pthread_mutex_destroy(&all.mutex);
  free(threads);
  return status;
}
