/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanged messages: each contains its index and a pattern derived from it. */
#ifndef EXCHANGE_SAMPLE_H
#define EXCHANGE_SAMPLE_H

#include <rosidl_runtime_c/message_type_support_struct.h>
#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_KINDS 3
#define SAMPLE_IMAGE_SIDE 200 /* 40,000 pixels of one byte */

typedef struct sample_kind {
  const char *name; /* of its topics */
  uint8_t level;    /* level of its chain */
  void *outgoing, *incoming;
  const rosidl_message_type_support_t *(*type)(void);
  void (*bind)(void); /* gives both messages their memory */
  void (*fill)(uint32_t index);
  /* The index in the incoming message, or -1 if anything differs from the result of fill. */
  int64_t (*check)(void);
} sample_kind_t;

extern const sample_kind_t sample_kinds[SAMPLE_KINDS];

#endif
