/* SPDX-License-Identifier: Apache-2.0 */
/* The body of CREATE. A binary representation is a block of octets inside the body: aligned from its own first octet,
 * with its size in front. */
#include "octets.h"
#include "tide/options.h"
#include "tide/status.h"
#include "tide/xrce.h"

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
  tide_octets_put_u16(cdr, object->topic);
  tide_cdr_put_bool(cdr, object->has_qos);
  if (!object->has_qos) return;
  tide_cdr_put_u16(cdr, object->qos_flags);
  tide_cdr_put_bool(cdr, object->has_depth);
  if (object->has_depth) tide_cdr_put_u16(cdr, object->depth);
  put_optional_u32(cdr, object->has_deadline, object->deadline_ms);
  put_optional_u32(cdr, object->has_lifespan, object->lifespan_ms);
  tide_cdr_put_bool(cdr, false); /* user data */
  tide_cdr_put_bool(cdr, false); /* writer: ownership strength; reader: time-based filter */
  if (object->kind == TIDE_XRCE_KIND_DATAREADER) tide_cdr_put_bool(cdr, false); /* content filter */
}

/* What follows the lifespan is of no use to us: the block ends it. */
static void get_endpoint(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  object->topic = tide_octets_get_u16(cdr);
  object->has_qos = tide_cdr_get_bool(cdr);
  if (!object->has_qos) return;
  object->qos_flags = tide_cdr_get_u16(cdr);
  object->has_depth = tide_cdr_get_bool(cdr);
  if (object->has_depth) object->depth = tide_cdr_get_u16(cdr);
  object->has_deadline = get_optional_u32(cdr, &object->deadline_ms);
  object->has_lifespan = get_optional_u32(cdr, &object->lifespan_ms);
}

static void put_service(tide_cdr_t *cdr, const tide_xrce_object_t *object) {
  if (!TIDE_SERVICE_OBJECTS) return; /* refused by the session */
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
    case TIDE_XRCE_KIND_DATAREADER:
      put_endpoint(cdr, object);
      break;
    default:
      put_service(cdr, object);
      break;
  }
}

static void get_topic(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  get_text(cdr, &object->name);
  bool has_reference = get_optional_text(cdr, &object->type);
  bool has_name = get_optional_text(cdr, &object->type);
  if (!has_reference && !has_name) tide_octets_malformed(cdr);
}

static void get_block(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  tide_text_t ignored;
  switch (object->kind) {
    case TIDE_XRCE_KIND_PARTICIPANT:
      (void)get_optional_text(cdr, &ignored);
      object->has_name = get_optional_text(cdr, &object->name);
      break;
    case TIDE_XRCE_KIND_TOPIC:
      get_topic(cdr, object);
      break;
    case TIDE_XRCE_KIND_PUBLISHER:
    case TIDE_XRCE_KIND_SUBSCRIBER:
      object->has_name = get_optional_text(cdr, &object->name);
      (void)tide_cdr_get_bool(cdr);
      break;
    case TIDE_XRCE_KIND_DATAWRITER:
    case TIDE_XRCE_KIND_DATAREADER:
      get_endpoint(cdr, object);
      break;
    default:
      get_service(cdr, object);
      break;
  }
}

/* ---- the three representations ---- */

static void put_binary(tide_cdr_t *cdr, const tide_xrce_object_t *object) {
  tide_cdr_align(cdr, 4);
  tide_cdr_t size = *cdr; /* comes back here when the size is known */
  tide_cdr_put_u32(cdr, 0);
  size_t begin = cdr->position;
  put_block(cdr, object); /* starts at a multiple of 4 and holds nothing wider: no origin of its own is needed */
  if (cdr->status == TIDE_OK) tide_cdr_put_u32(&size, (uint32_t)(cdr->position - begin));
}

static void get_binary(tide_cdr_t *cdr, tide_xrce_object_t *object) {
  size_t size = tide_cdr_get_u32(cdr);
  const uint8_t *bytes = tide_cdr_view(cdr, size);
  if (bytes == NULL) return;
  tide_cdr_t block;
  tide_cdr_reader(&block, bytes, size, cdr->big_endian);
  get_block(&block, object);
  if (block.status != TIDE_OK) tide_octets_malformed(cdr);
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
  } else if (TIDE_TEXT_OBJECTS) { /* else refused by the session */
    put_text(cdr, object->text);
  }
  if (object->kind == TIDE_XRCE_KIND_PARTICIPANT) {
    tide_cdr_put_u16(cdr, (uint16_t)object->domain);
  } else {
    tide_octets_put_u16(cdr, object->parent);
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
    tide_octets_malformed(cdr);
  } else if (is_text) {
    get_text(cdr, &object->text);
  } else {
    get_binary(cdr, object);
  }
  if (object->kind == TIDE_XRCE_KIND_PARTICIPANT) {
    object->domain = (int16_t)tide_cdr_get_u16(cdr);
  } else {
    object->parent = tide_octets_get_u16(cdr);
  }
}
