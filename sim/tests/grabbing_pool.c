/* SPDX-License-Identifier: Apache-2.0 */
/* The transmitter's pool for the canary GRABBING: no level is remembered, so that whoever comes first takes what is
 * kept for others. */
#define tide_transmitter_acquire_for careful_acquire
#include "../../runtime/src/daemon/transmitter_pool.c"
#undef tide_transmitter_acquire_for

int tide_transmitter_acquire_for(tide_transmitter_t *t, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                                 tide_node_t **node) {
  memset(t->levels, 0, sizeof t->levels);
  const int status = careful_acquire(t, bytes, priority, writer, node);
  memset(t->levels, 0, sizeof t->levels);
  return status;
}
