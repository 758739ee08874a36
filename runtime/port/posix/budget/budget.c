/* SPDX-License-Identifier: Apache-2.0 */
/* A user-space sporadic server: see tide/budget_posix.h. One mutex guards all lanes; `changed` wakes the supervisor
 * when it must check earlier than planned. */
#define _GNU_SOURCE
#include "tide/budget_posix.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>

#include "tide/status.h"

#define NANOSECONDS INT64_C(1000000000)
/* Shortest delay of a check, so that a remaining microsecond does not cause a check each microsecond; doubled for a
 * lane that does not get the processor. */
#define GRAIN_NS INT64_C(50000)
#define GRAIN_DOUBLINGS 4u

static int64_t read_clock(clockid_t clock) {
  struct timespec time;
  (void)clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

/* ---- one lane; the mutex is held ---- */

static int set_priority(pthread_t thread, int priority) {
  const struct sched_param parameter = {.sched_priority = priority};
  return pthread_setschedparam(thread, priority > 0 ? SCHED_FIFO : SCHED_OTHER, &parameter);
}

static void apply(tide_posix_budget_t *lane) {
  const int wanted = tide_budget_priority(&lane->budget);
  if (wanted == lane->applied) return;
  if (set_priority(lane->thread, wanted) == 0) {
    lane->applied = wanted;
  } else {
    lane->failures++;
  }
}

static int64_t next_look(const tide_posix_budget_t *lane) {
  const tide_budget_t *const budget = &lane->budget;
  if (!budget->high) return tide_budget_deadline_ns(budget);
  if (!budget->ready) return INT64_MAX;
  const int64_t grain_ns = GRAIN_NS << (lane->idle_looks < GRAIN_DOUBLINGS ? lane->idle_looks : GRAIN_DOUBLINGS);
  const int64_t available_ns = tide_budget_available_ns(budget);
  return budget->now_ns + (available_ns > grain_ns ? available_ns : grain_ns);
}

static int64_t take_consumed(tide_posix_budget_t *lane) {
  const int64_t clock_ns = read_clock(lane->clock), consumed_ns = clock_ns - lane->consumed_ns;
  lane->consumed_ns = clock_ns;
  return consumed_ns;
}

/* A lane without progress since the last check did not have the processor. */
static void account(tide_posix_budget_t *lane) {
  const int64_t now_ns = read_clock(CLOCK_MONOTONIC), consumed_ns = take_consumed(lane);
  if (consumed_ns == 0) {
    lane->idle_looks++;
    tide_budget_preempt(&lane->budget, 0, now_ns);
    return;
  }
  lane->idle_looks = 0u;
  tide_budget_run(&lane->budget, now_ns - consumed_ns);
  tide_budget_account(&lane->budget, consumed_ns, now_ns);
}

static void look(tide_posix_budget_t *lane) {
  account(lane);
  apply(lane);
  lane->look_ns = next_look(lane);
  lane->owner->looks++;
}

/* Applies an event's effect, and wakes the supervisor if it must check the lane earlier than planned. */
static void settle(tide_posix_budget_t *lane) {
  apply(lane);
  lane->look_ns = next_look(lane);
  if (lane->look_ns < lane->owner->wake_ns) (void)pthread_cond_signal(&lane->owner->changed);
}

/* ---- the supervisor ---- */

static void wait_until(tide_posix_budgets_t *budgets, int64_t time_ns) {
  budgets->wake_ns = time_ns;
  if (time_ns == INT64_MAX) {
    (void)pthread_cond_wait(&budgets->changed, &budgets->mutex);
  } else {
    const struct timespec time = {.tv_sec = (time_t)(time_ns / NANOSECONDS), .tv_nsec = (long)(time_ns % NANOSECONDS)};
    (void)pthread_cond_timedwait(&budgets->changed, &budgets->mutex, &time);
  }
  budgets->wake_ns = INT64_MIN; /* the supervisor is awake: it checks all lanes before it sleeps again */
}

static void *supervise(void *context) {
  tide_posix_budgets_t *const budgets = context;
  (void)pthread_mutex_lock(&budgets->mutex);
  while (!budgets->stop) {
    const int64_t now_ns = read_clock(CLOCK_MONOTONIC);
    int64_t next_ns = INT64_MAX;
    for (tide_posix_budget_t *lane = budgets->lanes; lane; lane = lane->next) {
      if (lane->look_ns <= now_ns) look(lane);
      if (lane->look_ns < next_ns) next_ns = lane->look_ns;
    }
    wait_until(budgets, next_ns);
  }
  (void)pthread_mutex_unlock(&budgets->mutex);
  return NULL;
}

static int status_of(int error) {
  switch (error) {
    case 0: return TIDE_OK;
    case EPERM: return TIDE_ERROR_NOT_PERMITTED;
    case EAGAIN: return TIDE_ERROR_FULL;
    default: return TIDE_ERROR_ARGUMENT;
  }
}

static bool is_real_time_priority(int priority) {
  return priority >= sched_get_priority_min(SCHED_FIFO) && priority <= sched_get_priority_max(SCHED_FIFO);
}

/* The mutex exists from the first start on, because a lane's call may reach it while the budgets are stopped. */
static void prepare(tide_posix_budgets_t *budgets, int priority) {
  pthread_mutexattr_t mutex;
  pthread_condattr_t condition;
  budgets->priority = priority;
  budgets->wake_ns = INT64_MIN;
  budgets->stop = false;
  budgets->looks = 0u;
  if (budgets->prepared) return;
  budgets->prepared = true;
  (void)pthread_mutexattr_init(&mutex);
  (void)pthread_mutexattr_setprotocol(&mutex, PTHREAD_PRIO_INHERIT);
  (void)pthread_mutex_init(&budgets->mutex, &mutex);
  (void)pthread_mutexattr_destroy(&mutex);
  (void)pthread_condattr_init(&condition);
  (void)pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&budgets->changed, &condition);
  (void)pthread_condattr_destroy(&condition);
}

