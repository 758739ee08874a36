/* SPDX-License-Identifier: Apache-2.0 */
/* Small pools, so that readers compete for slots and frames. */
#define TIDE_NODES 1
#define TIDE_PUBLISHERS 1
#define TIDE_SUBSCRIPTIONS 2
#define TIDE_SERVICES 1
#define TIDE_CLIENTS 1
#define TIDE_TIMERS 1
#define TIDE_SMALL_NODES 8
#define TIDE_LARGE_NODES 2
#define TIDE_LARGE_NODE_BYTES 4096
#define TIDE_REASSEMBLY_BYTES 4096
#define TIDE_SLOTS 20
#define TIDE_DEFINE_POOLS
#include "tide/pools.h"

#define TIDE_RTPS_WRITERS 3
#define TIDE_RTPS_READERS 4
#define TIDE_RTPS_FRAMES 12
#define TIDE_RTPS_HISTORY 8
#define TIDE_RTPS_SAMPLE_BYTES 3000
#define TIDE_DEFINE_RTPS
#include "tide/rclc_rtps.h"
