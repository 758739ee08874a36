/* SPDX-License-Identifier: Apache-2.0 */
#define TIDE_NODES 2
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_CLIENTS 1
#define TIDE_TIMERS 1
#define TIDE_GUARD_CONDITIONS 0
#define TIDE_GRAPH_BYTES 1000
#define TIDE_CONNECT_TIMEOUT_MS 300
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
