/* SPDX-License-Identifier: Apache-2.0 */
/* How many callbacks of 20 us a second an executor runs, from 8 sources that are always ready, on one lane and on two,
 * for each policy: timers, and subscriptions that publish to themselves by local delivery; all in reentrant groups.
 *
 * Ideal: 50,000 per second and lane. The 20 us are processor time of the lane, so that other programs on the machine
 * affect only the first column. The second column is the rate on processors without other work: callbacks per second of
 * the lanes' processor time, times lanes. The time per callback beyond 20 us is the cost of the executor.
 * rclcpp (Jazzy, MultiThreadedExecutor, reentrant) on a quiet machine: timers 26k and 26k, subscriptions 45k and 69k.
 * Usage: lanes_bench [SECONDS]; exit 1 when the second column of the tide policy is below the targets. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tide/executor.h"
#include "tide/local.h"
#include "tide/port.h"
#include "tide/status.h"

enum { SOURCES = 8, LANES_MAXIMUM = 2, DEPTH = 2 };
#define CALLBACK_NS INT64_C(20000)
#define SECOND_NS INT64_C(1000000000)

static const double targets[LANES_MAXIMUM] = {45000.0, 85000.0};

typedef struct source {
  tide_timer_t timer; /* a subscription uses the timer's callback, too */
  tide_local_topic_t topic;
  tide_local_subscription_t subscription;
  tide_local_message_t *queue[DEPTH];
} source_t;

static source_t sources[SOURCES];
static tide_group_t group;
static tide_lane_t lanes[LANES_MAXIMUM];
static tide_callback_t *callbacks[SOURCES];
static tide_queue_entry_t *ready_storage[SOURCES], *timer_storage[SOURCES];
static tide_local_pool_t pool;
static uint64_t storage[TIDE_LOCAL_STORAGE_BYTES(SOURCES * (LANES_MAXIMUM + DEPTH + 1), sizeof(int64_t)) / 8u];
static tide_executor_t executor;
static int64_t stops_at_ns;
static int64_t lane_cpu_ns[LANES_MAXIMUM];

static int64_t clock_ns(clockid_t clock) {
  struct timespec time;
  (void)clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

static void compute(void) {
  const int64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + CALLBACK_NS;
  while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
  }
  if (clock_ns(CLOCK_MONOTONIC) >= stops_at_ns) {
    tide_executor_stop(&executor);
  }
}

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  compute();
}

static void publish(source_t *source) {
  void *message = NULL;
  if (tide_local_borrow(&source->topic, &message) == TIDE_OK) {
    memset(message, 0, sizeof(int64_t));
    (void)tide_local_publish(&source->topic, message, sizeof(int64_t));
  }
}

static void execute(tide_callback_t *callback, void *context) {
  (void)callback;
  source_t *source = context;
  const void *message = tide_local_take(&source->subscription, NULL);
  compute();
  if (message != NULL) {
    tide_local_release(message);
  }
  publish(source);
}

static bool add_timer(source_t *source) {
  source->timer.period_ns = CALLBACK_NS;
  source->timer.on_expiry = on_expiry;
  source->timer.callback.group = &group;
  return tide_executor_add_timer(&executor, &source->timer) == TIDE_OK;
}

static bool add_subscription(source_t *source) {
  tide_callback_t *callback = &source->timer.callback;
  callback->kind = TIDE_CALLBACK_SUBSCRIPTION;
  callback->execute = execute;
  callback->context = source;
  callback->group = &group;
  source->subscription.callback = callback;
  source->subscription.queue = source->queue;
  source->subscription.depth = DEPTH;
  const bool added = tide_executor_add(&executor, callback) == TIDE_OK &&
                     tide_local_topic_init(&source->topic, &pool, LANES_MAXIMUM) == TIDE_OK &&
                     tide_local_subscribe(&source->topic, &source->subscription) == TIDE_OK;
  for (int many = 0; added && many < DEPTH; many++) {
    publish(source);
  }
  return added;
}

static bool prepare(tide_policy_t policy, size_t lane_count, bool timers) {
  const tide_executor_config_t config = {.platform = tide_port_platform(),
                                         .policy = policy,
                                         .callbacks = callbacks,
                                         .ready_storage = ready_storage,
                                         .timer_storage = timer_storage,
                                         .callback_count = SOURCES,
                                         .lanes = lanes,
                                         .lane_count = lane_count};
  memset(sources, 0, sizeof sources);
  memset(lanes, 0, sizeof lanes);
  bool good = tide_executor_init(&executor, &config) == TIDE_OK &&
              tide_group_init(&group, TIDE_GROUP_REENTRANT, NULL, 0) == TIDE_OK &&
              tide_local_pool_init(&pool, tide_port_platform(), storage, SOURCES * (LANES_MAXIMUM + DEPTH + 1),
                                   sizeof(int64_t)) == TIDE_OK;
  for (size_t index = 0; good && index < SOURCES; index++) {
    good = timers ? add_timer(&sources[index]) : add_subscription(&sources[index]);
  }
  return good;
}

static void spin(void *context, size_t index) {
  const int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  (void)tide_executor_spin_lane(context, index);
  lane_cpu_ns[index] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

typedef struct rate {
  double measured, own; /* callbacks a second: by the clock, and by the lanes' processor time */
} rate_t;

static rate_t measure(tide_policy_t policy, size_t lane_count, bool timers, int64_t duration_ns) {
  const rate_t none = {0.0, 0.0};
  if (!prepare(policy, lane_count, timers)) {
    return none;
  }
  const int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  stops_at_ns = start_ns + duration_ns;
  if (tide_port_run_lanes(lanes, lane_count, spin, &executor, NULL) != TIDE_OK) {
    return none;
  }
  const double took_ns = (double)(clock_ns(CLOCK_MONOTONIC) - start_ns);
  double cpu_ns = 0.0;
  for (size_t lane = 0; lane < lane_count; lane++) {
    cpu_ns += (double)lane_cpu_ns[lane];
  }
  const double ran = (double)executor.counters.callbacks_run;
  return (rate_t){ran * 1e9 / took_ns, ran * 1e9 / cpu_ns * (double)lane_count};
}

int main(int count, char **arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 2.0;
  bool good = seconds > 0.0;
  printf("%-10s %-14s %5s %12s %16s %18s\n", "policy", "sources", "lanes", "callbacks/s", "on own CPUs/s",
         "overhead ns each");
  for (int kind = 0; kind < 2; kind++) {
    for (size_t lane_count = 1; lane_count <= LANES_MAXIMUM; lane_count++) {
      for (int which = 0; which < 2; which++) {
        const tide_policy_t policy = which == 0 ? TIDE_POLICY_TIDE : TIDE_POLICY_READYSET;
        const rate_t rate = measure(policy, lane_count, kind == 0, (int64_t)(seconds * 1e9));
        const double overhead_ns = rate.own > 0.0 ? 1e9 * (double)lane_count / rate.own - (double)CALLBACK_NS : 0.0;
        printf("%-10s %-14s %5zu %12.0f %16.0f %18.0f\n", which == 0 ? "tide" : "readyset",
               kind == 0 ? "timers" : "subscriptions", lane_count, rate.measured, rate.own, overhead_ns);
        good = good && (which != 0 || rate.own >= targets[lane_count - 1u]);
      }
    }
  }
  printf("targets of the tide policy: %.0f with one lane, %.0f with two\n", targets[0], targets[1]);
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
