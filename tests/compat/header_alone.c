/* SPDX-License-Identifier: Apache-2.0 */
/* Programs may use these names when they include only HEADER, as with the stock header. The test is that this
 * compiles. */
#include HEADER

void CHECK(const char *format, ...);
void CHECK(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  char text[8];
  if (rcutils_snprintf(text, sizeof text, "%zu", strlen(format)) <= 0) abort();
  assert(format[0] != 0);
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  free(allocator.allocate(sizeof(rcutils_ret_t), allocator.state));
  printf("%s\n", rcutils_get_error_string().str);
  rcutils_reset_error();
#if LEVEL > 0 /* rmw_microros/rmw_microros.h */
  const rcutils_time_point_value_t sum =
      (rcutils_time_point_value_t)(sizeof(rcutils_string_array_t) + sizeof(rosidl_runtime_c__String) +
                                   sizeof(rosidl_runtime_c__int32__Sequence) + rmw_qos_profile_sensor_data.depth);
  printf("%lld\n", (long long)sum);
#endif
#if LEVEL > 1 /* rcl/rcl.h */
  RCUTILS_LOG_ERROR_NAMED("check", "%s", "text");
#endif
#if LEVEL > 2 /* rclc/rclc.h */
  rcl_names_and_types_t found = rcl_get_zero_initialized_names_and_types();
  (void)rcl_names_and_types_fini(&found);
  rclc_sleep_ms(1);
#endif
#if LEVEL > 3 /* rclc/executor.h */
  if (rclc_executor_spin_some(NULL, RCL_MS_TO_NS(1)) != RCL_RET_OK) rcl_reset_error();
#endif
}
