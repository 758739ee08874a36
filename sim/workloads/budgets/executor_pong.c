/* SPDX-License-Identifier: Apache-2.0 */
/* Pong of pong.h on threads of this machine, with a tide-agent at udp=PORT. The time starts with the first ping. The
 * program uses the default sizes, including the receive slots. */
#define _GNU_SOURCE
#include <pthread.h>
#include <rmw_microros/rmw_microros.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pong.h"
#include "tide/posix.h"

#define TIDE_EXECUTOR_LANES PONG_LANES
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define NANOSECONDS INT64_C(1000000000)
enum { STOPPER_PRIORITY = 93, FIRST_PING_LIMIT_S = 60 };

static pong_plan_t plan;
static const char *port;
static bool reliable;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t first_ping = PTHREAD_COND_INITIALIZER;
static bool started, over;

static int64_t cpu_of_lane_ns(int32_t lane) {
  (void)lane;
  struct timespec time;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static void work(int32_t lane) {
  const int64_t sleep_ns = plan.work_ns / 100 * plan.lanes[lane].sleep_percent;
  tide_posix_spin_cpu(plan.work_ns - sleep_ns);
  if (sleep_ns > 0) (void)usleep((useconds_t)(sleep_ns / 1000));
}

static void start_time(void) {
  if (started) return;
  (void)pthread_mutex_lock(&mutex);
  started = true;
  (void)pthread_cond_signal(&first_ping);
  (void)pthread_mutex_unlock(&mutex);
}

static bool is_over(void) { return over; }

/* More urgent than the threads that it ends. */
static void *stop_in_time(void *unused) {
  (void)unused;
  const struct sched_param parameter = {.sched_priority = STOPPER_PRIORITY};
  (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameter);
  struct timespec limit;
  (void)clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += FIRST_PING_LIMIT_S;
  (void)pthread_mutex_lock(&mutex);
  int late = 0;
  while (!started && late == 0) late = pthread_cond_timedwait(&first_ping, &mutex, &limit);
  (void)pthread_mutex_unlock(&mutex);
  const struct timespec duration = {.tv_sec = (time_t)(plan.duration_ns / NANOSECONDS),
                                    .tv_nsec = (long)(plan.duration_ns % NANOSECONDS)};
  if (late == 0) (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &duration, NULL);
  over = true;
  pong_stop();
  return NULL;
}

static const char *open(void) {
  static const pong_place_t place = {start_time, work, is_over, cpu_of_lane_ns};
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  if (rcl_init_options_init(&options, rcl_get_default_allocator()) != RCL_RET_OK) return "rcl_init_options_init failed";
  rmw_uros_options_set_udp_address("127.0.0.1", port, rcl_init_options_get_rmw_init_options(&options));
  return pong_open(&plan, reliable, &place, &options);
}

static int fail(const char *wrong) {
  (void)fprintf(stderr, PONG_NAME ": %s\n", wrong);
  return EXIT_FAILURE;
}

static int run(void) {
  const char *wrong = open();
  if (wrong) return fail(wrong);
  pthread_t stopper;
  if (pthread_create(&stopper, NULL, stop_in_time, NULL) != 0) return EXIT_FAILURE;
  puts("ready");
  (void)fflush(stdout);
  wrong = pong_run();
  if (wrong) return fail(wrong);
  (void)pthread_join(stopper, NULL);
  if (!started) {
    (void)fprintf(stderr, PONG_NAME ": no ping came within %d s\n", FIRST_PING_LIMIT_S);
    return EXIT_FAILURE;
  }
  pong_plan_print(&plan, "executor", pong_results());
  return EXIT_SUCCESS;
}

/* Reads its own words; all others belong to plan.h and remain. */
static int take_words(int count, char **words) {
  int left = 0;
  for (int index = 0; index < count; index++) {
    if (strncmp(words[index], "udp=", 4) == 0) {
      port = words[index] + 4;
    } else if (strcmp(words[index], "reliable") == 0) {
      reliable = true;
    } else {
      words[left++] = words[index];
    }
  }
  return left;
}

static int refuse(const char *wrong) {
  (void)fprintf(stderr, PONG_NAME ": %s\n", wrong);
  return 2;
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--help") == 0) {
    pong_plan_help(PONG_NAME " udp=PORT [reliable]");
    return EXIT_SUCCESS;
  }
  const char *const wrong = pong_plan_read(&plan, take_words(count - 1, words + 1), words + 1);
  if (wrong) return refuse(wrong);
  if (!port) return refuse("udp=PORT is missing: where does a tide-agent listen?");
  if (plan.lane_count > PONG_LANES) return refuse("it takes four lanes at most");
  cpu_set_t place;
  CPU_ZERO(&place);
  CPU_SET((unsigned)plan.cpu, &place);
  if (sched_setaffinity(0, sizeof place, &place) != 0) return refuse("cpu=: this program may not use such a processor");
  return run();
}
