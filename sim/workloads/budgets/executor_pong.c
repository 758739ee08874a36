/* SPDX-License-Identifier: Apache-2.0 */
/* Pong of plan.h as a micro-ROS program with the calls of the paper: a subscription NAME_ping and a publisher NAME_pong
 * (std_msgs/Int32) for each lane, on a tide-agent at udp=PORT. The time starts with the first ping. What the program
 * needs is what a program has that names no sizes: the receive slots are the default ones. */
#define _GNU_SOURCE
#include <pthread.h>
#include <rclc/executor_sched.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <sched.h>
#include <std_msgs/msg/int32.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plan.h"
#include "tide/posix.h"
#include "tide/rclc.h"
#include "tide/status.h"

#define TIDE_EXECUTOR_LANES 4
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define NANOSECONDS INT64_C(1000000000)
#define CHECK(call)                                                                                              \
  do {                                                                                                           \
    if ((call) != RCL_RET_OK) {                                                                                  \
      (void)fprintf(stderr, "budget_executor_pong: %s: %s\n", #call, tide_status_text(tide_rclc_last_status())); \
      return EXIT_FAILURE;                                                                                       \
    }                                                                                                            \
  } while (0)
enum { STOPPER_PRIORITY = 93, FIRST_PING_LIMIT_S = 60 };

typedef struct end {
  rcl_subscription_t ping;
  rcl_publisher_t pong;
  std_msgs__msg__Int32 received, answer;
  char ping_topic[24], pong_topic[24];
} end_t;

static plan_t plan;
static lane_result_t results[LANES_MAXIMUM];
static end_t ends[TIDE_EXECUTOR_LANES];
static rclc_executor_t executor;
static const char *port;
static bool reliable;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t first_ping = PTHREAD_COND_INITIALIZER;
static bool started, over;

static int64_t cpu_of_lane_ns(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (int64_t)time.tv_sec * NANOSECONDS + time.tv_nsec;
}

static void work(const lane_plan_t *lane) {
  const int64_t sleep_ns = plan.work_ns / 100 * lane->sleep_percent;
  tide_posix_spin_cpu(plan.work_ns - sleep_ns);
  if (sleep_ns > 0) (void)usleep((useconds_t)(sleep_ns / 1000));
}

static void start_time(void) {
  (void)pthread_mutex_lock(&mutex);
  started = true;
  (void)pthread_cond_signal(&first_ping);
  (void)pthread_mutex_unlock(&mutex);
}

static void answer(int32_t index, const std_msgs__msg__Int32 *ping) {
  if (!started) start_time();
  work(&plan.lanes[index]);
  ends[index].answer.data = ping->data;
  if (over || rclc_executor_publish(&ends[index].pong, &ends[index].answer, NULL) != RCL_RET_OK) return;
  results[index].replies++;
  results[index].cpu_ns = cpu_of_lane_ns();
}

static void on_ping_0(const void *ping) { answer(0, ping); }
static void on_ping_1(const void *ping) { answer(1, ping); }
static void on_ping_2(const void *ping) { answer(2, ping); }
static void on_ping_3(const void *ping) { answer(3, ping); }
static const rclc_subscription_callback_t callbacks[TIDE_EXECUTOR_LANES] = {on_ping_0, on_ping_1, on_ping_2, on_ping_3};

/* More urgent than what it ends. */
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
  tide_executor_stop(tide_rclc_executor_core(&executor));
  return NULL;
}

static rclc_executor_sched_parameter_t schedule(const lane_plan_t *lane) {
  rclc_executor_sched_parameter_t parameter = {.policy = lane->budget_ns > 0 ? SCHED_SPORADIC : SCHED_FIFO};
  parameter.param.sched_priority = lane->priority;
  parameter.param.sched_ss_low_priority = lane->low_priority;
  parameter.param.sched_ss_init_budget.tv_nsec = lane->budget_ns;
  parameter.param.sched_ss_repl_period.tv_nsec = lane->period_ns;
  parameter.param.sched_ss_max_repl = plan.replenishments;
  return parameter;
}

static int open_lane(rcl_node_t *node, int32_t index) {
  const rosidl_message_type_support_t *const type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  const lane_plan_t *const lane = &plan.lanes[index];
  end_t *const end = &ends[index];
  (void)snprintf(end->ping_topic, sizeof end->ping_topic, "%s_ping", lane->name);
  (void)snprintf(end->pong_topic, sizeof end->pong_topic, "%s_pong", lane->name);
  const rmw_qos_profile_t *const qos = reliable ? &rmw_qos_profile_default : &rmw_qos_profile_sensor_data;
  CHECK(rclc_publisher_init(&end->pong, node, type, end->pong_topic, qos));
  CHECK(rclc_subscription_init(&end->ping, node, type, end->ping_topic, qos));
  const rclc_executor_sched_parameter_t parameter = schedule(lane);
  CHECK(rclc_executor_add_subscription_sched(&executor, &end->ping, &end->received, callbacks[index], ON_NEW_DATA,
                                             &parameter));
  return EXIT_SUCCESS;
}

static void report(void) {
  for (int32_t index = 0; index < plan.lane_count; index++) {
    const tide_reader_t *const reader = &ends[index].ping.impl->reader;
    results[index].pings = reader->received + reader->account.dropped;
    results[index].overwritten = reader->account.dropped + reader->dropped;
  }
  plan_print(&plan, "executor", results);
}

static int run(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, allocator));
  rmw_uros_options_set_udp_address("127.0.0.1", port, rcl_init_options_get_rmw_init_options(&options));
  CHECK(rclc_support_init_with_options(&support, 0, NULL, &options, &allocator));
  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "pong", "", &support));
  executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, (size_t)plan.lane_count, &allocator));
  for (int32_t index = 0; index < plan.lane_count; index++) {
    if (open_lane(&node, index) != EXIT_SUCCESS) return EXIT_FAILURE;
  }
  pthread_t stopper;
  if (pthread_create(&stopper, NULL, stop_in_time, NULL) != 0) return EXIT_FAILURE;
  puts("ready");
  (void)fflush(stdout);
  CHECK(rclc_executor_start_multi_threading_for_nuttx(&executor));
  (void)pthread_join(stopper, NULL);
  if (!started) {
    (void)fprintf(stderr, "budget_executor_pong: no ping came within %d s\n", FIRST_PING_LIMIT_S);
    return EXIT_FAILURE;
  }
  report();
  return EXIT_SUCCESS;
}

/* Its own words; all others are of plan.h, and stay. */
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
  (void)fprintf(stderr, "budget_executor_pong: %s\n", wrong);
  return 2;
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "--help") == 0) {
    plan_help("budget_executor_pong udp=PORT [reliable]");
    return EXIT_SUCCESS;
  }
  const char *const wrong = plan_read(&plan, take_words(count - 1, words + 1), words + 1);
  if (wrong) return refuse(wrong);
  if (!port) return refuse("udp=PORT is missing: where does a tide-agent listen?");
  if (plan.lane_count > TIDE_EXECUTOR_LANES) return refuse("it takes four lanes at most");
  cpu_set_t place;
  CPU_ZERO(&place);
  CPU_SET((unsigned)plan.cpu, &place);
  if (sched_setaffinity(0, sizeof place, &place) != 0) return refuse("cpu=: this program may not use such a processor");
  return run();
}
