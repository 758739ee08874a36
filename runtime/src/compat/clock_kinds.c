/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks by their kind, and the times of the system. */
#include "internal.h"
#include "rcl/time.h"
#include "rmw_microros/time_sync.h"

static rcl_ret_t end(rcl_clock_type_t type, rcl_clock_t *clock) {
  if (clock != NULL && clock->type != type) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_ERROR);
  return rcl_clock_fini(clock);
}

rcl_ret_t rcl_ros_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator) {
  return rcl_clock_init(RCL_ROS_TIME, clock, allocator);
}

rcl_ret_t rcl_ros_clock_fini(rcl_clock_t *clock) { return end(RCL_ROS_TIME, clock); }

rcl_ret_t rcl_steady_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator) {
  return rcl_clock_init(RCL_STEADY_TIME, clock, allocator);
}

rcl_ret_t rcl_steady_clock_fini(rcl_clock_t *clock) { return end(RCL_STEADY_TIME, clock); }

rcl_ret_t rcl_system_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator) {
  return rcl_clock_init(RCL_SYSTEM_TIME, clock, allocator);
}

rcl_ret_t rcl_system_clock_fini(rcl_clock_t *clock) { return end(RCL_SYSTEM_TIME, clock); }

rcl_ret_t rcl_difference_times(const rcl_time_point_t *start, const rcl_time_point_t *finish, rcl_duration_t *delta) {
  if (start == NULL || finish == NULL || delta == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (start->clock_type != finish->clock_type) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_ERROR);
  delta->nanoseconds = finish->nanoseconds - start->nanoseconds;
  return RCL_RET_OK;
}

rcutils_ret_t rcutils_steady_time_now(rcutils_time_point_value_t *now) {
  const tide_platform_t *platform = tide_port_platform();
  if (now == NULL) return RCUTILS_RET_INVALID_ARGUMENT;
  *now = tide_platform_now_ns(platform);
  return RCUTILS_RET_OK;
}

rcutils_ret_t rcutils_system_time_now(rcutils_time_point_value_t *now) {
  const tide_platform_t *platform = tide_port_platform();
  if (now == NULL) return RCUTILS_RET_INVALID_ARGUMENT;
  *now = platform->wall_ns != NULL ? platform->wall_ns(platform->context) : rmw_uros_epoch_nanos();
  return *now == 0 ? RCUTILS_RET_ERROR : RCUTILS_RET_OK;
}
