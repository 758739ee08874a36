/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ring_buf {
  uint8_t *memory;
  uint32_t bytes, put, got; /* running numbers */
};

void ring_buf_init(struct ring_buf *ring, uint32_t bytes, uint8_t *memory);
bool ring_buf_is_empty(const struct ring_buf *ring);
uint32_t ring_buf_put_claim(struct ring_buf *ring, uint8_t **place, uint32_t bytes);
int ring_buf_put_finish(struct ring_buf *ring, uint32_t bytes);
uint32_t ring_buf_put(struct ring_buf *ring, const uint8_t *from, uint32_t bytes);
uint32_t ring_buf_get_claim(struct ring_buf *ring, uint8_t **place, uint32_t bytes);
int ring_buf_get_finish(struct ring_buf *ring, uint32_t bytes);
uint32_t ring_buf_get(struct ring_buf *ring, uint8_t *place, uint32_t bytes);

#ifdef __cplusplus
}
#endif
