/* SPDX-License-Identifier: Apache-2.0 */
/* Pools for the thousand publishers of submit_bench. */
#define TIDE_PUBLISHERS 1000
#define TIDE_SUBSCRIPTIONS 1
#define TIDE_SMALL_NODES 64
#define TIDE_STREAMS 20
#define TIDE_NAME_BYTES 32
#define TIDE_DEFINE_POOLS
#include <tide/pools.h>
