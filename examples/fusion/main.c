/* SPDX-License-Identifier: Apache-2.0 */
/* Two sensors, one estimate, two lanes. The gyro and the wheels publish geometry_msgs/Vector3 to two subscriptions of
 * the same process, without the agent and without a copy. Both sensors' callbacks write to the estimate, and need no
 * lock for it because they belong to one mutually exclusive group. A planner that computes for 150 ms at a time belongs
 * to no group: it occupies one lane, and the other one continues with the sensors. Twice a second the estimate is sent
 * to ROS 2 on "pose": x is the angle, y the distance, z the number of samples in it.
 *
 * `overlapped` and `copied` count violations of these rules. */
#include <geometry_msgs/msg/vector3.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tide/posix.h>
#include <tide/rclc.h>
#include <tide/rclc_local.h>
#include <tide/status.h>

#define TIDE_EXECUTOR_LANES 2
#define TIDE_GROUPS 1
#define TIDE_LOCAL_TOPICS 2
#define TIDE_LOCAL_MESSAGE_BYTES 32
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>

#define CHECK(call)                                                                  \
  do {                                                                               \
    if ((call) != RCL_RET_OK) {                                                      \
      fprintf(stderr, "%s: %s\n", #call, tide_status_text(tide_rclc_last_status())); \
      return EXIT_FAILURE;                                                           \
    }                                                                                \
  } while (0)

enum { GYRO_MS = 5, WHEELS_MS = 20, POSE_MS = 500, PLAN_MS = 200, PLAN_COMPUTES_MS = 150 };

typedef struct sensor {
  const char *topic;
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
  geometry_msgs__msg__Vector3 unused; /* stays empty: the messages are delivered in place */
} sensor_t;

static sensor_t gyro = {.topic = "gyro"}, wheels = {.topic = "wheels"};
static rcl_publisher_t pose_publisher;
static geometry_msgs__msg__Vector3 estimate; /* used by callbacks of the group */
static unsigned overlapped, copied;          /* used by callbacks of the group */
static atomic_flag inside = ATOMIC_FLAG_INIT;

static const rosidl_message_type_support_t *vector_type(void) {
  return ROSIDL_GET_MSG_TYPE_SUPPORT(geometry_msgs, msg, Vector3);
}

/* Writes the message to the memory that the subscription reads. */
static void publish(const sensor_t *sensor, double value) {
  void *loan;
  if (rcl_borrow_loaned_message(&sensor->publisher, vector_type(), &loan) != RCL_RET_OK)
    return; /* the failure is counted */
  *(geometry_msgs__msg__Vector3 *)loan = (geometry_msgs__msg__Vector3){.x = value};
  (void)rcl_publish_loaned_message(&sensor->publisher, loan, NULL);
}

static void on_gyro_timer(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  publish(&gyro, 0.001);
}

static void on_wheels_timer(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  publish(&wheels, 0.02);
}

static void begin(void) { overlapped += atomic_flag_test_and_set(&inside) ? 1u : 0u; }
static void end(void) { atomic_flag_clear(&inside); }

static double use(const sensor_t *sensor, const void *received) {
  const geometry_msgs__msg__Vector3 *message = received;
  copied += message == &sensor->unused ? 1u : 0u;
  estimate.z += 1;
  return message->x;
}

static void on_gyro(const void *received) {
  begin();
  estimate.x += use(&gyro, received);
  end();
}

static void on_wheels(const void *received) {
  begin();
  estimate.y += use(&wheels, received);
  end();
}

static void on_pose(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  begin();
  if (rcl_publish(&pose_publisher, &estimate, NULL) == RCL_RET_OK) {
    printf("pose: %.3f rad, %.2f m of %.0f samples, %u overlapped, %u copied\n", estimate.x, estimate.y, estimate.z,
           overlapped, copied);
    fflush(stdout);
  }
  end();
}

static void on_plan(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  tide_posix_spin_cpu(RCL_MS_TO_NS(PLAN_COMPUTES_MS));
}

static int connect(sensor_t *sensor, rcl_node_t *node, rclc_executor_t *executor, tide_callback_group_t *group,
                   rclc_subscription_callback_t callback) {
  const rosidl_message_type_support_t *type = vector_type();
  const rmw_qos_profile_t *quality = &rmw_qos_profile_default;
  CHECK(tide_rclc_publisher_init(&sensor->publisher, node, type, sensor->topic, quality, TIDE_REACH_LOCAL));
  CHECK(tide_rclc_subscription_init(&sensor->subscription, node, type, sensor->topic, quality, TIDE_REACH_LOCAL));
  CHECK(tide_rclc_subscription_set_group(&sensor->subscription, group));
  CHECK(rclc_executor_add_subscription(executor, &sensor->subscription, &sensor->unused, callback, ON_NEW_DATA));
  return EXIT_SUCCESS;
}

static int add_timer(rcl_timer_t *timer, rclc_support_t *support, rclc_executor_t *executor, uint64_t period_ms,
                     rcl_timer_callback_t callback, const tide_callback_group_t *group) {
  *timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(timer, support, RCL_MS_TO_NS(period_ms), callback));
  CHECK(tide_rclc_timer_set_group(timer, group));
  CHECK(rclc_executor_add_timer(executor, timer));
  return EXIT_SUCCESS;
}

