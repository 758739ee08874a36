/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a program that has an executor with three lanes, an action and parameters. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 0
#define TIDE_TIMERS 1
#define TIDE_ACTION_SERVERS 1
#define TIDE_ACTION_GOALS 8
#define TIDE_ACTION_RESULTS 8
#define TIDE_ACTION_RESULT_BYTES 16
#define TIDE_PARAMETER_SERVERS 1
#define TIDE_PARAMETERS 6
#define TIDE_EXECUTOR_LANES 3
#define TIDE_SERVICE_DEPTH 8
#define TIDE_STREAMS 8
#define TIDE_SLOTS 60
#define TIDE_CONNECT_TIMEOUT_MS 300
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"
