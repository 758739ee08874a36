/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__TIME_SYNC_H_
#define RMW_MICROROS__TIME_SYNC_H_

#include "rmw/types.h"

TIDE_EXTERN_C_BEGIN

/* Exchanges timestamps with the agent until the offset between the two clocks is known. RMW_RET_TIMEOUT: the agent did
 * not answer. */
rmw_ret_t rmw_uros_sync_session(const int timeout_ms);
bool rmw_uros_epoch_synchronized(void);
/* The agent's wall clock, in ms or ns since 1970; 0 before the first synchronisation. */
int64_t rmw_uros_epoch_millis(void);
int64_t rmw_uros_epoch_nanos(void);

TIDE_EXTERN_C_END
#endif
