/* SPDX-License-Identifier: Apache-2.0 */
/* Small pools, so that each of them can be exhausted. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_ACTION_SERVERS 2
#define TIDE_ACTION_CLIENTS 1
#define TIDE_ACTION_GOALS 46
#define TIDE_ACTION_RESULTS 2
#define TIDE_ACTION_RESULT_BYTES 16
#define TIDE_SERVICE_DEPTH 4
#define TIDE_CLIENT_REQUESTS 4
#define TIDE_TIMERS 1
#define TIDE_HANDLES 4
#define TIDE_EXECUTORS 2
#define TIDE_SMALL_NODES 8
#define TIDE_SMALL_NODE_BYTES 128
#define TIDE_LARGE_NODES 2
#define TIDE_LARGE_NODE_BYTES 1024
#define TIDE_SLOTS 40
#define TIDE_STREAMS 6
#define TIDE_CONNECT_TIMEOUT_MS 300
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
