/* SPDX-License-Identifier: Apache-2.0 */
/* Small pools, so that each of them can be exhausted. */
#define TIDE_NODES 2
#define TIDE_PUBLISHERS 3
#define TIDE_SUBSCRIPTIONS 3
#define TIDE_SERVICES 2
#define TIDE_CLIENTS 2
#define TIDE_SERVICE_DEPTH 4
#define TIDE_CLIENT_REQUESTS 4
#define TIDE_TIMERS 3
#define TIDE_GUARD_CONDITIONS 2
#define TIDE_EXECUTORS 2
#define TIDE_EXECUTOR_LANES 3
#define TIDE_HANDLES 6
#define TIDE_NAME_BYTES 40
#define TIDE_GROUPS 2
#define TIDE_LOCAL_TOPICS 2
#define TIDE_LOCAL_SUBSCRIPTIONS 2
#define TIDE_LOCAL_MESSAGES 16
#define TIDE_LOCAL_MESSAGE_BYTES 40
#define TIDE_SUBSCRIPTION_DEPTH 4
#define TIDE_SMALL_NODES 8
#define TIDE_SMALL_NODE_BYTES 128
#define TIDE_LARGE_NODES 2
#define TIDE_LARGE_NODE_BYTES 1020 /* not a multiple of the alignment */
#define TIDE_REASSEMBLY_BYTES 1024
#define TIDE_MTU_BYTES 256
#define TIDE_SLOTS 12
#define TIDE_STREAMS 6
#define TIDE_CONNECT_TIMEOUT_MS 300
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
