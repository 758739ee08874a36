/* SPDX-License-Identifier: Apache-2.0 */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_LIFECYCLE_NODES 1
#define TIDE_CONNECT_TIMEOUT_MS 300
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
