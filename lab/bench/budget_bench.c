/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads under budgets at once on one processor, all of them always busy, and a thread between their two
 * priorities that takes what is left. Prints the processor time each got in ratio to its budget, as JSON; fails when
 * one is off by more than 3 %:
 *
 *   build/release/bin/budget_bench [SECONDS [CPU]]
 *
 * It takes the whole processor while it runs (Linux keeps 5 % for others). */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tide/budget_posix.h"
#include "tide/posix_thread.h"
#include "tide/status.h"

#define NANOSECONDS INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
#define ALLOWED 0.03
enum { LANES = 8, PLACES = 16, REST_PRIORITY = 10, LOWEST_PRIORITY = 20, SUPERVISOR_PRIORITY = 90 };

typedef struct lane {
  tide_posix_thread_t thread;
  tide_posix_budget_t budget;
  tide_replenishment_t replenishments[PLACES];
  int64_t budget_ns, period_ns;
  clockid_t clock;
  int64_t start_ns, cpu_ns;
  tide_budget_counters_t counters;
} lane_t;

/* 70.6 % in all; the shorter the period, the more urgent. All longer than the 50 ms that Linux takes away from
 * real-time threads in each second: what a lane missed for longer than its period it does not make up for. */
static const int64_t budgets_ms[LANES] = {18, 15, 12, 10, 8, 6, 6, 4};
static const int64_t periods_ms[LANES] = {200, 150, 120, 100, 90, 80, 70, 60};

static tide_posix_budgets_t budgets;
static lane_t lanes[LANES];
static tide_posix_thread_t rest;
static bool stop;

static int64_t read_clock(clockid_t clock) {
  struct timespec time;
  (void)clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static void burn(void *context) {
  (void)context;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
  }
}

static int start(tide_posix_thread_t *thread, int priority, int cpu) {
  const tide_posix_thread_config_t config = {.scheduling = {.policy = SCHED_FIFO, .priority = priority, .cpu = cpu},
                                             .function = burn};
  return tide_posix_thread_start(thread, &config);
}

static int start_lane(int index, int cpu) {
  lane_t *const lane = &lanes[index];
  lane->budget_ns = budgets_ms[index] * MILLISECOND;
  lane->period_ns = periods_ms[index] * MILLISECOND;
  const tide_budget_config_t config = {.priority = LOWEST_PRIORITY + index,
                                       .low_priority = 1,
                                       .budget_ns = lane->budget_ns,
                                       .period_ns = lane->period_ns,
                                       .replenishments = lane->replenishments,
                                       .maximum_replenishments = PLACES};
  int status = start(&lane->thread, LOWEST_PRIORITY + index, cpu);
  if (status == TIDE_OK) status = tide_posix_budget_attach(&budgets, &lane->budget, lane->thread.thread, &config);
  if (status == TIDE_OK && pthread_getcpuclockid(lane->thread.thread, &lane->clock) != 0) status = TIDE_ERROR_STATE;
  return status;
}

static int measure(int64_t duration_ns, int cpu, int64_t *measured_ns) {
  int status = tide_posix_budgets_start(&budgets, SUPERVISOR_PRIORITY, cpu);
  /* The less urgent first, and the rest last: whoever burns keeps less urgent threads from starting. */
  for (int index = 0; status == TIDE_OK && index < LANES; index++) status = start_lane(index, cpu);
  if (status == TIDE_OK) status = start(&rest, REST_PRIORITY, cpu);
  if (status != TIDE_OK) return status; /* main ends the process */
  const int64_t start_ns = read_clock(CLOCK_MONOTONIC);
  for (lane_t *lane = lanes; lane < lanes + LANES; lane++) lane->start_ns = read_clock(lane->clock);
  const struct timespec pause = {.tv_sec = (time_t)(duration_ns / NANOSECONDS),
                                 .tv_nsec = (long)(duration_ns % NANOSECONDS)};
  (void)nanosleep(&pause, NULL);
  for (lane_t *lane = lanes; lane < lanes + LANES; lane++) lane->cpu_ns = read_clock(lane->clock) - lane->start_ns;
  *measured_ns = read_clock(CLOCK_MONOTONIC) - start_ns;
  for (lane_t *lane = lanes; lane < lanes + LANES; lane++) {
    (void)tide_posix_budget_counters(&lane->budget, &lane->counters);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  tide_posix_budgets_stop(&budgets);
  for (lane_t *lane = lanes; lane < lanes + LANES; lane++) tide_posix_thread_join(&lane->thread);
  tide_posix_thread_join(&rest);
  return TIDE_OK;
}

static bool print(int64_t measured_ns) {
  double worst = 0.0;
  struct utsname machine;
  double load = 0.0;
  (void)uname(&machine);
  (void)getloadavg(&load, 1);
  printf(
      "{\"bench\": \"budget\", \"kernel\": \"%s %s\", \"processors\": %ld, \"load_average\": %.2f, \"measured_ns\": "
      "%" PRId64 ", \"lanes\": [",
      machine.sysname, machine.release, sysconf(_SC_NPROCESSORS_ONLN), load, measured_ns);
  for (int index = 0; index < LANES; index++) {
    const lane_t *const lane = &lanes[index];
    const double wanted = (double)lane->budget_ns / (double)lane->period_ns;
    const double ratio = (double)lane->cpu_ns / (double)measured_ns / wanted;
    worst = fabs(ratio - 1.0) > worst ? fabs(ratio - 1.0) : worst;
    printf("%s\n {\"budget_ns\": %" PRId64 ", \"period_ns\": %" PRId64 ", \"cpu_ns\": %" PRId64
           ", \"ratio\": %.5f, \"exhaustions\": %" PRIu64 ", \"overrun_ns\": %" PRIu64 "}",
           index > 0 ? "," : "", lane->budget_ns, lane->period_ns, lane->cpu_ns, ratio, lane->counters.exhaustions,
           lane->counters.overrun_ns);
  }
  printf("],\n \"worst_deviation\": %.5f, \"allowed\": %.2f}\n", worst, ALLOWED);
  return worst <= ALLOWED;
}

int main(int count, char **words) {
  char *end = NULL;
  const double seconds = count > 1 ? strtod(words[1], &end) : 12.6; /* whole periods of nearly all */
  const bool is_number = count < 2 || (end != words[1] && *end == '\0');
  const int cpu = count > 2 ? (int)strtol(words[2], NULL, 10) : 0;
  if (!is_number || !(seconds > 0.0 && seconds <= 3600.0) || cpu < 0 || count > 3) {
    (void)fprintf(stderr, "usage: budget_bench [SECONDS [CPU]]\n");
    return 2;
  }
  int64_t measured_ns = 0;
  (void)alarm((unsigned)seconds + 20u); /* threads of real time that do not end must not keep the machine */
  const int status = measure((int64_t)(seconds * (double)NANOSECONDS), cpu, &measured_ns);
  if (status != TIDE_OK) {
    (void)fprintf(stderr, "budget_bench: %s\n", tide_posix_budget_advice(status));
    return EXIT_FAILURE;
  }
  return print(measured_ns) ? EXIT_SUCCESS : EXIT_FAILURE;
}
