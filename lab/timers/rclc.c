/* SPDX-License-Identifier: Apache-2.0 */
/* A timer of rclc in a micro-ROS program that has a session with an agent. Like such a program, it has a node and
 * rclc's executor, which also checks for frames of the agent. */
#include <inttypes.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "run.h"
#include "tide/executor.h"
#include "tide/port.h"
#include "tide/posix.h"
#include "tide/rclc.h"
#include "tide/status.h"

#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

enum { BRACKETS = 50, PING_LIMIT_MS = 5000 };

static struct {
  rclc_support_t support;
  rcl_node_t node;
  rcl_timer_t timer;
  rclc_executor_t executor;
  timers_sample_t *samples;
  uint32_t repetitions;
  _Atomic uint32_t done;
  int64_t period_ns, grid_ns;
  int64_t index; /* index of the expiry of the next callback */
  uint32_t skipped;
  uint64_t early;
  rcl_ret_t result;
} all;

static int64_t now_ns(void) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->now_ns(platform->context);
}

static int fail(const char *call) {
  fprintf(stderr, "tide-timers: %s: %s\n", call, tide_status_text(tide_rclc_last_status()));
  return TIMERS_FAILED;
}

static void on_expiry(rcl_timer_t *timer, int64_t since_last_call_ns) {
  const int64_t time_ns = now_ns();
  int64_t until_ns = 0;
  (void)since_last_call_ns;
  (void)rcl_timer_get_time_until_next_call(timer, &until_ns);
  const uint32_t number = atomic_load_explicit(&all.done, memory_order_relaxed);
  if (number == all.repetitions) return;
  const timers_sample_t sample = {.measured_ns = time_ns - all.grid_ns - all.index * all.period_ns,
                                  .reported_ns = all.period_ns - until_ns};
  all.samples[number] = sample;
  all.early += sample.measured_ns < 0 ? 1u : 0u;
  const int64_t following = (time_ns + until_ns - all.grid_ns + all.period_ns / 2) / all.period_ns;
  if (following > all.index + 1) all.skipped += (uint32_t)(following - all.index - 1);
  all.index = following > all.index ? following : all.index + 1;
  atomic_store_explicit(&all.done, number + 1u, memory_order_release);
  if (number + 1u == all.repetitions) tide_executor_stop(tide_rclc_executor_core(&all.executor));
}

/* Determines the times of the expiries as a program can: of several readings of the time until the next call, it uses
 * the one whose two clock readings are closest together. */
static void find_grid(void) {
  int64_t tightest_ns = INT64_MAX;
  for (int number = 0; number < BRACKETS; number++) {
    int64_t until_ns = 0;
    const int64_t before_ns = now_ns();
    (void)rcl_timer_get_time_until_next_call(&all.timer, &until_ns);
    const int64_t after_ns = now_ns();
    if (after_ns - before_ns >= tightest_ns) continue;
    tightest_ns = after_ns - before_ns;
    all.grid_ns = before_ns + tightest_ns / 2 + until_ns;
  }
}

static void spin(void *context) {
  (void)context;
  all.result = rclc_timer_init_default2(&all.timer, &all.support, (uint64_t)all.period_ns, on_expiry, true);
  if (all.result != RCL_RET_OK) return;
  find_grid();
  all.result = rclc_executor_add_timer(&all.executor, &all.timer);
  if (all.result == RCL_RET_OK) all.result = rclc_executor_spin(&all.executor);
}

static void stop(void *context) {
  (void)context;
  tide_executor_stop(tide_rclc_executor_core(&all.executor));
}

static int try_to_open(const timers_options_t *options) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_init_options_t init = rcl_get_zero_initialized_init_options();
  if (rcl_init_options_init(&init, allocator) != RCL_RET_OK) return fail("rcl_init_options_init");
  rmw_uros_options_set_udp_address("127.0.0.1", options->agent_port, rcl_init_options_get_rmw_init_options(&init));
  if (rclc_support_init_with_options(&all.support, 0, NULL, &init, &allocator) != RCL_RET_OK) {
    return fail("rclc_support_init_with_options");
  }
  all.node = rcl_get_zero_initialized_node();
  if (rclc_node_init_default(&all.node, "timer_latency", "", &all.support) != RCL_RET_OK) {
    return fail("rclc_node_init_default");
  }
  all.timer = rcl_get_zero_initialized_timer();
  all.executor = rclc_executor_get_zero_initialized_executor();
  if (rclc_executor_init(&all.executor, &all.support.context, 1, &allocator) != RCL_RET_OK) {
    return fail("rclc_executor_init");
  }
  return TIMERS_DONE;
}

/* The session is opened in a thread without real-time scheduling, because the link's thread inherits the scheduling.
 * Meanwhile a signal ends the program at once (leave), because opening may take long, and there are no measurements to
 * keep yet. */
typedef struct opening {
  const timers_options_t *options;
  int status;
} opening_t;

static void open_in_thread(void *context) {
  opening_t *opening = context;
  opening->status = try_to_open(opening->options);
}

static void leave(void *context) {
  (void)context;
  _exit(TIMERS_FAILED);
}

static int open(const timers_options_t *options) {
  const tide_posix_scheduling_t normal = {.policy = SCHED_OTHER, .cpu = TIDE_POSIX_ANY_CPU};
  opening_t opening = {.options = options};
  const timers_run_t run = {.spin = open_in_thread, .stop = leave, .context = &opening};
  bool interrupted = false;
  const int status = timers_in_thread(&run, &normal, "", &interrupted);
  if (status == TIDE_OK) return opening.status;
  fprintf(stderr, "tide-timers: %s\n", tide_status_text(status));
  return TIMERS_FAILED;
}

static int conclude(const timers_options_t *options, bool interrupted) {
  if (all.result != RCL_RET_OK) return fail("rclc's executor");
  /* The measurements do not count if the program has lost its session. */
  if (rmw_uros_ping_agent(PING_LIMIT_MS, 1) != RMW_RET_OK) return fail("the agent does not answer any more");
  if (!timers_write(all.samples, all.done, options->out)) return TIMERS_FAILED;
  printf("{\"event\": \"done\", \"done\": %" PRIu32 ", \"skipped\": %" PRIu32 ", \"early\": %" PRIu64
         ", \"interrupted\": %s}\n",
         all.done, all.skipped, all.early, interrupted ? "true" : "false");
  return TIMERS_DONE;
}

int timers_rclc(const timers_options_t *options) {
  all.repetitions = options->repetitions;
  all.period_ns = options->period_ns;
  all.samples = timers_allocate(options->repetitions);
  if (all.samples == NULL) return TIMERS_FAILED;
  const int status = open(options);
  if (status != TIMERS_DONE) return status;
  const timers_run_t run = {.spin = spin, .stop = stop};
  bool interrupted = false;
  const int ended = timers_run(&run, options, &interrupted);
  return ended == TIMERS_DONE ? conclude(options, interrupted) : ended;
}
