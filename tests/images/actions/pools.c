/* SPDX-License-Identifier: Apache-2.0 */
/* A board with one action and nothing else. The cost of the action is the difference from int32_publisher. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_ACTION_SERVERS 1
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
