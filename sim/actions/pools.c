/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of a board with a service, a client, an action server and an action client. All pools except the one for
 * results are small, so that they fill up. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 0
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 0
#define TIDE_SERVICES 1
#define TIDE_CLIENTS 1
#define TIDE_ACTION_SERVERS 1
#define TIDE_ACTION_CLIENTS 1
#define TIDE_ACTION_GOALS 8
#define TIDE_ACTION_RESULTS 16
#define TIDE_ACTION_RESULT_BYTES 16
#define TIDE_SERVICE_DEPTH 8
#define TIDE_CLIENT_REQUESTS 8
#define TIDE_HANDLES 4
#define TIDE_EXECUTORS 1
#define TIDE_SMALL_NODES 8
#define TIDE_SMALL_NODE_BYTES 128
#define TIDE_LARGE_NODES 2
#define TIDE_LARGE_NODE_BYTES 1024
#define TIDE_SLOTS 60
#define TIDE_STREAMS 6
#define TIDE_CONNECT_TIMEOUT_MS 2000
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
