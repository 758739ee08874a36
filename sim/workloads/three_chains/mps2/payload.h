/* SPDX-License-Identifier: Apache-2.0 */
/* A sample whose bytes the program generates itself: the frame has exactly the size in the plan. It begins with chain
 * and number in binary. */
#ifndef TIDE_FIRMWARE_PAYLOAD_H
#define TIDE_FIRMWARE_PAYLOAD_H

#include <rosidl_runtime_c/message_type_support_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

typedef struct payload {
  uint8_t bytes[PLAN_PAYLOAD_BYTES];
  uint32_t count;
} payload_t;

extern const rosidl_message_type_support_t payload_type;

/* The constant parts of samples. */
void payload_prepare(payload_t *payload, uint32_t bytes);
void payload_mark(payload_t *payload, uint32_t chain, uint32_t number);
/* False: not a payload of this chain. */
bool payload_find(const payload_t *payload, uint32_t chain, uint32_t *number);

#endif
