/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"
#include "rcl/time.h"
#include "rmw_microros/time_sync.h"

bool rcl_clock_valid(rcl_clock_t *clock) {
  return clock != NULL && clock->type > RCL_CLOCK_UNINITIALIZED && clock->type <= RCL_STEADY_TIME;
}

rcl_ret_t rcl_clock_fini(rcl_clock_t *clock) {
  if (!rcl_clock_valid(clock)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  clock->type = RCL_CLOCK_UNINITIALIZED;
  return RCL_RET_OK;
}

rcl_ret_t rcl_clock_get_now(rcl_clock_t *clock, rcl_time_point_value_t *time_point_value) {
  if (!rcl_clock_valid(clock) || time_point_value == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_platform_t *platform = tide_port_platform();
  *time_point_value = clock->type == RCL_STEADY_TIME ? tide_platform_now_ns(platform) : rmw_uros_epoch_nanos();
  return *time_point_value == 0 ? tide_compat_result(TIDE_ERROR_STATE) : RCL_RET_OK;
}
