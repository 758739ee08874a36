/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of a program with parameters, small enough to be exhausted. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_PARAMETER_SERVERS 1
#define TIDE_PARAMETERS 6
#define TIDE_LARGE_NODE_BYTES 640 /* so that long lists and descriptions do not fit */
#define TIDE_CONNECT_TIMEOUT_MS 300
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
