/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCUTILS__TIME_H_
#define RCUTILS__TIME_H_

#include <stdint.h>

#include "rcutils/ret.h"
#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef int64_t rcutils_duration_value_t;   /* ns */
typedef int64_t rcutils_time_point_value_t; /* ns */

#define RCUTILS_S_TO_NS(seconds) ((int64_t)(seconds) * (1000LL * 1000LL * 1000LL))
#define RCUTILS_MS_TO_NS(milliseconds) ((int64_t)(milliseconds) * (1000LL * 1000LL))
#define RCUTILS_US_TO_NS(microseconds) ((int64_t)(microseconds)*1000LL)
#define RCUTILS_NS_TO_S(nanoseconds) ((int64_t)(nanoseconds) / (1000LL * 1000LL * 1000LL))
#define RCUTILS_NS_TO_MS(nanoseconds) ((int64_t)(nanoseconds) / (1000LL * 1000LL))
#define RCUTILS_NS_TO_US(nanoseconds) ((int64_t)(nanoseconds) / 1000LL)

/* Time of the monotonic clock, which timers use. RCUTILS_RET_INVALID_ARGUMENT: null. */
rcutils_ret_t rcutils_steady_time_now(rcutils_time_point_value_t *now);
/* Time of the system's wall clock, or of the agent's on a board without one; RCUTILS_RET_ERROR until the agent's clock
 * is known (rmw_uros_sync_session). */
rcutils_ret_t rcutils_system_time_now(rcutils_time_point_value_t *now);

TIDE_EXTERN_C_END
#endif
