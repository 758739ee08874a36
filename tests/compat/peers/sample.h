/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanged messages: each contains its index, and a pattern derived from the index. */
#ifndef EXCHANGE_SAMPLE_H
#define EXCHANGE_SAMPLE_H

#include <rosidl_runtime_c/message_type_support_struct.h>
#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_KINDS 3
#define SAMPLE_IMAGE_SIDE 200 /* 40,000 pixels of one byte each */

typedef struct sample_kind {
  const char *name; /* name of its topics */
  uint8_t level;    /* level of its chain */
  void *outgoing, *incoming;
  const rosidl_message_type_support_t *(*type)(void);
  void (*bind)(void); /* provides the memory of both messages */
  void (*fill)(uint32_t index);
  /* Returns the index in the incoming message, or -1 if anything in the message differs from what `fill` would
   * write. */
  int64_t (*check)(void);
} sample_kind_t;

extern const sample_kind_t sample_kinds[SAMPLE_KINDS];

#endif
