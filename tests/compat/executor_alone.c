/* SPDX-License-Identifier: Apache-2.0 */
/* Programs may use these names when they include only <rclc/executor.h>, as with the stock header. The test is that
 * this compiles. */
#include <rclc/executor.h>

void check_executor_alone(rclc_executor_t *executor, const char *format, ...);
void check_executor_alone(rclc_executor_t *executor, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  if (rclc_executor_spin_some(executor, RCL_MS_TO_NS(1)) != RCL_RET_OK) {
    printf("%s\n", rcl_get_error_string().str);
    RCUTILS_LOG_ERROR_NAMED("check", "%s", rcl_get_error_string().str);
    rcl_reset_error();
  }
  rclc_sleep_ms(1);
}