static int bind_to(pthread_attr_t *attributes, int cpu) {
  if (cpu == TIDE_POSIX_ANY_CPU) return 0;
#if defined(__linux__)
  cpu_set_t set;
  if (cpu < 0 || cpu >= CPU_SETSIZE) return EINVAL;
  CPU_ZERO(&set);
  CPU_SET((size_t)cpu, &set);
  return pthread_attr_setaffinity_np(attributes, sizeof set, &set);
#else
  (void)attributes;
  return EINVAL;
#endif
}

static int create(tide_posix_budgets_t *budgets, int cpu) {
  pthread_attr_t attributes;
  const struct sched_param parameter = {.sched_priority = budgets->priority};
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  (void)pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
  (void)pthread_attr_setschedparam(&attributes, &parameter);
  error = bind_to(&attributes, cpu);
  if (error == 0) error = pthread_create(&budgets->supervisor, &attributes, supervise, budgets);
  (void)pthread_attr_destroy(&attributes);
  return error;
}

int tide_posix_budgets_start(tide_posix_budgets_t *budgets, int priority, int cpu) {
  if (!budgets || !is_real_time_priority(priority)) return TIDE_ERROR_ARGUMENT;
  if (budgets->running) return TIDE_ERROR_STATE;
  prepare(budgets, priority);
  const int error = create(budgets, cpu);
  budgets->running = error == 0;
  return status_of(error);
}

/* The mutex is held. */
static void release(tide_posix_budget_t *lane) {
  tide_posix_budget_t **place = &lane->owner->lanes;
  while (*place != lane) place = &(*place)->next;
  *place = lane->next;
  const struct sched_param before = {.sched_priority = lane->priority_before};
  (void)pthread_setschedparam(lane->thread, lane->policy_before, &before);
  __atomic_store_n(&lane->owner, NULL, __ATOMIC_RELEASE);
}

void tide_posix_budgets_stop(tide_posix_budgets_t *budgets) {
  if (!budgets || !budgets->running) return;
  (void)pthread_mutex_lock(&budgets->mutex);
  while (budgets->lanes)
    release(budgets->lanes); /* under one lock, because a lane that detaches itself may end at
                                once */
  budgets->stop = true;
  (void)pthread_cond_signal(&budgets->changed);
  (void)pthread_mutex_unlock(&budgets->mutex);
  (void)pthread_join(budgets->supervisor, NULL);
  budgets->running = false;
}

/* ---- attach and detach ---- */

static bool is_valid(const tide_posix_budgets_t *budgets, const tide_budget_config_t *config) {
  return is_real_time_priority(config->priority) && config->priority < budgets->priority &&
         (config->low_priority == 0 || is_real_time_priority(config->low_priority));
}

/* Saves the thread's scheduling and clock, then sets its new priority. */
static int adopt(tide_posix_budget_t *lane) {
  struct sched_param before;
  if (pthread_getcpuclockid(lane->thread, &lane->clock) != 0 ||
      pthread_getschedparam(lane->thread, &lane->policy_before, &before) != 0) {
    return TIDE_ERROR_ARGUMENT;
  }
  lane->priority_before = before.sched_priority;
  lane->applied = lane->budget.config.priority;
  lane->consumed_ns = read_clock(lane->clock);
  return status_of(set_priority(lane->thread, lane->applied));
}

