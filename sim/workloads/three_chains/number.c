/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <string.h>

enum { DIGITS = 5 };

static const struct {
  const char *word;
  size_t bytes;
  int64_t modulus;
} kinds[] = {
    [NUMBER_NONE] = {"none", 0, 1},
    [NUMBER_BOOL] = {"bool", 1, 2},
    [NUMBER_U8] = {"u8", 1, 1 << 7}, /* so that it fits a signed one, too */
    [NUMBER_U16] = {"u16", 2, 1 << 15},
    [NUMBER_U32] = {"u32", 4, INT64_C(1) << 31},
    [NUMBER_U64] = {"u64", 8, INT64_C(1) << 31},
    [NUMBER_F32] = {"f32", 4, 1 << 24},
    [NUMBER_F64] = {"f64", 8, INT64_C(1) << 31},
    [NUMBER_DIGITS] = {"digits", DIGITS, 100000},
    [NUMBER_COUNT] = {"count", 0, 1},
};

bool number_kind(const char *word, number_kind_t *kind) {
  for (size_t index = 0; index < sizeof kinds / sizeof *kinds; index++) {
    if (strcmp(word, kinds[index].word) != 0) continue;
    *kind = (number_kind_t)index;
    return true;
  }
  return false;
}

size_t number_bytes(number_kind_t kind) { return kinds[kind].bytes; }

int64_t number_modulus(number_kind_t kind) { return kinds[kind].modulus; }

static void write_digits(uint8_t *characters, uint32_t number) {
  for (int digit = DIGITS - 1; digit >= 0; digit--, number /= 10) characters[digit] = (uint8_t)('0' + number % 10);
}

void number_write(uint8_t *message, number_place_t place, uint32_t index) {
  const uint32_t number = (uint32_t)(index % kinds[place.kind].modulus);
  const uint64_t wide = number;
  const float f32 = (float)number;
  const double f64 = (double)number;
  uint8_t *at = message + place.offset;
  if (place.kind == NUMBER_DIGITS) {
    write_digits(at, number);
  } else if (place.kind == NUMBER_F32) {
    memcpy(at, &f32, sizeof f32);
  } else if (place.kind == NUMBER_F64) {
    memcpy(at, &f64, sizeof f64);
  } else {
    for (size_t byte = 0; byte < kinds[place.kind].bytes; byte++) at[byte] = (uint8_t)(wide >> 8 * byte);
  }
}

static int64_t read_digits(const uint8_t *characters) {
  int64_t number = 0;
  for (int digit = 0; digit < DIGITS; digit++) {
    if (characters[digit] < '0' || characters[digit] > '9') return -1;
    number = number * 10 + (characters[digit] - '0');
  }
  return number;
}

static int64_t read_float(const uint8_t *at, number_kind_t kind) {
  float f32 = 0;
  double f64 = 0;
  if (kind == NUMBER_F32) {
    memcpy(&f32, at, sizeof f32);
    f64 = (double)f32;
  } else {
    memcpy(&f64, at, sizeof f64);
  }
  return f64 >= 0 && f64 < (double)kinds[kind].modulus ? (int64_t)f64 : -1;
}

int64_t number_read(const uint8_t *message, size_t bytes, number_place_t place) {
  if (kinds[place.kind].bytes == 0) return 0;
  if (bytes < place.offset + kinds[place.kind].bytes) return -1;
  const uint8_t *at = message + place.offset;
  if (place.kind == NUMBER_DIGITS) return read_digits(at);
  if (place.kind == NUMBER_F32 || place.kind == NUMBER_F64) return read_float(at, place.kind);
  uint64_t number = 0;
  for (size_t byte = 0; byte < kinds[place.kind].bytes; byte++) number |= (uint64_t)at[byte] << 8 * byte;
  return number < (uint64_t)kinds[place.kind].modulus ? (int64_t)number : -1;
}

int64_t number_instance(int64_t read, number_place_t place, int64_t latest) {
  if (read < 0 || latest < 0) return -1;
  const int64_t modulus = kinds[place.kind].modulus;
  const int64_t behind = ((latest - read) % modulus + modulus) % modulus;
  return latest - behind;
}
