/* SPDX-License-Identifier: Apache-2.0 */
/* Server of the action "/fibonacci" (example_interfaces/Fibonacci): one number in each step, up to four goals at a
 * time, each of which may be cancelled. This is plain micro-ROS and uses nothing specific to tide. */
#include <example_interfaces/action/fibonacci.h>
#include <inttypes.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdio.h>
#include <stdlib.h>

#define GOALS 4
#define ORDER_MAXIMUM 40
#define STEP_MS 100

#define CHECK(call)                                                   \
  do {                                                                \
    rcl_ret_t result = (call);                                        \
    if (result != RCL_RET_OK) {                                       \
      fprintf(stderr, "%s: %s\n", #call, rcl_get_error_string().str); \
      return EXIT_FAILURE;                                            \
    }                                                                 \
  } while (0)

typedef struct run {
  rclc_action_goal_handle_t *goal; /* null: the entry is free */
  int32_t numbers[ORDER_MAXIMUM];
  size_t count;
} run_t;

static run_t runs[GOALS];
static example_interfaces__action__Fibonacci_SendGoal_Request requests[GOALS];

static int32_t order_of(const rclc_action_goal_handle_t *goal) {
  const example_interfaces__action__Fibonacci_SendGoal_Request *request = goal->ros_goal_request;
  return request->goal.order;
}

static rcl_ret_t on_goal(rclc_action_goal_handle_t *goal, void *context) {
  (void)context;
  const int32_t order = order_of(goal);
  for (size_t i = 0; i < GOALS && order > 0 && order <= ORDER_MAXIMUM; i++) {
    if (runs[i].goal != NULL) continue;
    runs[i].goal = goal;
    runs[i].count = 0;
    return RCL_RET_ACTION_GOAL_ACCEPTED;
  }
  return RCL_RET_ACTION_GOAL_REJECTED;
}

static bool on_cancel(rclc_action_goal_handle_t *goal, void *context) {
  (void)goal;
  (void)context;
  return true;
}

static void tell(run_t *run) {
  example_interfaces__action__Fibonacci_FeedbackMessage message = {0};
  message.feedback.sequence.data = run->numbers;
  message.feedback.sequence.size = message.feedback.sequence.capacity = run->count;
  if (rclc_action_publish_feedback(run->goal, &message) != RCL_RET_OK) printf("feedback was lost\n");
}

static void end(run_t *run, rcl_action_goal_state_t state) {
  example_interfaces__action__Fibonacci_GetResult_Response response = {0};
  response.result.sequence.data = run->numbers;
  response.result.sequence.size = response.result.sequence.capacity = run->count;
  const int32_t order = order_of(run->goal);
  if (rclc_action_send_result(run->goal, state, &response) != RCL_RET_OK) return; /* tried again in the next step */
  run->goal = NULL;
  printf("%" PRId32 ": %s\n", order, state == GOAL_STATE_SUCCEEDED ? "succeeded" : "canceled");
  fflush(stdout);
}

static void step(run_t *run) {
  if (run->goal->goal_cancelled) {
    end(run, GOAL_STATE_CANCELED);
  } else if (run->count == (size_t)order_of(run->goal)) {
    end(run, GOAL_STATE_SUCCEEDED);
  } else {
    const size_t i = run->count++;
    run->numbers[i] = i < 2 ? (int32_t)i : run->numbers[i - 1] + run->numbers[i - 2];
    tell(run);
  }
}

static void on_step(rcl_timer_t *timer, int64_t last_call_time) {
  (void)timer;
  (void)last_call_time;
  for (size_t i = 0; i < GOALS; i++) {
    if (runs[i].goal != NULL) step(&runs[i]);
  }
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "fibonacci_server", "", &support));
  rclc_action_server_t server;
  const rosidl_action_type_support_t *type = ROSIDL_GET_ACTION_TYPE_SUPPORT(example_interfaces, Fibonacci);
  CHECK(rclc_action_server_init_default(&server, &node, &support, type, "fibonacci"));
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(STEP_MS), on_step));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  CHECK(rclc_executor_add_action_server(&executor, &server, GOALS, requests, sizeof requests[0], on_goal, on_cancel,
                                        NULL));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  CHECK(rclc_executor_spin(&executor));

  CHECK(rclc_executor_fini(&executor));
  CHECK(rclc_action_server_fini(&server, &node));
  CHECK(rcl_timer_fini(&timer));
  CHECK(rcl_node_fini(&node));
  CHECK(rclc_support_fini(&support));
  return EXIT_SUCCESS;
}
