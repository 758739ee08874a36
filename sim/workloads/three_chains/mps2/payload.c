/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include <string.h>

#include "tide/message.h"

#define LENGTH_BYTES 4u
#define DIGITS 5u
#define MARK_BYTES 6u

static void encode(tide_cdr_t *cdr, const void *message) {
  const payload_t *payload = message;
  tide_cdr_put_bytes(cdr, payload->bytes, payload->count);
}

static void decode(tide_cdr_t *cdr, void *message) {
  payload_t *payload = message;
  const size_t rest = tide_cdr_remaining(cdr);
  payload->count = (uint32_t)(rest < sizeof payload->bytes ? rest : sizeof payload->bytes);
  tide_cdr_get_bytes(cdr, payload->bytes, payload->count);
}

static const tide_message_type_t type = {.package = "std_msgs",
                                         .kind = "msg",
                                         .name = "String",
                                         .dds_name = "std_msgs::msg::dds_::String_",
                                         .structure_bytes = sizeof(payload_t),
                                         .encode = encode,
                                         .decode = decode};

const rosidl_message_type_support_t payload_type = {TIDE_TYPESUPPORT_IDENTIFIER, &type, NULL};

static void put(uint8_t *place, uint32_t value, unsigned octets) {
  for (unsigned octet = 0; octet < octets; octet++) place[octet] = (uint8_t)(value >> 8 * octet);
}

static uint32_t get(const uint8_t *place, unsigned octets) {
  uint32_t value = 0;
  for (unsigned octet = 0; octet < octets; octet++) value |= (uint32_t)place[octet] << 8 * octet;
  return value;
}

void payload_prepare(payload_t *payload, bool marks, uint32_t bytes) {
  memset(payload->bytes, '.', bytes);
  payload->count = bytes;
  if (marks) return;
  put(payload->bytes, bytes - LENGTH_BYTES, LENGTH_BYTES);
  payload->bytes[bytes - 1u] = '\0';
}

void payload_mark(payload_t *payload, bool marks, uint32_t chain, uint32_t number) {
  if (marks) {
    put(payload->bytes, chain, 2);
    put(payload->bytes + 2, number, 4);
    return;
  }
  for (uint32_t digit = DIGITS; digit-- > 0u; number /= 10u)
    payload->bytes[LENGTH_BYTES + digit] = (uint8_t)('0' + number % 10u);
}

bool payload_find(const payload_t *payload, bool marks, uint32_t chain, uint32_t *number) {
  *number = 0;
  if (marks) {
    if (payload->count < MARK_BYTES || get(payload->bytes, 2) != chain) return false;
    *number = get(payload->bytes + 2, 4);
    return true;
  }
  if (payload->count < LENGTH_BYTES + DIGITS) return false;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    const uint8_t character = payload->bytes[LENGTH_BYTES + digit];
    if (character < '0' || character > '9') return false;
    *number = *number * 10u + (character - (uint32_t)'0');
  }
  return true;
}
