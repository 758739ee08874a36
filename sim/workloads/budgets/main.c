/* SPDX-License-Identifier: Apache-2.0 */
/* Pings and pongs of plan.h with threads of this machine, all of them on one processor. The pinger and the executor are
 * more urgent than the lanes, the supervisor of the budgets is the most urgent thread. While it runs, it uses the whole
 * processor (Linux keeps 5 % for others). */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plan.h"
#include "tide/budget_posix.h"
#include "tide/posix_thread.h"
#include "tide/status.h"

#define NANOSECONDS INT64_C(1000000000)
enum { SUPERVISOR_PRIORITY = 95, PINGER_PRIORITY = 94 };

typedef struct lane {
  const lane_plan_t *plan;
  lane_result_t result;
  bool waiting, busy; /* a ping is in the topic; the lane has one */
  tide_posix_thread_t thread;
  pthread_cond_t given;
  clockid_t clock;
  int64_t clock_start_ns;
  tide_posix_budget_t budget;
  tide_replenishment_t replenishments[REPLENISHMENTS_MAXIMUM];
} lane_t;

static pong_plan_t plan;
static lane_t lanes[LANES_MAXIMUM];
static lane_result_t results[LANES_MAXIMUM];
static tide_posix_budgets_t budgets;
static tide_posix_thread_t executor, pinger;
static pthread_mutex_t mutex; /* guards the following variables */
static pthread_cond_t changed;
static bool stop;

