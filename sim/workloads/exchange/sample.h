/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that are exchanged: each says its index and is filled with a pattern that follows from it. */
#ifndef EXCHANGE_SAMPLE_H
#define EXCHANGE_SAMPLE_H

#include <rosidl_runtime_c/message_type_support_struct.h>
#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_KINDS 3
#define SAMPLE_IMAGE_SIDE 200 /* pixels of one byte: 40,000 of them */

typedef struct sample_kind {
  const char *name; /* of its topics */
  uint8_t level;    /* of its chain: how urgent */
  void *outgoing, *incoming;
  const rosidl_message_type_support_t *(*type)(void);
  void (*bind)(void); /* gives both messages their memory */
  void (*fill)(uint32_t index);
  /* The index that the incoming message says, or -1 when anything in it is not as fill makes it. */
  int64_t (*check)(void);
} sample_kind_t;

extern const sample_kind_t sample_kinds[SAMPLE_KINDS];

#endif
