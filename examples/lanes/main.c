/* SPDX-License-Identifier: Apache-2.0 */
/* A fast timer and a slow callback, each on its own lane: the brake reads its sensor every 10 ms while the map computes
 * for 200 ms at a time. Publishes std_msgs/Int32 on "brake_late_us": the greatest lateness of the timer since the last
 * message. Try it with one lane (lanes 1) to see the effect of the second one.
 *
 * Set-up: an executor with two lanes, and a level for the urgent chain. The only data that both lanes use is the size
 * of the map, which is atomic. */
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <std_msgs/msg/int32.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/status.h>

#define TIDE_EXECUTOR_LANES 2
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>

#define CHECK(call)                                                                  \
  do {                                                                               \
    if ((call) != RCL_RET_OK) {                                                      \
      fprintf(stderr, "%s: %s\n", #call, tide_status_text(tide_rclc_last_status())); \
      return EXIT_FAILURE;                                                           \
    }                                                                                \
  } while (0)

enum { BRAKE_MS = 10, MAP_MS = 300, MAP_COMPUTES_MS = 200, REPORT_EVERY = 50 };

static rcl_publisher_t publisher;
static std_msgs__msg__Int32 late_us; /* used by the brake's lane only */
static int64_t worst_ns;
static unsigned samples;
static atomic_uint map_cells; /* the size of the map, for both lanes */

static void on_brake(rcl_timer_t *timer, int64_t last_call_time) {
  (void)last_call_time;
  const tide_callback_t *callback = tide_rclc_timer_callback(timer);
  const int64_t late_ns = callback->start_ns - callback->ready_ns; /* ready_ns: the expiry */
  worst_ns = late_ns > worst_ns ? late_ns : worst_ns;
  if (++samples % REPORT_EVERY != 0) return;
  late_us.data = (int32_t)(worst_ns / 1000);
  worst_ns = 0;
  if (rcl_publish(&publisher, &late_us, NULL) == RCL_RET_OK) {
    printf("brake: at most %d us late, %u cells\n", late_us.data, atomic_load(&map_cells));
    fflush(stdout);
  }
}

static void on_map(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  tide_posix_spin_cpu(RCL_MS_TO_NS(MAP_COMPUTES_MS));
  atomic_fetch_add(&map_cells, 1000);
}

/* tide/rclc.h describes what to do if the system refuses the priorities. Normal scheduling suffices to try the
 * example. */
static int choose_lanes(rclc_executor_t *executor, size_t count) {
  static const tide_lane_settings_t lanes[] = {
      {.name = "map", .scheduling = TIDE_SCHEDULING_FIFO, .priority = 10, .may_run_normally = true},
      {.name = "brake",
       .least_level = 2,
       .scheduling = TIDE_SCHEDULING_FIFO,
       .priority = 30,
       .may_run_normally = true}};
  CHECK(tide_rclc_executor_set_lanes(executor, lanes, count));
  return EXIT_SUCCESS;
}

int main(int count, char **words) {
  const size_t lanes = count == 3 && strcmp(words[1], "lanes") == 0 && strcmp(words[2], "1") == 0 ? 1 : 2;
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));
  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "lanes", "", &support));
  const rosidl_message_type_support_t *type = ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, Int32);
  CHECK(rclc_publisher_init_default(&publisher, &node, type, "brake_late_us"));

  rcl_timer_t brake_timer = rcl_get_zero_initialized_timer(), map_timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&brake_timer, &support, RCL_MS_TO_NS(BRAKE_MS), on_brake));
  CHECK(rclc_timer_init_default(&map_timer, &support, RCL_MS_TO_NS(MAP_MS), on_map));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  if (choose_lanes(&executor, lanes) != EXIT_SUCCESS) return EXIT_FAILURE;
  CHECK(rclc_executor_add_timer(&executor, &brake_timer));
  CHECK(rclc_executor_add_timer(&executor, &map_timer));

  tide_chain_t brake, map;
  tide_chain_init(&brake, "brake", 2, RCL_MS_TO_NS(BRAKE_MS), RCL_MS_TO_NS(BRAKE_MS));
  tide_chain_init(&map, "map", 1, RCL_MS_TO_NS(MAP_MS), RCL_MS_TO_NS(MAP_MS));
  CHECK(tide_rclc_chain_add_timer(&brake, &brake_timer));
  CHECK(tide_rclc_chain_add_publisher(&brake, &publisher));
  CHECK(tide_rclc_chain_add_timer(&map, &map_timer));
  CHECK(rclc_executor_spin(&executor));
  return EXIT_SUCCESS;
}
