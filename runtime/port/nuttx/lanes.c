/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each lane, on NuttX: FIFO, round robin, and budgets. Those are kept by budgets.c (CONFIG_TIDE_BUDGETS),
 * or else by the system's own sporadic server (CONFIG_SCHED_SPORADIC), for which the runtime has nothing to do.
 * All lanes stand at a gate until every one of them has its scheduling. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "budgets.h"
#include "tide/port.h"
#include "tide/status.h"

#define REPLENISHMENTS 16
#if CONFIG_RR_INTERVAL > 0 /* else the system refuses SCHED_RR */
#define IN_TURNS SCHED_RR
#else
#define IN_TURNS SCHED_FIFO
#endif
#define SECOND_NS INT64_C(1000000000)

typedef struct gate {
  pthread_mutex_t mutex;
  pthread_cond_t decided;
  bool open, called_off;
  void (*run)(void *context, size_t index);
  void *context;
} gate_t;

typedef struct start {
  gate_t *gate;
  size_t index;
  bool sporadic;
} start_t;

#ifdef CONFIG_TIDE_BUDGETS
static void begin_budget(const start_t *start) {
  if (start->sporadic) tide_nuttx_budgets_begin(start->index);
}
static void end_budget(const start_t *start) {
  if (start->sporadic) tide_nuttx_budgets_end(start->index);
}

