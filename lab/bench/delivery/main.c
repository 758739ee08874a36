/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a topic "samples", whose messages contain the time of their publication (lab/bench/delivery.py):
 *
 *   delivery (--udp PORT | --serial DEVICE) --depth N [--effort] --count N --burst N --period-us N   publishes bursts
 *   delivery (--udp PORT | --serial DEVICE) --depth N [--effort] --callback-ms N                     receives
 *
 * Publishing begins with the first line of standard input. On SIGTERM the program ends with a line of JSON. */
#include <std_msgs/msg/int64.h>
#include <time.h>

#include "peer.h"

static int64_t depth = 10, count, burst = 1, period_us = 1000, callback_ms;
static bool effort;
static int64_t samples, refused, age_sum_us, age_greatest_us;
static std_msgs__msg__Int64 message;

static int64_t wall_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void pause_us(int64_t time_us) {
  const struct timespec pause = {time_us / 1000000, time_us % 1000000 * 1000};
  nanosleep(&pause, NULL);
}

static void on_sample(const void *sample) {
  const int64_t age_us = wall_us() - ((const std_msgs__msg__Int64 *)sample)->data;
  samples++;
  age_sum_us += age_us;
  if (age_us > age_greatest_us) age_greatest_us = age_us;
  pause_us(callback_ms * 1000);
}

static void publish(rcl_publisher_t *publisher) {
  for (int64_t sent = 0; sent < count && !interrupted; sent++) {
    message.data = wall_us();
    if (rcl_publish(publisher, &message, NULL) == RCL_RET_OK) {
      samples++;
    } else {
      refused++;
    }
    if ((sent + 1) % burst == 0) pause_us(period_us);
  }
  (void)rcl_publisher_wait_for_all_acked(publisher, RCL_S_TO_NS(20));
  puts("{\"event\": \"published\"}");
  fflush(stdout);
  while (!interrupted) pause_us(10000);
}

int main(int words_count, char **words) {
  const peer_option_t own[] = {{.name = "depth", .number = &depth},
                               {.name = "effort", .flag = &effort},
                               {.name = "count", .number = &count},
                               {.name = "burst", .number = &burst},
                               {.name = "period-us", .number = &period_us},
                               {.name = "callback-ms", .number = &callback_ms},
                               {.name = NULL}};
  end_by_signal();
  connect_board(words_count, words, own, "", 1);
  rmw_qos_profile_t qos = rmw_qos_profile_default;
  qos.depth = (size_t)depth;
  if (effort) qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int64);
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  if (count > 0) {
    require(rclc_publisher_init(&publisher, &node, type, "samples", &qos), "the publisher");
    tell_ready();
    while (next_order() == NULL) pause_us(10000);
    publish(&publisher);
  } else {
    require(rclc_subscription_init(&subscription, &node, type, "samples", &qos), "the subscription");
    require(rclc_executor_add_subscription(&executor, &subscription, &message, on_sample, ON_NEW_DATA), "adding");
    tell_ready();
    while (!interrupted) (void)rclc_executor_spin_some(&executor, RCL_MS_TO_NS(10));
  }
  printf("{\"samples\": %" PRId64 ", \"refused\": %" PRId64 ", \"mean_ms\": %.1f, \"greatest_ms\": %.1f}\n", samples,
         refused, samples > 0 ? 1e-3 * (double)age_sum_us / (double)samples : 0.0, 1e-3 * (double)age_greatest_us);
  return 0;
}
