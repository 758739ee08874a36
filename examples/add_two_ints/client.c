/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the service "/addtwoints" for a sum, once a second. This is plain micro-ROS and uses nothing specific to
   tide. */
#include <example_interfaces/srv/add_two_ints.h>
#include <inttypes.h>
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                   \
  do {                                                                \
    rcl_ret_t result = (call);                                        \
    if (result != RCL_RET_OK) {                                       \
      fprintf(stderr, "%s: %s\n", #call, rcl_get_error_string().str); \
      return EXIT_FAILURE;                                            \
    }                                                                 \
  } while (0)

static rcl_client_t client;
static example_interfaces__srv__AddTwoInts_Request request;

static void timer_callback(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  if (timer == NULL) return;
  request.a++;
  request.b = 24;
  int64_t sequence_number = 0;
  if (rcl_send_request(&client, &request, &sequence_number) != RCL_RET_OK) return;
  printf("request %" PRId64 ": %" PRId64 " + %" PRId64 "\n", sequence_number, request.a, request.b);
  fflush(stdout);
}

static void client_callback(const void *response_message, rmw_request_id_t *request_id) {
  const example_interfaces__srv__AddTwoInts_Response *response = response_message;
  printf("reply %" PRId64 ": %" PRId64 "\n", request_id->sequence_number, response->sum);
  fflush(stdout);
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "add_two_ints_client", "", &support));
  client = rcl_get_zero_initialized_client();
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(example_interfaces, srv, AddTwoInts);
  CHECK(rclc_client_init_default(&client, &node, type, "/addtwoints"));
  rcl_timer_t timer = rcl_get_zero_initialized_timer();
  CHECK(rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1000), timer_callback));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 2, &allocator));
  CHECK(rclc_executor_add_timer(&executor, &timer));
  example_interfaces__srv__AddTwoInts_Response response;
  CHECK(rclc_executor_add_client_with_request_id(&executor, &client, &response, client_callback));
  CHECK(rclc_executor_spin(&executor));

  CHECK(rclc_executor_fini(&executor));
  CHECK(rcl_client_fini(&client, &node));
  CHECK(rcl_timer_fini(&timer));
  CHECK(rcl_node_fini(&node));
  CHECK(rclc_support_fini(&support));
  return EXIT_SUCCESS;
}