static int64_t read_clock(clockid_t clock) {
  struct timespec time;
  (void)clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static void sleep_until(int64_t time_ns) {
  const struct timespec time = {.tv_sec = (time_t)(time_ns / NANOSECONDS), .tv_nsec = (long)(time_ns % NANOSECONDS)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
  }
}

/* Algorithm 1: a message is taken only for a lane that is free. */
static void dispatch(void *context) {
  (void)context;
  (void)pthread_mutex_lock(&mutex);
  while (!stop) {
    for (lane_t *lane = lanes; lane < lanes + plan.lane_count; lane++) {
      if (!lane->waiting || lane->busy) continue;
      lane->waiting = false;
      lane->busy = true;
      tide_posix_budget_ready(&lane->budget);
      (void)pthread_cond_signal(&lane->given);
    }
    (void)pthread_cond_wait(&changed, &mutex);
  }
  (void)pthread_mutex_unlock(&mutex);
}

static void pong(lane_t *lane) {
  const int64_t sleep_ns = plan.work_ns / 100 * lane->plan->sleep_percent;
  tide_posix_spin_cpu(plan.work_ns - sleep_ns);
  if (sleep_ns == 0) return;
  tide_posix_budget_block(&lane->budget);
  sleep_until(read_clock(CLOCK_MONOTONIC) + sleep_ns);
  tide_posix_budget_ready(&lane->budget);
}

/* Algorithm 2. */
static void work(void *context) {
  lane_t *const lane = context;
  (void)pthread_mutex_lock(&mutex);
  while (!stop) {
    if (!lane->busy) {
      tide_posix_budget_block(&lane->budget);
      (void)pthread_cond_wait(&lane->given, &mutex);
      tide_posix_budget_ready(&lane->budget);
      continue;
    }
    (void)pthread_mutex_unlock(&mutex);
    pong(lane);
    (void)pthread_mutex_lock(&mutex);
    lane->result.replies++;
    lane->busy = false;
    (void)pthread_cond_signal(&changed);
    (void)pthread_mutex_unlock(&mutex); /* the executor is more urgent: a waiting ping is already assigned to this
                                           lane */
    (void)pthread_mutex_lock(&mutex);
  }
  (void)pthread_mutex_unlock(&mutex);
}

static void ping_all(void) {
  (void)pthread_mutex_lock(&mutex);
  for (lane_t *lane = lanes; lane < lanes + plan.lane_count; lane++) {
    lane->result.pings++;
    if (lane->waiting) lane->result.overwritten++;
    lane->waiting = true;
  }
  (void)pthread_cond_signal(&changed);
  (void)pthread_mutex_unlock(&mutex);
}

static void finish(void) {
  (void)pthread_mutex_lock(&mutex);
  stop = true;
  for (int32_t index = 0; index < plan.lane_count; index++) {
    lane_t *const lane = &lanes[index];
    results[index] = lane->result;
    results[index].cpu_ns = read_clock(lane->clock) - lane->clock_start_ns;
    (void)tide_posix_budget_counters(&lane->budget, &results[index].budget); /* no counters without a budget */
    (void)pthread_cond_signal(&lane->given);
  }
  (void)pthread_cond_signal(&changed);
  (void)pthread_mutex_unlock(&mutex);
}

static void ping(void *context) {
  (void)context;
  const int64_t start_ns = read_clock(CLOCK_MONOTONIC);
  for (lane_t *lane = lanes; lane < lanes + plan.lane_count; lane++) lane->clock_start_ns = read_clock(lane->clock);
  for (int64_t time_ns = 0; time_ns < plan.duration_ns; time_ns += plan.ping_ns) {
    sleep_until(start_ns + time_ns);
    ping_all();
  }
  sleep_until(start_ns + plan.duration_ns);
  finish();
}

static int start(tide_posix_thread_t *thread, int priority, void (*function)(void *), void *context) {
  const tide_posix_thread_config_t config = {
      .scheduling = {.policy = SCHED_FIFO, .priority = priority, .cpu = plan.cpu},
      .function = function,
      .context = context};
  return tide_posix_thread_start(thread, &config);
}

static int start_lane(lane_t *lane, const lane_plan_t *wanted) {
  lane->plan = wanted;
  int status = start(&lane->thread, wanted->priority, work, lane);
  if (status != TIDE_OK) return status;
  if (pthread_getcpuclockid(lane->thread.thread, &lane->clock) != 0) return TIDE_ERROR_STATE;
  if (wanted->budget_ns == 0) return TIDE_OK;
  const tide_budget_config_t config = {.priority = wanted->priority,
                                       .low_priority = wanted->low_priority,
                                       .budget_ns = wanted->budget_ns,
                                       .period_ns = wanted->period_ns,
                                       .replenishments = lane->replenishments,
                                       .maximum_replenishments = plan.replenishments,
                                       .rule = plan.rule};
  return tide_posix_budget_attach(&budgets, &lane->budget, lane->thread.thread, &config);
}

static void prepare(void) {
  pthread_mutexattr_t attributes;
  (void)pthread_mutexattr_init(&attributes);
  (void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  (void)pthread_mutex_init(&mutex, &attributes);
  (void)pthread_mutexattr_destroy(&attributes);
  (void)pthread_cond_init(&changed, NULL);
  for (lane_t *lane = lanes; lane < lanes + LANES_MAXIMUM; lane++) (void)pthread_cond_init(&lane->given, NULL);
}

static int run(void) {
  prepare();
  int status = tide_posix_budgets_start(&budgets, SUPERVISOR_PRIORITY, plan.cpu);
  if (status == TIDE_OK) status = start(&executor, EXECUTOR_PRIORITY, dispatch, NULL);
  for (int32_t index = 0; status == TIDE_OK && index < plan.lane_count; index++) {
    status = start_lane(&lanes[index], &plan.lanes[index]);
  }
  if (status == TIDE_OK) status = start(&pinger, PINGER_PRIORITY, ping, NULL);
  if (status != TIDE_OK) return status; /* main ends the process with its running threads */
  tide_posix_thread_join(&pinger);
  tide_posix_thread_join(&executor);
  tide_posix_budgets_stop(&budgets); /* the lanes have ordinary priorities again and can end */
  for (int32_t index = 0; index < plan.lane_count; index++) tide_posix_thread_join(&lanes[index].thread);
  return TIDE_OK;
}

static bool has_processor(int cpu) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  return sched_getaffinity(0, sizeof usable, &usable) == 0 && cpu < CPU_SETSIZE && CPU_ISSET((unsigned)cpu, &usable);
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--help") == 0) {
    pong_plan_help("budget_pong");
    return EXIT_SUCCESS;
  }
  const char *const wrong = pong_plan_read(&plan, count - 1, words + 1);
  if (wrong) {
    (void)fprintf(stderr, "budget_pong: %s\n", wrong);
    return 2;
  }
  if (!has_processor(plan.cpu)) {
    (void)fprintf(stderr, "budget_pong: cpu=%d: this program may not use such a processor\n", (int)plan.cpu);
    return 2;
  }
  (void)alarm((unsigned)(plan.duration_ns / NANOSECONDS) + 20u); /* if a thread hangs, the program ends anyway */
  const int status = run();
  if (status != TIDE_OK) {
    (void)fprintf(stderr, "budget_pong: %s\n", tide_posix_budget_advice(status));
    return EXIT_FAILURE;
  }
  pong_plan_print(&plan, "native", results);
  return EXIT_SUCCESS;
}
