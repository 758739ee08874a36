/* SPDX-License-Identifier: Apache-2.0 */
/* The chains of a plan on threads of this machine, one processor for each lane. Callbacks compute for their execution
 * time by the processor time of their thread. Real-time priority where it is allowed. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program.h"
#include "tide/port.h"
#include "tide/posix.h"
#include "tide/posix_thread.h"
#include "tide/status.h"

#define NANOSECONDS INT64_C(1000000000)
#define BEFORE_START_NS INT64_C(100000000)
#define SETTLE_NS INT64_C(2000000000) /* longest wait for released instances to end */
#define STEP_NS INT64_C(20000000)
enum { LANE_PRIORITY = 60 };

typedef struct run {
  program_t *program;
  size_t executor;
  int status;
} run_t;

static plan_t plan;
static program_t program;

static void work(void *context, int64_t duration_ns) {
  (void)context;
  tide_posix_spin_cpu(duration_ns);
}

static void spin_lane(void *context, size_t lane) {
  const run_t *const run = context;
  (void)tide_executor_spin_lane(&run->program->executors[run->executor], lane);
}

static void run_lanes(void *context) {
  run_t *const run = context;
  run->status = tide_port_run_lanes(run->program->lanes[run->executor], plan.executors[run->executor].lanes, spin_lane,
                                    run, NULL);
}

/* Each lane gets its own processor as long as there are enough. */
static void schedule_lanes(void) {
  cpu_set_t allowed;
  size_t number = 0, lanes = 0;
  for (size_t executor = 0; executor < plan.executor_count; executor++) lanes += plan.executors[executor].lanes;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_ZERO(&allowed);
  const bool pinned = (size_t)CPU_COUNT(&allowed) >= lanes;
  for (size_t executor = 0; executor < plan.executor_count; executor++) {
    for (size_t lane = 0; lane < plan.executors[executor].lanes; lane++) {
      while (pinned && !CPU_ISSET(number, &allowed)) number++;
      program.lanes[executor][lane].settings =
          (tide_lane_settings_t){.scheduling = TIDE_SCHEDULING_FIFO,
                                 .priority = LANE_PRIORITY,
                                 .processor = pinned ? TIDE_ON_PROCESSOR(number) : 0,
                                 .may_run_normally = true};
      number++;
    }
  }
}

static void sleep_until(int64_t time_ns) {
  const struct timespec time = {.tv_sec = (time_t)(time_ns / NANOSECONDS), .tv_nsec = (long)(time_ns % NANOSECONDS)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
  }
}

static int run(void) {
  const program_world_t world = {.platform = tide_port_platform(), .locks = tide_port_locks(), .work = work};
  tide_posix_thread_t threads[PLAN_EXECUTORS];
  run_t runs[PLAN_EXECUTORS];
  schedule_lanes();
  int status = program_init(&program, &plan, &world);
  if (status != TIDE_OK) return status;
  size_t started = 0;
  for (; status == TIDE_OK && started < plan.executor_count; started++) {
    runs[started] = (run_t){.program = &program, .executor = started};
    const tide_posix_thread_config_t config = {.scheduling = {.policy = SCHED_OTHER, .cpu = TIDE_POSIX_ANY_CPU},
                                               .function = run_lanes,
                                               .context = &runs[started]};
    status = tide_posix_thread_start(&threads[started], &config);
  }
  if (status != TIDE_OK) return status; /* main ends the process */
  const int64_t start_ns = world.platform->now_ns(world.platform->context) + BEFORE_START_NS;
  program_start(&program, start_ns);
  const int64_t end_ns = start_ns + plan.duration_ns;
  sleep_until(end_ns);
  for (int64_t time_ns = end_ns; time_ns < end_ns + SETTLE_NS && !program_is_quiet(&program);) {
    sleep_until(time_ns += STEP_NS);
  }
  program_stop(&program);
  for (size_t executor = 0; executor < started; executor++) {
    tide_posix_thread_join(&threads[executor]);
    status = runs[executor].status == TIDE_OK ? status : runs[executor].status;
  }
  return status;
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--help") == 0) {
    plan_help("host_chains");
    return EXIT_SUCCESS;
  }
  const char *const wrong = plan_read(&plan, count - 1, words + 1);
  if (wrong != NULL) {
    (void)fprintf(stderr, "host_chains: %s\n", wrong);
    return 2;
  }
  if (plan_has_budgets(&plan)) {
    (void)fprintf(stderr, "host_chains: only tide-sim host plays executors with budgets; leave the budgets out\n");
    return 2;
  }
  (void)alarm((unsigned)(plan.duration_ns / NANOSECONDS) + 30u); /* if a thread hangs, the program ends anyway */
  const int status = run();
  if (status != TIDE_OK) {
    (void)fprintf(stderr, "host_chains: the lanes do not run: %s\n", tide_status_text(status));
    return EXIT_FAILURE;
  }
  program_print(&program, "native", NULL, 0);
  program_free(&program);
  return EXIT_SUCCESS;
}