/* Creates a chain for the gyro and one for the wheels, so that a lane takes their callbacks before the planner's. */
static int name_chains(rcl_timer_t *gyro_timer, rcl_timer_t *wheels_timer) {
  tide_chain_t turn, way;
  CHECK(tide_chain_init(&turn, "turn", 2, RCL_MS_TO_NS(GYRO_MS), RCL_MS_TO_NS(GYRO_MS)));
  CHECK(tide_chain_init(&way, "way", 1, RCL_MS_TO_NS(WHEELS_MS), RCL_MS_TO_NS(WHEELS_MS)));
  CHECK(tide_rclc_chain_add_timer(&turn, gyro_timer));
  CHECK(tide_rclc_chain_add_subscription(&turn, &gyro.subscription));
  CHECK(tide_rclc_chain_add_timer(&way, wheels_timer));
  CHECK(tide_rclc_chain_add_subscription(&way, &wheels.subscription));
  return EXIT_SUCCESS;
}

static int run(rclc_support_t *support, rcl_node_t *node, rclc_executor_t *executor) {
  /* Both lanes serve every callback, as a pool. With rising least_level they would be preemptive (examples/lanes). */
  static const tide_lane_settings_t lanes[] = {{.name = "lane 1"}, {.name = "lane 2"}};
  static rcl_timer_t gyro_timer, wheels_timer, pose_timer, plan_timer;
  static tide_callback_group_t group;
  CHECK(tide_rclc_executor_set_lanes(executor, lanes, 2));
  CHECK(tide_rclc_callback_group_init(&group, TIDE_GROUP_EXCLUSIVE));
  if (connect(&gyro, node, executor, &group, on_gyro) != EXIT_SUCCESS ||
      connect(&wheels, node, executor, &group, on_wheels) != EXIT_SUCCESS ||
      add_timer(&gyro_timer, support, executor, GYRO_MS, on_gyro_timer, NULL) != EXIT_SUCCESS ||
      add_timer(&wheels_timer, support, executor, WHEELS_MS, on_wheels_timer, NULL) != EXIT_SUCCESS ||
      add_timer(&pose_timer, support, executor, POSE_MS, on_pose, &group) != EXIT_SUCCESS ||
      add_timer(&plan_timer, support, executor, PLAN_MS, on_plan, NULL) != EXIT_SUCCESS ||
      name_chains(&gyro_timer, &wheels_timer) != EXIT_SUCCESS) {
    return EXIT_FAILURE;
  }
  CHECK(rclc_executor_spin(executor));
  return EXIT_SUCCESS;
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));
  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "fusion", "", &support));
  CHECK(rclc_publisher_init_default(&pose_publisher, &node, vector_type(), "pose"));
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 6, &allocator));
  return run(&support, &node, &executor);
}
