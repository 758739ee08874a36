/* SPDX-License-Identifier: Apache-2.0 */
/* A program for the first edition of rclc_parameter: the test is that it compiles in C11 without a warning. */
#include <rclc_parameter/rclc_parameter.h>

rcl_ret_t first_edition_start(rclc_executor_t *executor, rclc_parameter_server_t *server);
int first_edition_count(rclc_parameter_server_t *server);
extern int first_edition_calls;

int first_edition_calls;

static void on_parameter_changed(Parameter *parameter) { first_edition_calls += parameter->value.integer_value == 5; }

rcl_ret_t first_edition_start(rclc_executor_t *executor, rclc_parameter_server_t *server) {
  return rclc_executor_add_parameter_server(executor, server, on_parameter_changed);
}

int first_edition_count(rclc_parameter_server_t *server) {
  int value = -1;
  int64_t same = -1;
  if (rclc_parameter_get_int(server, "count", &value) != RCL_RET_OK) return -1;
  if (rclc_parameter_get_int(server, "count", &same) != RCL_RET_OK) return -1;
  return same == value ? value : -1;
}
