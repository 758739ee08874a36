/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__TIME_H_
#define RCL__TIME_H_

#include <stdbool.h>

#include "rcl/allocator.h"
#include "rcl/types.h"
#include "rcutils/time.h"

TIDE_EXTERN_C_BEGIN

typedef rcutils_time_point_value_t rcl_time_point_value_t;
typedef rcutils_duration_value_t rcl_duration_value_t;

typedef enum rcl_clock_type_e {
  RCL_CLOCK_UNINITIALIZED = 0,
  RCL_ROS_TIME,
  RCL_SYSTEM_TIME,
  RCL_STEADY_TIME
} rcl_clock_type_t;

typedef struct rcl_clock_s {
  rcl_clock_type_t type;
} rcl_clock_t;

typedef struct rcl_time_point_s {
  rcl_time_point_value_t nanoseconds;
  rcl_clock_type_t clock_type;
} rcl_time_point_t;

typedef struct rcl_duration_s {
  rcl_duration_value_t nanoseconds;
} rcl_duration_t;

#define RCL_S_TO_NS(seconds) ((int64_t)(seconds) * (1000LL * 1000LL * 1000LL))
#define RCL_MS_TO_NS(milliseconds) ((int64_t)(milliseconds) * (1000LL * 1000LL))
#define RCL_US_TO_NS(microseconds) ((int64_t)(microseconds)*1000LL)
#define RCL_NS_TO_S(nanoseconds) ((int64_t)(nanoseconds) / (1000LL * 1000LL * 1000LL))
#define RCL_NS_TO_MS(nanoseconds) ((int64_t)(nanoseconds) / (1000LL * 1000LL))
#define RCL_NS_TO_US(nanoseconds) ((int64_t)(nanoseconds) / 1000LL)

/* True if the clock was initialised with one of the three types. */
bool rcl_clock_valid(rcl_clock_t *clock);
rcl_ret_t rcl_clock_fini(rcl_clock_t *clock);
/* The current time in ns: a steady clock counts from its start; other clocks give the agent's wall clock (RCL_RET_ERROR
 * before the first synchronisation by rmw_uros_sync_session). */
rcl_ret_t rcl_clock_get_now(rcl_clock_t *clock, rcl_time_point_value_t *time_point_value);
rcl_ret_t rcl_clock_init(rcl_clock_type_t clock_type, rcl_clock_t *clock, rcl_allocator_t *allocator);
/* Like rcl_clock_init and rcl_clock_fini, for one clock type each. The fini functions refuse a clock of another
 * type. */
rcl_ret_t rcl_ros_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator);
rcl_ret_t rcl_ros_clock_fini(rcl_clock_t *clock);
rcl_ret_t rcl_steady_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator);
rcl_ret_t rcl_steady_clock_fini(rcl_clock_t *clock);
rcl_ret_t rcl_system_clock_init(rcl_clock_t *clock, rcl_allocator_t *allocator);
rcl_ret_t rcl_system_clock_fini(rcl_clock_t *clock);
/* *delta = finish - start. RCL_RET_ERROR: the two times belong to clocks of different types. */
rcl_ret_t rcl_difference_times(const rcl_time_point_t *start, const rcl_time_point_t *finish, rcl_duration_t *delta);

TIDE_EXTERN_C_END
#endif
