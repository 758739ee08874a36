/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include <string.h>

#include "tide/message.h"

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

void payload_prepare(payload_t *payload, uint32_t bytes) {
  memset(payload->bytes, '.', bytes);
  payload->count = bytes;
}

void payload_mark(payload_t *payload, uint32_t chain, uint32_t number) {
  put(payload->bytes, chain, 2);
  put(payload->bytes + 2, number, 4);
}

bool payload_find(const payload_t *payload, uint32_t chain, uint32_t *number) {
  if (payload->count < MARK_BYTES || get(payload->bytes, 2) != chain) return false;
  *number = get(payload->bytes + 2, 4);
  return true;
}
