/* SPDX-License-Identifier: Apache-2.0 */
/* How a client finds agents: messages outside of any session. */
#include "octets.h"
#include "tide/xrce.h"

#define REQUEST 9u /* what the stock client uses */
#define INFO_CONFIGURATION 1u
#define INFO_ACTIVITY 2u
#define KIND_AGENT 0x0Du
#define VERSION_MAJOR 1u

enum { LOCATOR_SMALL, LOCATOR_MEDIUM, LOCATOR_LARGE, LOCATOR_TEXT };

static const tide_xrce_header_t no_session = {TIDE_XRCE_SESSION_NONE_WITHOUT_KEY, TIDE_XRCE_STREAM_NONE, 0, 0};

/* The header goes before a body that was written to its place. */
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
  const tide_xrce_get_info_body_t body = {{REQUEST, TIDE_XRCE_OBJECT_AGENT}, INFO_CONFIGURATION | INFO_ACTIVITY};
  tide_cdr_t cdr;
  begin(&cdr, bytes, TIDE_XRCE_DISCOVERY_QUESTION_BYTES);
  tide_xrce_put_get_info(&cdr, &body);
  return finish(bytes, TIDE_XRCE_GET_INFO, &cdr);
}

size_t tide_xrce_put_discovery_answer(uint8_t *bytes, const tide_xrce_info_t *info, tide_xrce_locator_t locator) {
  tide_cdr_t cdr;
  begin(&cdr, bytes, TIDE_XRCE_DISCOVERY_ANSWER_BYTES);
  tide_xrce_put_info(&cdr, info);
  cdr.position -= sizeof(uint32_t); /* the number of addresses, which is 0 */
  tide_cdr_put_u32(&cdr, 1);
  tide_cdr_put_u8(&cdr, LOCATOR_MEDIUM);
  tide_cdr_put_bytes(&cdr, locator.address, sizeof locator.address);
  tide_cdr_put_u16(&cdr, locator.port);
  return finish(bytes, TIDE_XRCE_INFO, &cdr);
}

/* The body of the first submessage of a message, when that is what is asked for. */
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

static void skip_properties(tide_cdr_t *cdr) {
  size_t length;
  for (uint32_t left = tide_cdr_get_count(cdr, 2u * sizeof(uint32_t)); left > 0 && cdr->status == TIDE_OK; left--) {
    (void)tide_cdr_get_string(cdr, &length);
    (void)tide_cdr_get_string(cdr, &length);
  }
}

static bool skip_configuration(tide_cdr_t *cdr) {
  uint8_t product[8]; /* cookie, version, vendor */
  if (tide_cdr_get_u8(cdr) != KIND_AGENT) return false;
  tide_cdr_get_bytes(cdr, product, sizeof product);
  if (tide_cdr_get_bool(cdr)) skip_properties(cdr);
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
    tide_octets_malformed(cdr);
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
