/* SPDX-License-Identifier: Apache-2.0 */
/* The load: on each processor, one normal thread that consumes its share of processor time and reports how much. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "tide/port.h"
#include "tide/posix.h"
#include "tide/status.h"
#include "timers.h"

#define SLICE_NS INT64_C(5000000)
/* The load makes up for time that it lost to other work on the processor, up to this amount. */
#define DEBT_NS INT64_C(100000000)
#define REPORT_NS 500000000L

typedef struct burner {
  tide_posix_thread_t thread;
  int cpu, percent;
  _Atomic int64_t consumed_ns, elapsed_ns;
} burner_t;

static burner_t burners[TIMERS_CPUS_MAXIMUM];
static atomic_bool stopping;

static int64_t clock_ns(clockid_t clock) {
  struct timespec time;
  (void)clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void sleep_until(int64_t time_ns) {
  const struct timespec time = {.tv_sec = time_ns / INT64_C(1000000000), .tv_nsec = time_ns % INT64_C(1000000000)};
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* In each slice, computes until the total reaches `percent` of the time since the start, and sleeps for the rest. */
static void burn(void *context) {
  burner_t *burner = context;
  const int64_t start_ns = clock_ns(CLOCK_MONOTONIC), before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  int64_t forgiven_ns = 0;
  for (int64_t end_ns = start_ns + SLICE_NS; !atomic_load(&stopping); end_ns += SLICE_NS) {
    const int64_t consumed_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    int64_t missing_ns = (end_ns - start_ns) / 100 * burner->percent - consumed_ns - forgiven_ns;
    if (missing_ns > DEBT_NS) {
      forgiven_ns += missing_ns - DEBT_NS;
      missing_ns = DEBT_NS;
    }
    if (missing_ns > 0) tide_posix_spin_cpu(missing_ns < SLICE_NS ? missing_ns : SLICE_NS);
    atomic_store(&burner->consumed_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
    atomic_store(&burner->elapsed_ns, clock_ns(CLOCK_MONOTONIC) - start_ns);
    sleep_until(end_ns);
  }
}

static void print_load(int count) {
  printf("{\"event\": \"load\", \"processors\": [");
  for (int index = 0; index < count; index++) {
    printf("%s{\"cpu\": %d, \"consumed_ns\": %" PRId64 ", \"elapsed_ns\": %" PRId64 "}", index == 0 ? "" : ", ",
           burners[index].cpu, atomic_load(&burners[index].consumed_ns), atomic_load(&burners[index].elapsed_ns));
  }
  printf("]}\n");
  (void)fflush(stdout);
}

static int start(const timers_options_t *options) {
  for (int index = 0; index < options->cpu_count; index++) {
    burner_t *burner = &burners[index];
    burner->cpu = options->cpus[index];
    burner->percent = options->percent;
    const tide_posix_thread_config_t config = {.scheduling = {.policy = SCHED_OTHER, .cpu = burner->cpu},
                                               .name = "tide load",
                                               .function = burn,
                                               .context = burner};
    const int status = tide_posix_thread_start(&burner->thread, &config);
    if (status != TIDE_OK) {
      fprintf(stderr, "tide-timers: load on processor %d: %s\n", burner->cpu, tide_status_text(status));
      return index;
    }
  }
  return options->cpu_count;
}

int timers_load(const timers_options_t *options) {
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGINT);
  (void)sigaddset(&signals, SIGTERM);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
  const int started = start(options);
  const struct timespec pause = {.tv_nsec = REPORT_NS};
  if (started == options->cpu_count) {
    printf("{\"event\": \"started\"}\n");
    (void)fflush(stdout);
    while (sigtimedwait(&signals, NULL, &pause) < 0) print_load(started);
  }
  atomic_store(&stopping, true);
  for (int index = 0; index < started; index++) tide_posix_thread_join(&burners[index].thread);
  print_load(started);
  return started == options->cpu_count ? TIMERS_DONE : TIMERS_FAILED;
}
