/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that are exchanged. Each contains its index and a pattern that follows from the index. */
#pragma once

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
  void (*bind)(void); /* gives both messages their memory */
  void (*fill)(uint32_t index);
  /* Returns the index in the incoming message, or -1 if the message differs from what `fill` writes for this index. */
  int64_t (*check)(void);
} sample_kind_t;

extern const sample_kind_t sample_kinds[SAMPLE_KINDS];
