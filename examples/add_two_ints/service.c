/* SPDX-License-Identifier: Apache-2.0 */
/* Server of "/addtwoints" (example_interfaces/AddTwoInts): adds two numbers. This is plain micro-ROS and uses nothing
 * specific to tide. */
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

static void service_callback(const void *request_message, void *response_message) {
  const example_interfaces__srv__AddTwoInts_Request *request = request_message;
  example_interfaces__srv__AddTwoInts_Response *response = response_message;
  response->sum = (int64_t)((uint64_t)request->a + (uint64_t)request->b);
  printf("%" PRId64 " + %" PRId64 " = %" PRId64 "\n", request->a, request->b, response->sum);
  fflush(stdout);
}

int main(void) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rclc_support_t support;
  CHECK(rclc_support_init(&support, 0, NULL, &allocator));

  rcl_node_t node = rcl_get_zero_initialized_node();
  CHECK(rclc_node_init_default(&node, "add_two_ints_service", "", &support));
  rcl_service_t service = rcl_get_zero_initialized_service();
  const rosidl_service_type_support_t *type = ROSIDL_GET_SRV_TYPE_SUPPORT(example_interfaces, srv, AddTwoInts);
  CHECK(rclc_service_init_default(&service, &node, type, "/addtwoints"));

  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  CHECK(rclc_executor_init(&executor, &support.context, 1, &allocator));
  example_interfaces__srv__AddTwoInts_Request request;
  example_interfaces__srv__AddTwoInts_Response response;
  CHECK(rclc_executor_add_service(&executor, &service, &request, &response, service_callback));
  CHECK(rclc_executor_spin(&executor));

  CHECK(rclc_executor_fini(&executor));
  CHECK(rcl_service_fini(&service, &node));
  CHECK(rcl_node_fini(&node));
  CHECK(rclc_support_fini(&support));
  return EXIT_SUCCESS;
}