/* The lanes' numbers, before any thread of theirs is there. */
static int add_budgets(tide_lane_t *lanes, size_t count, size_t *refused) {
  bool some = false;
  int status = TIDE_OK;
  for (size_t index = 0; index < count && status == TIDE_OK; index++) {
    if (lanes[index].settings.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    if (!some) status = tide_nuttx_budgets_start();
    some = some || status == TIDE_OK;
    if (status == TIDE_OK) status = tide_nuttx_budgets_add(&lanes[index], index);
    if (status != TIDE_OK && refused != NULL) *refused = index;
  }
  if (some && status != TIDE_OK) tide_nuttx_budgets_stop();
  return status;
}

static void remove_budgets(const tide_lane_t *lanes, size_t count) {
  for (size_t index = 0; index < count; index++) {
    if (lanes[index].settings.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    tide_nuttx_budgets_stop();
    return;
  }
}
#else
static void begin_budget(const start_t *start) { (void)start; }

/* A thread that ends under SCHED_SPORADIC fails an assertion of NuttX, or reads through a null pointer where there are
 * none (nxsched_suspend_sporadic): it ends under the policy that every configuration has. */
static void end_budget(const start_t *start) {
  if (!start->sporadic) return;
  struct sched_param parameters;
  memset(&parameters, 0, sizeof parameters);
  parameters.sched_priority = sched_get_priority_min(SCHED_FIFO);
  (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
}

static int add_budgets(const tide_lane_t *lanes, size_t count, const size_t *refused) {
  (void)lanes;
  (void)count;
  (void)refused;
  return TIDE_OK;
}
static void remove_budgets(const tide_lane_t *lanes, size_t count) {
  (void)lanes;
  (void)count;
}
#endif

static void *lane_thread(void *argument) {
  const start_t *start = argument;
  gate_t *gate = start->gate;
  (void)pthread_mutex_lock(&gate->mutex);
  while (!gate->open && !gate->called_off) (void)pthread_cond_wait(&gate->decided, &gate->mutex);
  const bool runs = gate->open;
  (void)pthread_mutex_unlock(&gate->mutex);
  if (runs) {
    begin_budget(start);
    gate->run(gate->context, start->index);
  }
  end_budget(start);
  return NULL;
}

static void decide(gate_t *gate, bool open) {
  (void)pthread_mutex_lock(&gate->mutex);
  gate->open = open;
  gate->called_off = !open;
  (void)pthread_cond_broadcast(&gate->decided);
  (void)pthread_mutex_unlock(&gate->mutex);
}

static struct timespec timespec_of(int64_t time_ns) {
  return (struct timespec){.tv_sec = (time_t)(time_ns / SECOND_NS), .tv_nsec = (long)(time_ns % SECOND_NS)};
}

/* The policy of the system and its parameters; TIDE_ERROR_UNSUPPORTED: this system has none like it. */
static int scheduling_of(const tide_lane_settings_t *settings, int *policy, struct sched_param *parameters) {
  memset(parameters, 0, sizeof *parameters);
  parameters->sched_priority = settings->priority;
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_FIFO:
      *policy = SCHED_FIFO;
      break;
    case TIDE_SCHEDULING_NORMAL: /* no other than by priority: the lowest, in turns where there are any */
      *policy = IN_TURNS;
      parameters->sched_priority = sched_get_priority_min(*policy);
      break;
    case TIDE_SCHEDULING_ROUND_ROBIN:
      *policy = IN_TURNS;
      break;
#if defined(CONFIG_TIDE_BUDGETS)
    case TIDE_SCHEDULING_SPORADIC: /* the rest is looked at in add_budgets */
      *policy = SCHED_FIFO;
      break;
#elif defined(CONFIG_SCHED_SPORADIC)
    case TIDE_SCHEDULING_SPORADIC:
      if (settings->runtime_ns < 1 || settings->runtime_ns > settings->period_ns) return TIDE_ERROR_ARGUMENT;
      *policy = SCHED_SPORADIC;
      parameters->sched_ss_low_priority = settings->low_priority;
      parameters->sched_ss_max_repl =
          settings->maximum_replenishments > 0u ? settings->maximum_replenishments : REPLENISHMENTS;
      parameters->sched_ss_repl_period = timespec_of(settings->period_ns);
      parameters->sched_ss_init_budget = timespec_of(settings->runtime_ns);
      if (settings->low_priority < sched_get_priority_min(SCHED_SPORADIC) ||
          settings->low_priority >= settings->priority)
        return TIDE_ERROR_ARGUMENT;
      break;
#endif
    default:
      (void)timespec_of;
      return TIDE_ERROR_UNSUPPORTED;
  }
  const bool known = parameters->sched_priority >= sched_get_priority_min(*policy) &&
                     parameters->sched_priority <= sched_get_priority_max(*policy);
  return known ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

static int set_scheduling(pthread_attr_t *attributes, const tide_lane_settings_t *settings) {
  if (settings->processor != 0u) return TIDE_ERROR_UNSUPPORTED;
  if (settings->scheduling == TIDE_SCHEDULING_INHERIT) return TIDE_OK;
  int policy = SCHED_RR;
  struct sched_param parameters;
  const int status = scheduling_of(settings, &policy, &parameters);
  if (status != TIDE_OK) return status;
  const bool taken = pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED) == 0 &&
                     pthread_attr_setschedpolicy(attributes, policy) == 0 &&
                     pthread_attr_setschedparam(attributes, &parameters) == 0;
  return taken ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

static int start_lane(const tide_lane_settings_t *settings, start_t *start, pthread_t *thread) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return TIDE_ERROR_FULL;
  int status = set_scheduling(&attributes, settings);
  if (status == TIDE_ERROR_UNSUPPORTED && settings->may_run_normally) status = TIDE_OK;
  if (status == TIDE_OK && settings->stack_bytes > 0u &&
      pthread_attr_setstacksize(&attributes, settings->stack_bytes) != 0)
    status = TIDE_ERROR_ARGUMENT;
  if (status == TIDE_OK) {
    const int error = pthread_create(thread, &attributes, lane_thread, start);
    if (error == EPERM) {
      status = TIDE_ERROR_NOT_PERMITTED;
    } else if (error != 0) {
      status = error == EINVAL ? TIDE_ERROR_ARGUMENT : TIDE_ERROR_FULL;
    }
  }
  (void)pthread_attr_destroy(&attributes);
  return status;
}

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || run == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > TIDE_NUTTX_LANES) return TIDE_ERROR_FULL;
  int status = add_budgets(lanes, count, refused);
  if (status != TIDE_OK) return status;
  gate_t gate = {
      .mutex = PTHREAD_MUTEX_INITIALIZER, .decided = PTHREAD_COND_INITIALIZER, .run = run, .context = context};
  start_t starts[TIDE_NUTTX_LANES];
  pthread_t threads[TIDE_NUTTX_LANES];
  size_t started = 0;
  while (started < count && status == TIDE_OK) {
    starts[started] = (start_t){&gate, started, lanes[started].settings.scheduling == TIDE_SCHEDULING_SPORADIC};
    status = start_lane(&lanes[started].settings, &starts[started], &threads[started]);
    if (status == TIDE_OK) started++;
  }
  if (status != TIDE_OK && refused != NULL) *refused = started;
  decide(&gate, status == TIDE_OK);
  while (started > 0u) (void)pthread_join(threads[--started], NULL);
  remove_budgets(lanes, count);
  return status;
}
