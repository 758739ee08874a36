/* SPDX-License-Identifier: Apache-2.0 */
/* Headers and bodies of DDS-XRCE. They are encoded field by field, so that the layout does not depend on the compiler;
 * the cursor records errors. */
#include "tide/xrce.h"

#include "tide/cdr.h"
#include "tide/options.h"
#include "tide/status.h"

enum { COOKIE_BEGIN = 'X' << 8 | 'R', COOKIE_END = 'C' << 8 | 'E', KIND_AGENT = 0x0D };

/* Fields sent as octets, whatever the body's byte order: ids with the high octet first, version and vendor. */
static void octets_put_u16(tide_cdr_t *cdr, uint16_t value) {
  const uint8_t octets[2] = {(uint8_t)(value >> 8), (uint8_t)value};
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
}

static uint16_t octets_get_u16(tide_cdr_t *cdr) {
  uint8_t octets[2] = {0, 0};
  tide_cdr_get_bytes(cdr, octets, sizeof octets);
  return (uint16_t)(octets[0] << 8 | octets[1]);
}

static void malformed(tide_cdr_t *cdr) {
  if (cdr->status == TIDE_OK) cdr->status = TIDE_ERROR_MALFORMED;
}

/* ---- headers ---- */

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

/* ---- bodies of all submessages but CREATE ---- */

static void put_product(tide_cdr_t *cdr, uint8_t major, uint8_t minor, uint16_t vendor) {
  octets_put_u16(cdr, COOKIE_BEGIN);
  octets_put_u16(cdr, COOKIE_END);
  tide_cdr_put_u8(cdr, major);
  tide_cdr_put_u8(cdr, minor);
  octets_put_u16(cdr, vendor);
}

/* Returns true if the cookie was right. */
static bool get_product(tide_cdr_t *cdr, uint8_t *major, uint8_t *minor, uint16_t *vendor) {
  const bool begins = octets_get_u16(cdr) == COOKIE_BEGIN;
  const bool ends = octets_get_u16(cdr) == COOKIE_END;
  *major = tide_cdr_get_u8(cdr);
  *minor = tide_cdr_get_u8(cdr);
  *vendor = octets_get_u16(cdr);
  return begins && ends;
}

/* Skips the properties, two strings each, and returns their number. */
static uint32_t skip_properties(tide_cdr_t *cdr) {
  size_t length;
  const uint32_t count = tide_cdr_get_count(cdr, 2u * sizeof(uint32_t));
  for (uint32_t left = count; left > 0 && cdr->status == TIDE_OK; --left) {
    (void)tide_cdr_get_string(cdr, &length);
    (void)tide_cdr_get_string(cdr, &length);
  }
  return count;
}

