/* SPDX-License-Identifier: Apache-2.0 */
/* The number of a chain's instance in a serialised message of any type. */
#ifndef THREE_CHAINS_NUMBER_H
#define THREE_CHAINS_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum number_kind {
  NUMBER_NONE,
  NUMBER_BOOL,
  NUMBER_U8,
  NUMBER_U16,
  NUMBER_U32,
  NUMBER_U64,
  NUMBER_F32,
  NUMBER_F64,
  NUMBER_DIGITS,
  NUMBER_COUNT /* in no message: that of its place among all */
} number_kind_t;

typedef struct number_place {
  number_kind_t kind;
  size_t offset;
} number_place_t;

#define NUMBER_KINDS "none, bool, u8, u16, u32, u64, f32, f64, digits, count"

/* False for a word that is none of NUMBER_KINDS. */
bool number_kind(const char *word, number_kind_t *kind);
/* Bytes that the number takes. */
size_t number_bytes(number_kind_t kind);
/* Where the number wraps around: 1 for none. */
int64_t number_modulus(number_kind_t kind);
/* The place must lie within the message. */
void number_write(uint8_t *message, number_place_t place, uint32_t index);
/* -1: the message is too short, or there is no number. */
int64_t number_read(const uint8_t *message, size_t bytes, number_place_t place);
/* The latest instance up to `latest` whose number reads like this; negative: there is none. */
int64_t number_instance(int64_t read, number_place_t place, int64_t latest);

#endif
