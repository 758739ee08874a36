/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the graph; tide/pools.h defines it. */
#ifndef TIDE_POOL_GRAPH_H
#define TIDE_POOL_GRAPH_H

#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

#define TIDE_GRAPH_NAME_BYTES 256

typedef struct tide_graph_pool {
  uint8_t *bytes;
  uint32_t capacity; /* 0: the program has none */
} tide_graph_pool_t;

extern const tide_graph_pool_t tide_graph_pool;

TIDE_EXTERN_C_END
#endif