void tide_xrce_put_create_client(tide_cdr_t *cdr, const tide_xrce_create_client_t *body) {
  put_product(cdr, body->version_major, body->version_minor, body->vendor);
  octets_put_u16(cdr, (uint16_t)(body->key >> 16));
  octets_put_u16(cdr, (uint16_t)body->key);
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
  body->key = (uint32_t)octets_get_u16(cdr) << 16;
  body->key |= octets_get_u16(cdr);
  body->session = tide_cdr_get_u8(cdr);
  if (tide_cdr_get_bool(cdr)) {
    tide_cdr_t count = *cdr; /* the properties follow it */
    (void)tide_cdr_get_u32(&count);
    body->properties = tide_cdr_view(&count, 0);
    body->property_count = skip_properties(cdr);
    body->properties_bytes = cdr->position - count.position;
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
  uint8_t octets[TIDE_XRCE_REQUEST_BYTES];
  tide_xrce_write_request(octets, body);
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
}

tide_xrce_request_t tide_xrce_get_request(tide_cdr_t *cdr) {
  const uint8_t *octets = tide_cdr_view(cdr, TIDE_XRCE_REQUEST_BYTES);
  return octets == NULL ? (tide_xrce_request_t){0, 0} : tide_xrce_read_request(octets);
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

/* ACKNACK and HEARTBEAT are the most frequent bodies. Each has five octets, so they are moved in one piece. */
enum { ANSWER_BYTES = 5 };

static uint16_t read_u16(const tide_cdr_t *cdr, const uint8_t *octets) {
  return (uint16_t)(cdr->big_endian ? octets[0] << 8 | octets[1] : octets[1] << 8 | octets[0]);
}

static void write_u16(const tide_cdr_t *cdr, uint8_t *octets, uint16_t value) {
  octets[cdr->big_endian ? 0 : 1] = (uint8_t)(value >> 8);
  octets[cdr->big_endian ? 1 : 0] = (uint8_t)value;
}

void tide_xrce_put_acknack(tide_cdr_t *cdr, const tide_xrce_acknack_t *body) {
  uint8_t octets[ANSWER_BYTES] = {0, 0, (uint8_t)(body->missing >> 8), (uint8_t)body->missing, body->stream};
  write_u16(cdr, octets, body->first_unacknowledged);
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
}

void tide_xrce_get_acknack(tide_cdr_t *cdr, tide_xrce_acknack_t *body) {
  const uint8_t *octets = tide_cdr_view(cdr, ANSWER_BYTES);
  *body = (tide_xrce_acknack_t){0};
  if (octets == NULL) return;
  body->first_unacknowledged = read_u16(cdr, octets);
  body->missing = (uint16_t)(octets[2] << 8 | octets[3]);
  body->stream = octets[4];
}

void tide_xrce_put_heartbeat(tide_cdr_t *cdr, const tide_xrce_heartbeat_t *body) {
  uint8_t octets[ANSWER_BYTES] = {0, 0, 0, 0, body->stream};
  write_u16(cdr, octets, body->first_unacknowledged);
  write_u16(cdr, octets + 2, body->last);
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
}

void tide_xrce_get_heartbeat(tide_cdr_t *cdr, tide_xrce_heartbeat_t *body) {
  const uint8_t *octets = tide_cdr_view(cdr, ANSWER_BYTES);
  *body = (tide_xrce_heartbeat_t){0};
  if (octets == NULL) return;
  body->first_unacknowledged = read_u16(cdr, octets);
  body->last = read_u16(cdr, octets + 2);
  body->stream = octets[4];
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
  tide_cdr_put_u8(cdr, KIND_AGENT);
  put_product(cdr, body->version_major, body->version_minor, body->vendor);
  tide_cdr_put_bool(cdr, false); /* properties */
  tide_cdr_put_bool(cdr, true);  /* activity */
  tide_cdr_put_u8(cdr, KIND_AGENT);
  tide_cdr_put_u16(cdr, 1); /* availability */
  tide_cdr_put_u32(cdr, 0); /* addresses */
}

void tide_xrce_get_info(tide_cdr_t *cdr, tide_xrce_info_t *body) {
  *body = (tide_xrce_info_t){0};
  body->related = tide_xrce_get_request(cdr);
  body->status = tide_cdr_get_u8(cdr);
  body->implementation_status = tide_cdr_get_u8(cdr);
  if (tide_cdr_remaining(cdr) == 0 || !tide_cdr_get_bool(cdr)) return;
  if (tide_cdr_get_u8(cdr) != KIND_AGENT) return;
  if (!get_product(cdr, &body->version_major, &body->version_minor, &body->vendor)) malformed(cdr);
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

/* ---- the body of CREATE ----
 *
 * A binary representation is a block of octets inside the body: it is aligned from its own first octet, with its size
 * in front. */

static void put_text(tide_cdr_t *cdr, tide_text_t text) { tide_cdr_put_string(cdr, text.characters, text.length); }

static void get_text(tide_cdr_t *cdr, tide_text_t *text) { text->characters = tide_cdr_get_string(cdr, &text->length); }

static void put_optional_text(tide_cdr_t *cdr, bool present, tide_text_t text) {
  tide_cdr_put_bool(cdr, present);
  if (present) put_text(cdr, text);
}

static bool get_optional_text(tide_cdr_t *cdr, tide_text_t *text) {
  bool present = tide_cdr_get_bool(cdr);
  if (present) get_text(cdr, text);
  return present;
}

static void put_optional_u32(tide_cdr_t *cdr, bool present, uint32_t value) {
  tide_cdr_put_bool(cdr, present);
  if (present) tide_cdr_put_u32(cdr, value);
}

static bool get_optional_u32(tide_cdr_t *cdr, uint32_t *value) {
  bool present = tide_cdr_get_bool(cdr);
  if (present) *value = tide_cdr_get_u32(cdr);
  return present;
}

static bool is_known_kind(uint8_t kind) { return kind >= TIDE_XRCE_KIND_PARTICIPANT && kind <= TIDE_XRCE_KIND_REPLIER; }

/* ---- the block of each kind ---- */

static void put_endpoint(tide_cdr_t *cdr, const tide_xrce_object_t *object) {
  octets_put_u16(cdr, object->topic);
  tide_cdr_put_bool(cdr, object->has_qos);
  if (!object->has_qos) return;
  tide_cdr_put_u16(cdr, object->qos_flags);
  tide_cdr_put_bool(cdr, object->has_depth);
  if (object->has_depth) tide_cdr_put_u16(cdr, object->depth);
  put_optional_u32(cdr, object->has_deadline, object->deadline_ms);
  put_optional_u32(cdr, object->has_lifespan, object->lifespan_ms);
  tide_cdr_put_bool(cdr, false); /* user data */
  tide_cdr_put_bool(cdr, false); /* writer: ownership strength; reader: time-based filter */
  if (object->kind == TIDE_XRCE_KIND_DATAREADER) tide_cdr_put_bool(cdr, false); /* the content filter */
}

/* Fields after the lifespan are ignored, because the block's end skips them. */
static void get_endpoint(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  object->topic = octets_get_u16(cdr);
  object->has_qos = tide_cdr_get_bool(cdr);
  if (!object->has_qos) return;
  object->qos_flags = tide_cdr_get_u16(cdr);
  object->has_depth = tide_cdr_get_bool(cdr);
  if (object->has_depth) object->depth = tide_cdr_get_u16(cdr);
  object->has_deadline = get_optional_u32(cdr, &object->deadline_ms);
  object->has_lifespan = get_optional_u32(cdr, &object->lifespan_ms);
}

static void put_service(tide_cdr_t *cdr, const tide_xrce_object_t *object) {
  put_text(cdr, object->name);
  put_text(cdr, object->request_type);
  put_text(cdr, object->reply_type);
  put_optional_text(cdr, object->has_request_topic, object->request_topic);
  put_optional_text(cdr, object->has_reply_topic, object->reply_topic);
}

static void get_service(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  get_text(cdr, &object->name);
  get_text(cdr, &object->request_type);
  get_text(cdr, &object->reply_type);
  object->has_request_topic = get_optional_text(cdr, &object->request_topic);
  object->has_reply_topic = get_optional_text(cdr, &object->reply_topic);
}

static void put_block(tide_cdr_t *cdr, const tide_xrce_object_t *object) {
  switch (object->kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      tide_cdr_put_bool(cdr, false); /* reference to a domain */
      put_optional_text(cdr, object->has_name, object->name);
      break;
    case TIDE_XRCE_KIND_TOPIC:
      put_text(cdr, object->name);
      tide_cdr_put_bool(cdr, false); /* reference to a type */
      put_optional_text(cdr, true, object->type);
      break;
    case TIDE_XRCE_KIND_PUBLISHER:
    case TIDE_XRCE_KIND_SUBSCRIBER:
      put_optional_text(cdr, object->has_name, object->name);
      tide_cdr_put_bool(cdr, false); /* partitions and group data */
      break;
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER: put_endpoint(cdr, object); break;
    default: put_service(cdr, object); break;
  }
}

static void get_topic(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  get_text(cdr, &object->name);
  bool has_reference = get_optional_text(cdr, &object->type);
  bool has_name = get_optional_text(cdr, &object->type);
  if (!has_reference && !has_name) malformed(cdr);
}

static void get_block(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  tide_text_t ignored;
  switch (object->kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      (void)get_optional_text(cdr, &ignored);
      object->has_name = get_optional_text(cdr, &object->name);
      break;
    case TIDE_XRCE_KIND_TOPIC: get_topic(cdr, object); break;
    case TIDE_XRCE_KIND_PUBLISHER:
    case TIDE_XRCE_KIND_SUBSCRIBER:
      object->has_name = get_optional_text(cdr, &object->name);
      (void)tide_cdr_get_bool(cdr);
      break;
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER: get_endpoint(cdr, object); break;
    default: get_service(cdr, object); break;
  }
}

/* ---- the three representations ---- */

static void put_binary(tide_cdr_t *cdr, const tide_xrce_object_t *object) {
  tide_cdr_align(cdr, 4);
  tide_cdr_t size = *cdr; /* the size is written here afterwards */
  tide_cdr_put_u32(cdr, 0);
  size_t begin = cdr->position;
  put_block(cdr, object); /* the block starts at a multiple of 4 and holds nothing wider, so it needs no alignment
                             origin of its own */
  if (cdr->status == TIDE_OK) tide_cdr_put_u32(&size, (uint32_t)(cdr->position - begin));
}

static void get_binary(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  size_t size = tide_cdr_get_u32(cdr);
  const uint8_t *bytes = tide_cdr_view(cdr, size);
  if (bytes == NULL) return;
  tide_cdr_t block;
  tide_cdr_reader(&block, bytes, size, cdr->big_endian);
  get_block(&block, object);
  if (block.status != TIDE_OK) malformed(cdr);
}

void tide_xrce_put_create(tide_cdr_t *cdr, const tide_xrce_create_t *body) {
  tide_xrce_put_creation(cdr, body->request, &body->object);
}

void tide_xrce_put_creation(tide_cdr_t *cdr, tide_xrce_request_t request, const tide_xrce_object_t *object) {
  if (!is_known_kind(object->kind) && cdr->status == TIDE_OK) cdr->status = TIDE_ERROR_ARGUMENT;
  tide_xrce_put_request(cdr, request);
  tide_cdr_put_u8(cdr, object->kind);
  tide_cdr_put_u8(cdr, object->representation);
  if (object->representation == TIDE_XRCE_BY_BINARY) {
    put_binary(cdr, object);
  } else {
    put_text(cdr, object->text);
  }
  if (object->kind == TIDE_XRCE_KIND_PARTICIPANT) {
    tide_cdr_put_u16(cdr, (uint16_t)object->domain);
  } else {
    octets_put_u16(cdr, object->parent);
  }
}

void tide_xrce_get_create(tide_cdr_t *cdr, tide_xrce_create_t *body) {
  tide_xrce_object_t *object = &body->object;
  *body = (tide_xrce_create_t){.request = tide_xrce_get_request(cdr)};
  object->kind = tide_cdr_get_u8(cdr);
  object->representation = tide_cdr_get_u8(cdr);
  bool is_text = object->representation == TIDE_XRCE_BY_REFERENCE || object->representation == TIDE_XRCE_BY_XML;
  bool is_binary = object->representation == TIDE_XRCE_BY_BINARY;
  if (!is_known_kind(object->kind) || (!is_text && !is_binary)) {
    malformed(cdr);
  } else if (is_text) {
    get_text(cdr, &object->text);
  } else {
    get_binary(cdr, object);
  }
  if (object->kind == TIDE_XRCE_KIND_PARTICIPANT) {
    object->domain = (int16_t)tide_cdr_get_u16(cdr);
  } else {
    object->parent = octets_get_u16(cdr);
  }
}

/* ---- discovery: how a client finds agents, by messages outside of any session ---- */

#define DISCOVERY_REQUEST 9u /* values of the stock client */
#define INFO_CONFIGURATION 1u
#define INFO_ACTIVITY 2u
#define VERSION_MAJOR 1u

enum { LOCATOR_SMALL, LOCATOR_MEDIUM, LOCATOR_LARGE, LOCATOR_TEXT };

static const tide_xrce_header_t no_session = {TIDE_XRCE_SESSION_NONE_WITHOUT_KEY, TIDE_XRCE_STREAM_NONE, 0, 0};

/* Writes the header in front of a body that is already in place. */
static size_t finish(uint8_t *bytes, uint8_t id, const tide_cdr_t *body) {
  const size_t header = tide_xrce_put_header(bytes, &no_session);
  tide_xrce_put_submessage_header(bytes + header, id, TIDE_XRCE_FLAG_LITTLE_ENDIAN, (uint16_t)body->position);
  return header + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES + body->position;
}

static void begin(tide_cdr_t *cdr, uint8_t *bytes, size_t room) {
  const size_t before = tide_xrce_header_bytes(no_session.session) + TIDE_XRCE_SUBMESSAGE_HEADER_BYTES;
  tide_cdr_writer(cdr, bytes + before, room - before);
}

size_t tide_xrce_put_discovery_question(uint8_t *bytes) {
  const tide_xrce_get_info_body_t body = {{DISCOVERY_REQUEST, TIDE_XRCE_OBJECT_AGENT},
                                          INFO_CONFIGURATION | INFO_ACTIVITY};
  tide_cdr_t cdr;
  begin(&cdr, bytes, TIDE_XRCE_DISCOVERY_QUESTION_BYTES);
  tide_xrce_put_get_info(&cdr, &body);
  return finish(bytes, TIDE_XRCE_GET_INFO, &cdr);
}

size_t tide_xrce_put_discovery_answer(uint8_t *bytes, const tide_xrce_info_t *info, tide_xrce_locator_t locator) {
  tide_cdr_t cdr;
  begin(&cdr, bytes, TIDE_XRCE_DISCOVERY_ANSWER_BYTES);
  tide_xrce_put_info(&cdr, info);
  cdr.position -= sizeof(uint32_t); /* overwrites the number of addresses, which was written as 0 */
  tide_cdr_put_u32(&cdr, 1);
  tide_cdr_put_u8(&cdr, LOCATOR_MEDIUM);
  tide_cdr_put_bytes(&cdr, locator.address, sizeof locator.address);
  tide_cdr_put_u16(&cdr, locator.port);
  return finish(bytes, TIDE_XRCE_INFO, &cdr);
}

/* Opens the body of a message's first submessage, if that submessage has the wanted id. */
static bool open_body(tide_cdr_t *cdr, const uint8_t *bytes, size_t length, uint8_t id) {
  tide_xrce_header_t header;
  tide_xrce_submessage_t submessage;
  const int header_bytes = tide_xrce_get_header(bytes, length, &header);
  if (header_bytes < 0) return false;
  size_t position = (size_t)header_bytes;
  if (tide_xrce_next_submessage(bytes, length, &position, &submessage) != 1 || submessage.id != id) return false;
  const bool big_endian = (submessage.flags & TIDE_XRCE_FLAG_LITTLE_ENDIAN) == 0;
  tide_cdr_reader(cdr, submessage.body, submessage.body_bytes, big_endian);
  return true;
}

bool tide_xrce_get_discovery_question(const uint8_t *bytes, size_t length, tide_xrce_request_t *request) {
  tide_cdr_t cdr;
  tide_xrce_get_info_body_t body;
  if (!open_body(&cdr, bytes, length, TIDE_XRCE_GET_INFO)) return false;
  tide_xrce_get_get_info(&cdr, &body);
  *request = body.request;
  return cdr.status == TIDE_OK && body.request.object == TIDE_XRCE_OBJECT_AGENT && (body.mask & INFO_ACTIVITY) != 0;
}

static bool skip_configuration(tide_cdr_t *cdr) {
  uint8_t product[8]; /* cookie, version, vendor */
  if (tide_cdr_get_u8(cdr) != KIND_AGENT) return false;
  tide_cdr_get_bytes(cdr, product, sizeof product);
  if (tide_cdr_get_bool(cdr)) (void)skip_properties(cdr);
  return product[4] == VERSION_MAJOR;
}

static void skip_locator(tide_cdr_t *cdr, uint8_t format) {
  size_t length;
  if (format == LOCATOR_SMALL) {
    (void)tide_cdr_view(cdr, 3);
  } else if (format == LOCATOR_LARGE) {
    (void)tide_cdr_view(cdr, 16);
    (void)tide_cdr_get_u32(cdr);
  } else if (format == LOCATOR_TEXT) {
    (void)tide_cdr_get_string(cdr, &length);
  } else {
    malformed(cdr);
  }
}

static int first_locator(tide_cdr_t *cdr, tide_xrce_locator_t *locator) {
  for (uint32_t left = tide_cdr_get_count(cdr, 4); left > 0 && cdr->status == TIDE_OK; left--) {
    const uint8_t format = tide_cdr_get_u8(cdr);
    if (format != LOCATOR_MEDIUM) {
      skip_locator(cdr, format);
      continue;
    }
    tide_cdr_get_bytes(cdr, locator->address, sizeof locator->address);
    locator->port = tide_cdr_get_u16(cdr);
    if (cdr->status == TIDE_OK && locator->port != 0) return TIDE_OK;
  }
  return cdr->status == TIDE_OK ? TIDE_ERROR_NOT_FOUND : cdr->status;
}

int tide_xrce_get_discovery_answer(const uint8_t *bytes, size_t length, tide_xrce_locator_t *locator) {
  tide_cdr_t cdr;
  if (!open_body(&cdr, bytes, length, TIDE_XRCE_INFO)) return TIDE_ERROR_MALFORMED;
  (void)tide_xrce_get_request(&cdr);
  (void)tide_cdr_get_u16(&cdr); /* the statuses */
  if (!tide_cdr_get_bool(&cdr) || !skip_configuration(&cdr)) return TIDE_ERROR_MALFORMED;
  if (!tide_cdr_get_bool(&cdr)) return cdr.status == TIDE_OK ? TIDE_ERROR_NOT_FOUND : cdr.status;
  if (tide_cdr_get_u8(&cdr) != KIND_AGENT) return TIDE_ERROR_MALFORMED;
  (void)tide_cdr_get_u16(&cdr); /* availability */
  return first_locator(&cdr, locator);
}