int tide_posix_budget_attach(tide_posix_budgets_t *budgets, tide_posix_budget_t *lane, pthread_t thread,
                             const tide_budget_config_t *config) {
  if (!budgets || !lane || !config) return TIDE_ERROR_ARGUMENT;
  if (!budgets->running) return TIDE_ERROR_STATE;
  if (!is_valid(budgets, config)) return TIDE_ERROR_ARGUMENT;
  (void)pthread_mutex_lock(&budgets->mutex);
  int status =
      __atomic_load_n(&lane->owner, __ATOMIC_ACQUIRE) ? TIDE_ERROR_EXISTS : TIDE_OK; /* must be zeroed or detached */
  if (status == TIDE_OK) {
    const int64_t now_ns = read_clock(CLOCK_MONOTONIC);
    lane->thread = thread;
    lane->idle_looks = 0u;
    lane->failures = 0u;
    status = tide_budget_init(&lane->budget, config, now_ns);
    if (status == TIDE_OK) status = adopt(lane);
    if (status == TIDE_OK) {
      tide_budget_ready(&lane->budget, now_ns);
      __atomic_store_n(&lane->owner, budgets, __ATOMIC_RELEASE);
      lane->next = budgets->lanes;
      budgets->lanes = lane;
      settle(lane);
    }
  }
  (void)pthread_mutex_unlock(&budgets->mutex);
  return status;
}

/* Locks and returns the lane's owner; null: the lane is not attached (any more). */
static tide_posix_budgets_t *lock_owner(tide_posix_budget_t *lane) {
  tide_posix_budgets_t *const budgets = lane ? __atomic_load_n(&lane->owner, __ATOMIC_ACQUIRE) : NULL;
  if (!budgets) return NULL;
  (void)pthread_mutex_lock(&budgets->mutex);
  if (lane->owner == budgets) return budgets;
  (void)pthread_mutex_unlock(&budgets->mutex);
  return NULL;
}

int tide_posix_budget_detach(tide_posix_budget_t *lane) {
  tide_posix_budgets_t *const budgets = lock_owner(lane);
  if (!budgets) return TIDE_ERROR_STATE;
  release(lane);
  (void)pthread_mutex_unlock(&budgets->mutex);
  return TIDE_OK;
}

/* ---- calls by lanes ---- */

void tide_posix_budget_ready(tide_posix_budget_t *lane) {
  tide_posix_budgets_t *const budgets = lock_owner(lane);
  if (!budgets) return;
  if (!lane->budget.ready) {
    tide_budget_ready(&lane->budget, read_clock(CLOCK_MONOTONIC));
    lane->idle_looks = 0u;
    settle(lane);
  }
  (void)pthread_mutex_unlock(&budgets->mutex);
}

void tide_posix_budget_block(tide_posix_budget_t *lane) {
  tide_posix_budgets_t *const budgets = lock_owner(lane);
  if (!budgets) return;
  if (lane->budget.ready) {
    account(lane);
    tide_budget_block(&lane->budget, 0, lane->budget.now_ns);
    settle(lane);
  }
  (void)pthread_mutex_unlock(&budgets->mutex);
}

static void hook_ready(void *context) { tide_posix_budget_ready(context); }
static void hook_block(void *context) { tide_posix_budget_block(context); }

static int read_budget(tide_posix_budget_t *lane, tide_budget_counters_t *counters, bool *high) {
  tide_posix_budgets_t *const budgets = lock_owner(lane);
  if (!budgets) return TIDE_ERROR_STATE;
  account(lane);
  settle(lane);
  *counters = lane->budget.counters;
  *high = lane->budget.high;
  (void)pthread_mutex_unlock(&budgets->mutex);
  return TIDE_OK;
}

static void hook_read(void *context, tide_budget_counters_t *counters, bool *high) {
  (void)read_budget(context, counters, high);
}

tide_budget_hooks_t tide_posix_budget_hooks(tide_posix_budget_t *lane) {
  return (tide_budget_hooks_t){.context = lane, .ready = hook_ready, .block = hook_block, .read = hook_read};
}

int tide_posix_budget_counters(tide_posix_budget_t *lane, tide_budget_counters_t *counters) {
  bool high = false;
  return counters ? read_budget(lane, counters, &high) : TIDE_ERROR_STATE;
}

const char *tide_posix_budget_advice(int status) {
  switch (status) {
    case TIDE_ERROR_NOT_PERMITTED:
      return "budgets need real-time scheduling, which this user may not use: run as root, give the program the right "
             "(setcap cap_sys_nice+ep PROGRAM) or raise rtprio (ulimit -r, /etc/security/limits.conf)";
    case TIDE_ERROR_ARGUMENT:
      return "a budget needs 0 < budget <= period and low priority < priority < the supervisor's priority, within the "
             "real-time priorities of the system";
    case TIDE_ERROR_FULL: return "the processors are promised to other deadline threads: lower budget / period";
    default: return tide_status_text(status);
  }
}
