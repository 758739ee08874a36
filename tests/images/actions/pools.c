/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a board with one action and nothing else. The difference of its size from that of int32_publisher is the
 * cost of the action. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_ACTION_SERVERS 1
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
