/* SPDX-License-Identifier: Apache-2.0 */
/* Headers and bodies without CREATE, which is in object.c. Field by field, so that layout never depends on how a
 * compiler lays out structures; the cursor carries errors. */
#include "tide/xrce.h"

#include "octets.h"
#include "tide/status.h"

enum { INFO_KIND_AGENT = 0x0D, COOKIE_BEGIN = 'X' << 8 | 'R', COOKIE_END = 'C' << 8 | 'E' };

size_t tide_xrce_put_header(uint8_t *bytes, const tide_xrce_header_t *header) {
  bytes[0] = header->session;
  bytes[1] = header->stream;
  bytes[2] = (uint8_t)header->sequence;
  bytes[3] = (uint8_t)(header->sequence >> 8);
  if (!tide_xrce_session_has_key(header->session)) return 4;
  bytes[4] = (uint8_t)(header->key >> 24);
  bytes[5] = (uint8_t)(header->key >> 16);
  bytes[6] = (uint8_t)(header->key >> 8);
  bytes[7] = (uint8_t)header->key;
  return 8;
}

int tide_xrce_get_header(const uint8_t *bytes, size_t length, tide_xrce_header_t *header) {
  if (length < 4 || length < tide_xrce_header_bytes(bytes[0])) return TIDE_ERROR_MALFORMED;
  header->session = bytes[0];
  header->stream = bytes[1];
  header->sequence = (uint16_t)(bytes[2] | bytes[3] << 8);
  header->key = 0;
  if (!tide_xrce_session_has_key(header->session)) return 4;
  header->key = (uint32_t)bytes[4] << 24 | (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
  return 8;
}

void tide_xrce_put_submessage_header(uint8_t bytes[4], uint8_t id, uint8_t flags, uint16_t length) {
  bytes[0] = id;
  bytes[1] = flags;
  bytes[2] = (uint8_t)length;
  bytes[3] = (uint8_t)(length >> 8);
}

int tide_xrce_next_submessage(const uint8_t *message, size_t length, size_t *position,
                              tide_xrce_submessage_t *submessage) {
  size_t at = (*position + 3u) & ~(size_t)3u;
  if (at >= length) return 0;
  if (length - at < TIDE_XRCE_SUBMESSAGE_HEADER_BYTES) return TIDE_ERROR_MALFORMED;
  const uint8_t *bytes = message + at;
  size_t room = length - at - TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  submessage->id = bytes[0];
  submessage->flags = bytes[1];
  submessage->length = (uint16_t)(bytes[2] | bytes[3] << 8);
  submessage->body = bytes + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  if (submessage->length > room) return TIDE_ERROR_MALFORMED;
  submessage->body_bytes = submessage->id == TIDE_XRCE_CREATE_CLIENT ? room : submessage->length;
  *position = at + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + submessage->body_bytes;
  return 1;
}

static void put_product(tide_cdr_t *cdr, uint8_t major, uint8_t minor, uint16_t vendor) {
  tide_octets_put_u16(cdr, COOKIE_BEGIN);
  tide_octets_put_u16(cdr, COOKIE_END);
  tide_cdr_put_u8(cdr, major);
  tide_cdr_put_u8(cdr, minor);
  tide_octets_put_u16(cdr, vendor);
}

/* Returns whether the cookie was right. */
static bool get_product(tide_cdr_t *cdr, uint8_t *major, uint8_t *minor, uint16_t *vendor) {
  const bool begins = tide_octets_get_u16(cdr) == COOKIE_BEGIN;
  const bool ends = tide_octets_get_u16(cdr) == COOKIE_END;
  *major = tide_cdr_get_u8(cdr);
  *minor = tide_cdr_get_u8(cdr);
  *vendor = tide_octets_get_u16(cdr);
  return begins && ends;
}

static void skip_properties(tide_cdr_t *cdr, uint32_t count) {
  size_t length;
  for (; count > 0 && cdr->status == TIDE_OK; --count) {
    (void)tide_cdr_get_string(cdr, &length);
    (void)tide_cdr_get_string(cdr, &length);
  }
}

void tide_xrce_put_create_client(tide_cdr_t *cdr, const tide_xrce_create_client_t *body) {
  put_product(cdr, body->version_major, body->version_minor, body->vendor);
  tide_octets_put_u16(cdr, (uint16_t)(body->key >> 16));
  tide_octets_put_u16(cdr, (uint16_t)body->key);
  tide_cdr_put_u8(cdr, body->session);
  tide_cdr_put_bool(cdr, body->property_count != 0);
  if (body->property_count != 0) {
    tide_cdr_put_u32(cdr, body->property_count);
    tide_cdr_put_bytes(cdr, body->properties, body->properties_bytes);
  }
  tide_cdr_put_u16(cdr, body->mtu);
}

void tide_xrce_get_create_client(tide_cdr_t *cdr, tide_xrce_create_client_t *body) {
  *body = (tide_xrce_create_client_t){0};
  body->cookie_valid = get_product(cdr, &body->version_major, &body->version_minor, &body->vendor);
  body->key = (uint32_t)tide_octets_get_u16(cdr) << 16;
  body->key |= tide_octets_get_u16(cdr);
  body->session = tide_cdr_get_u8(cdr);
  if (tide_cdr_get_bool(cdr)) {
    body->property_count = tide_cdr_get_count(cdr, 8);
    size_t begin = cdr->position;
    body->properties = tide_cdr_view(cdr, 0);
    skip_properties(cdr, body->property_count);
    body->properties_bytes = cdr->position - begin;
  }
  body->mtu = tide_cdr_get_u16(cdr);
}

void tide_xrce_put_status_agent(tide_cdr_t *cdr, const tide_xrce_status_agent_t *body) {
  tide_cdr_put_u8(cdr, body->status);
  tide_cdr_put_u8(cdr, body->implementation_status);
  put_product(cdr, body->version_major, body->version_minor, body->vendor);
  tide_cdr_put_bool(cdr, false); /* properties */
}

void tide_xrce_get_status_agent(tide_cdr_t *cdr, tide_xrce_status_agent_t *body) {
  body->status = tide_cdr_get_u8(cdr);
  body->implementation_status = tide_cdr_get_u8(cdr);
  body->cookie_valid = get_product(cdr, &body->version_major, &body->version_minor, &body->vendor);
} /* properties may follow */

void tide_xrce_put_request(tide_cdr_t *cdr, tide_xrce_request_t body) {
  tide_octets_put_u16(cdr, body.request);
  tide_octets_put_u16(cdr, body.object);
}

tide_xrce_request_t tide_xrce_get_request(tide_cdr_t *cdr) {
  tide_xrce_request_t body;
  body.request = tide_octets_get_u16(cdr);
  body.object = tide_octets_get_u16(cdr);
  return body;
}

void tide_xrce_put_status(tide_cdr_t *cdr, const tide_xrce_status_body_t *body) {
  tide_xrce_put_request(cdr, body->related);
  tide_cdr_put_u8(cdr, body->status);
  tide_cdr_put_u8(cdr, body->implementation_status);
}

void tide_xrce_get_status(tide_cdr_t *cdr, tide_xrce_status_body_t *body) {
  body->related = tide_xrce_get_request(cdr);
  body->status = tide_cdr_get_u8(cdr);
  body->implementation_status = tide_cdr_get_u8(cdr);
}

void tide_xrce_put_acknack(tide_cdr_t *cdr, const tide_xrce_acknack_t *body) {
  tide_cdr_put_u16(cdr, body->first_unacknowledged);
  tide_octets_put_u16(cdr, body->missing);
  tide_cdr_put_u8(cdr, body->stream);
}

void tide_xrce_get_acknack(tide_cdr_t *cdr, tide_xrce_acknack_t *body) {
  body->first_unacknowledged = tide_cdr_get_u16(cdr);
  body->missing = tide_octets_get_u16(cdr);
  body->stream = tide_cdr_get_u8(cdr);
}

void tide_xrce_put_heartbeat(tide_cdr_t *cdr, const tide_xrce_heartbeat_t *body) {
  tide_cdr_put_u16(cdr, body->first_unacknowledged);
  tide_cdr_put_u16(cdr, body->last);
  tide_cdr_put_u8(cdr, body->stream);
}

void tide_xrce_get_heartbeat(tide_cdr_t *cdr, tide_xrce_heartbeat_t *body) {
  body->first_unacknowledged = tide_cdr_get_u16(cdr);
  body->last = tide_cdr_get_u16(cdr);
  body->stream = tide_cdr_get_u8(cdr);
}

void tide_xrce_put_get_info(tide_cdr_t *cdr, const tide_xrce_get_info_body_t *body) {
  tide_xrce_put_request(cdr, body->request);
  tide_cdr_put_u32(cdr, body->mask);
}

void tide_xrce_get_get_info(tide_cdr_t *cdr, tide_xrce_get_info_body_t *body) {
  body->request = tide_xrce_get_request(cdr);
  body->mask = tide_cdr_get_u32(cdr);
}

void tide_xrce_put_info(tide_cdr_t *cdr, const tide_xrce_info_t *body) {
  tide_xrce_put_request(cdr, body->related);
  tide_cdr_put_u8(cdr, body->status);
  tide_cdr_put_u8(cdr, body->implementation_status);
  tide_cdr_put_bool(cdr, true); /* configuration */
  tide_cdr_put_u8(cdr, INFO_KIND_AGENT);
  put_product(cdr, body->version_major, body->version_minor, body->vendor);
  tide_cdr_put_bool(cdr, false); /* properties */
  tide_cdr_put_bool(cdr, true);  /* activity */
  tide_cdr_put_u8(cdr, INFO_KIND_AGENT);
  tide_cdr_put_u16(cdr, 1); /* availability */
  tide_cdr_put_u32(cdr, 0); /* addresses */
}

void tide_xrce_get_info(tide_cdr_t *cdr, tide_xrce_info_t *body) {
  *body = (tide_xrce_info_t){0};
  body->related = tide_xrce_get_request(cdr);
  body->status = tide_cdr_get_u8(cdr);
  body->implementation_status = tide_cdr_get_u8(cdr);
  if (tide_cdr_remaining(cdr) == 0 || !tide_cdr_get_bool(cdr)) return;
  if (tide_cdr_get_u8(cdr) != INFO_KIND_AGENT) return;
  if (!get_product(cdr, &body->version_major, &body->version_minor, &body->vendor)) tide_octets_malformed(cdr);
}

void tide_xrce_put_timestamp(tide_cdr_t *cdr, tide_xrce_time_t body) {
  tide_cdr_put_u32(cdr, (uint32_t)body.seconds);
  tide_cdr_put_u32(cdr, body.nanoseconds);
}

tide_xrce_time_t tide_xrce_get_timestamp(tide_cdr_t *cdr) {
  tide_xrce_time_t body;
  body.seconds = (int32_t)tide_cdr_get_u32(cdr);
  body.nanoseconds = tide_cdr_get_u32(cdr);
  return body;
}

void tide_xrce_put_timestamp_reply(tide_cdr_t *cdr, const tide_xrce_timestamp_reply_t *body) {
  tide_xrce_put_timestamp(cdr, body->transmit);
  tide_xrce_put_timestamp(cdr, body->receive);
  tide_xrce_put_timestamp(cdr, body->originate);
}

void tide_xrce_get_timestamp_reply(tide_cdr_t *cdr, tide_xrce_timestamp_reply_t *body) {
  body->transmit = tide_xrce_get_timestamp(cdr);
  body->receive = tide_xrce_get_timestamp(cdr);
  body->originate = tide_xrce_get_timestamp(cdr);
}

tide_xrce_time_t tide_xrce_time_from_ns(int64_t ns) {
  int64_t seconds = ns / 1000000000;
  int32_t rest = (int32_t)(ns - seconds * 1000000000);
  if (rest < 0) {
    rest += 1000000000;
    seconds -= 1;
  }
  return (tide_xrce_time_t){.seconds = (int32_t)seconds, .nanoseconds = (uint32_t)rest};
}

int64_t tide_xrce_time_to_ns(tide_xrce_time_t time) { return (int64_t)time.seconds * 1000000000 + time.nanoseconds; }

void tide_xrce_put_read_data(tide_cdr_t *cdr, const tide_xrce_read_data_t *body) {
  tide_xrce_put_request(cdr, body->request);
  tide_cdr_put_u8(cdr, body->stream);
  tide_cdr_put_u8(cdr, body->format);
  tide_cdr_put_bool(cdr, body->filter != NULL);
  if (body->filter != NULL) tide_cdr_put_string(cdr, body->filter, body->filter_length);
  tide_cdr_put_bool(cdr, body->has_delivery_control);
  if (!body->has_delivery_control) return;
  tide_cdr_put_u16(cdr, body->max_samples);
  tide_cdr_put_u16(cdr, body->max_elapsed_time_s);
  tide_cdr_put_u16(cdr, body->max_bytes_per_second);
  tide_cdr_put_u16(cdr, body->min_pace_period_ms);
}

void tide_xrce_get_read_data(tide_cdr_t *cdr, tide_xrce_read_data_t *body) {
  *body = (tide_xrce_read_data_t){0};
  body->request = tide_xrce_get_request(cdr);
  body->stream = tide_cdr_get_u8(cdr);
  body->format = tide_cdr_get_u8(cdr);
  if (tide_cdr_get_bool(cdr)) body->filter = tide_cdr_get_string(cdr, &body->filter_length);
  body->has_delivery_control = tide_cdr_get_bool(cdr);
  if (!body->has_delivery_control) return;
  body->max_samples = tide_cdr_get_u16(cdr);
  body->max_elapsed_time_s = tide_cdr_get_u16(cdr);
  body->max_bytes_per_second = tide_cdr_get_u16(cdr);
  body->min_pace_period_ms = tide_cdr_get_u16(cdr);
}
