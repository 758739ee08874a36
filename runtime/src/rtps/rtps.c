/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/rtps.h"

#include <string.h>

#include "tide/invariant.h"
#include "tide/status.h"

static void malformed(tide_cdr_t *cdr) {
  if (cdr->status == TIDE_OK) cdr->status = TIDE_ERROR_MALFORMED;
}

bool tide_guid_equal(const tide_guid_t *left, const tide_guid_t *right) {
  return left->entity == right->entity && memcmp(left->prefix, right->prefix, TIDE_RTPS_PREFIX_BYTES) == 0;
}

/* Entity ids and 16-bit vendor ids travel with the high octet first in either byte order. */
static void put_entity(tide_cdr_t *cdr, uint32_t entity) {
  const uint8_t octets[4] = {(uint8_t)(entity >> 24), (uint8_t)(entity >> 16), (uint8_t)(entity >> 8), (uint8_t)entity};
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
}

static uint32_t get_entity(tide_cdr_t *cdr) {
  uint8_t octets[4] = {0};
  tide_cdr_get_bytes(cdr, octets, sizeof octets);
  return (uint32_t)octets[0] << 24 | (uint32_t)octets[1] << 16 | (uint32_t)octets[2] << 8 | octets[3];
}

void tide_rtps_put_guid(tide_cdr_t *cdr, const tide_guid_t *guid) {
  tide_cdr_put_bytes(cdr, guid->prefix, sizeof guid->prefix);
  put_entity(cdr, guid->entity);
}

static void get_guid(tide_cdr_t *cdr, tide_guid_t *guid) {
  tide_cdr_get_bytes(cdr, guid->prefix, sizeof guid->prefix);
  guid->entity = get_entity(cdr);
}

/* A sequence number is two words, the high one first, so it needs an alignment of 4 only. */
static void put_number(tide_cdr_t *cdr, int64_t number) {
  tide_cdr_put_u32(cdr, (uint32_t)((uint64_t)number >> 32));
  tide_cdr_put_u32(cdr, (uint32_t)number);
}

static int64_t get_number(tide_cdr_t *cdr) {
  const uint64_t high = tide_cdr_get_u32(cdr);
  return (int64_t)(high << 32 | tide_cdr_get_u32(cdr));
}

/* Seconds and fractions of 2^-32 s, the specification's format of times and durations. */
#define SECOND_NS 1000000000

static void put_time(tide_cdr_t *cdr, int64_t ns) {
  if (ns == INT64_MAX) {
    tide_cdr_put_u32(cdr, INT32_MAX);
    tide_cdr_put_u32(cdr, UINT32_MAX);
    return;
  }
  const uint64_t rest = (uint64_t)(ns % SECOND_NS);
  tide_cdr_put_u32(cdr, (uint32_t)(ns / SECOND_NS));
  tide_cdr_put_u32(cdr, (uint32_t)((rest << 32) / SECOND_NS));
}

static int64_t get_time(tide_cdr_t *cdr) {
  const uint32_t seconds = tide_cdr_get_u32(cdr);
  const uint64_t fraction = tide_cdr_get_u32(cdr);
  /* Rounded up, so that a written time is read back unchanged. */
  return (int64_t)seconds * SECOND_NS + (int64_t)((fraction * SECOND_NS + UINT32_MAX) >> 32);
}

static int64_t get_duration(tide_cdr_t *cdr) {
  const int64_t ns = get_time(cdr);
  return ns / SECOND_NS >= INT32_MAX ? INT64_MAX : ns;
}

/* ---- header and submessages ---- */

static const uint8_t header_start[8] = {'R', 'T', 'P', 'S', 2, 3, TIDE_RTPS_VENDOR >> 8, TIDE_RTPS_VENDOR & 0xFF};

void tide_rtps_put_header(tide_cdr_t *cdr, const uint8_t prefix[TIDE_RTPS_PREFIX_BYTES]) {
  tide_cdr_put_bytes(cdr, header_start, sizeof header_start);
  tide_cdr_put_bytes(cdr, prefix, TIDE_RTPS_PREFIX_BYTES);
}

int tide_rtps_get_header(const uint8_t *bytes, size_t length, const uint8_t **prefix) {
  if (bytes == NULL || length < TIDE_RTPS_HEADER_BYTES || memcmp(bytes, header_start, 4) != 0)
    return TIDE_ERROR_MALFORMED;
  if (bytes[4] != 2) return TIDE_ERROR_VERSION;
  *prefix = bytes + 8;
  return TIDE_OK;
}

int tide_rtps_next(const uint8_t *message, size_t length, size_t *position, tide_rtps_submessage_t *submessage) {
  if (length < *position || length - *position < 4) return length == *position ? 0 : TIDE_ERROR_MALFORMED;
  const uint8_t *bytes = message + *position;
  const size_t room = length - *position - 4;
  submessage->id = bytes[0];
  submessage->flags = bytes[1];
  submessage->body = bytes + 4;
  const bool little = (bytes[1] & TIDE_RTPS_FLAG_LITTLE_ENDIAN) != 0;
  size_t announced = little ? (size_t)(bytes[2] | bytes[3] << 8) : (size_t)(bytes[2] << 8 | bytes[3]);
  /* A length of 0 means up to the end of the message, except in the two kinds whose body may be empty. */
  if (announced == 0 && bytes[0] != TIDE_RTPS_PAD && bytes[0] != TIDE_RTPS_INFO_TS) announced = room;
  if (announced > room) return TIDE_ERROR_MALFORMED;
  submessage->body_bytes = announced;
  *position += 4 + announced;
  return 1;
}

void tide_rtps_open(tide_cdr_t *cdr, const tide_rtps_submessage_t *submessage) {
  tide_cdr_reader(cdr, submessage->body, submessage->body_bytes,
                  (submessage->flags & TIDE_RTPS_FLAG_LITTLE_ENDIAN) == 0);
}

/* Returns the position of the body. */
static size_t begin(tide_cdr_t *cdr, uint8_t id, uint8_t flags) {
  tide_cdr_align(cdr, 4);
  tide_cdr_put_u8(cdr, id);
  tide_cdr_put_u8(cdr, flags | TIDE_RTPS_FLAG_LITTLE_ENDIAN);
  tide_cdr_put_u16(cdr, 0);
  return cdr->position;
}

/* The length is known now. A payload longer than 64 KiB fits no datagram. */
static void end(tide_cdr_t *cdr, size_t body) {
  tide_cdr_align(cdr, 4);
  const size_t length = cdr->position - body;
  if (length > UINT16_MAX && cdr->status == TIDE_OK) cdr->status = TIDE_ERROR_TOO_LARGE;
  if (cdr->status != TIDE_OK || cdr->bytes == NULL) return;
  cdr->bytes[body - 2] = (uint8_t)length;
  cdr->bytes[body - 1] = (uint8_t)(length >> 8);
}

void tide_rtps_extend(tide_cdr_t *cdr, size_t start) { end(cdr, start + 4); }

void tide_rtps_put_info_dst(tide_cdr_t *cdr, const uint8_t prefix[TIDE_RTPS_PREFIX_BYTES]) {
  const size_t body = begin(cdr, TIDE_RTPS_INFO_DST, 0);
  tide_cdr_put_bytes(cdr, prefix, TIDE_RTPS_PREFIX_BYTES);
  end(cdr, body);
}

void tide_rtps_put_info_ts(tide_cdr_t *cdr, int64_t ns) {
  const size_t body = begin(cdr, TIDE_RTPS_INFO_TS, 0);
  put_time(cdr, ns);
  end(cdr, body);
}

int64_t tide_rtps_get_timestamp(tide_cdr_t *cdr) { return get_time(cdr); }

/* ---- parameter lists ---- */

enum {
  PID_PAD = 0x0000,
  PID_SENTINEL = 0x0001,
  PID_PARTICIPANT_LEASE_DURATION = 0x0002,
  PID_TOPIC_NAME = 0x0005,
  PID_TYPE_NAME = 0x0007,
  PID_DOMAIN_ID = 0x000F,
  PID_PROTOCOL_VERSION = 0x0015,
  PID_VENDORID = 0x0016,
  PID_RELIABILITY = 0x001A,
  PID_LIVELINESS = 0x001B,
  PID_DURABILITY = 0x001D,
  PID_OWNERSHIP = 0x001F,
  PID_DEADLINE = 0x0023,
  PID_PARTITION = 0x0029,
  PID_LIFESPAN = 0x002B,
  PID_USER_DATA = 0x002C,
  PID_UNICAST_LOCATOR = 0x002F,
  PID_DEFAULT_UNICAST_LOCATOR = 0x0031,
  PID_METATRAFFIC_UNICAST_LOCATOR = 0x0032,
  PID_PARTICIPANT_GUID = 0x0050,
  PID_BUILTIN_ENDPOINT_SET = 0x0058,
  PID_ENDPOINT_GUID = 0x005A,
  PID_KEY_HASH = 0x0070,
  PID_STATUS_INFO = 0x0071,
  PID_DATA_REPRESENTATION = 0x0073,
  PID_RELATED_SAMPLE_IDENTITY = 0x0083,
  PID_CUSTOM_RELATED_SAMPLE_IDENTITY = 0x800F /* where Fast DDS wrote it before the specification defined an id */
};

#define LOCATOR_UDPV4 1u
#define ENCAPSULATION_PL_CDR_BE 0x0002u
#define ENCAPSULATION_PL_CDR_LE 0x0003u

static size_t begin_parameter(tide_cdr_t *cdr, uint16_t id) {
  tide_cdr_put_u16(cdr, id);
  tide_cdr_put_u16(cdr, 0);
  return cdr->position;
}

static void put_sentinel(tide_cdr_t *cdr) {
  tide_cdr_put_u16(cdr, PID_SENTINEL);
  tide_cdr_put_u16(cdr, 0);
}

static void put_u32_parameter(tide_cdr_t *cdr, uint16_t id, uint32_t value) {
  const size_t body = begin_parameter(cdr, id);
  tide_cdr_put_u32(cdr, value);
  end(cdr, body);
}

static void put_octets_parameter(tide_cdr_t *cdr, uint16_t id, uint8_t first, uint8_t second) {
  const uint8_t octets[4] = {first, second, 0, 0};
  const size_t body = begin_parameter(cdr, id);
  tide_cdr_put_bytes(cdr, octets, sizeof octets);
  end(cdr, body);
}

static void put_guid_parameter(tide_cdr_t *cdr, uint16_t id, const tide_guid_t *guid) {
  const size_t body = begin_parameter(cdr, id);
  tide_rtps_put_guid(cdr, guid);
  end(cdr, body);
}

static void put_text_parameter(tide_cdr_t *cdr, uint16_t id, tide_rtps_text_t text) {
  const size_t body = begin_parameter(cdr, id);
  tide_cdr_put_string(cdr, text.characters, text.length);
  end(cdr, body);
}

static void put_time_parameter(tide_cdr_t *cdr, uint16_t id, int64_t ns) {
  const size_t body = begin_parameter(cdr, id);
  put_time(cdr, ns);
  end(cdr, body);
}

static void put_locator_parameter(tide_cdr_t *cdr, uint16_t id, tide_rtps_locator_t locator) {
  static const uint8_t zeros[12];
  if (locator.port == 0) return;
  const size_t body = begin_parameter(cdr, id);
  tide_cdr_put_u32(cdr, LOCATOR_UDPV4);
  tide_cdr_put_u32(cdr, locator.port);
  tide_cdr_put_bytes(cdr, zeros, sizeof zeros);
  tide_cdr_put_bytes(cdr, locator.address, sizeof locator.address);
  end(cdr, body);
}

static void get_locator(tide_cdr_t *cdr, const uint8_t *wanted, tide_rtps_locator_t *locator) {
  const uint32_t kind = tide_cdr_get_u32(cdr);
  const uint32_t port = tide_cdr_get_u32(cdr);
  const uint8_t *address = tide_cdr_view(cdr, 16);
  if (address == NULL || kind != LOCATOR_UDPV4 || port == 0 || port > UINT16_MAX) return;
  if (locator->port != 0 && (wanted == NULL || memcmp(address + 12, wanted, 4) != 0)) return;
  memcpy(locator->address, address + 12, 4);
  locator->port = (uint16_t)port;
}

/* Steps to the next parameter: its value in *value, with an alignment of its own. False at the end, which is the
 * sentinel; a list without one is malformed. */
static bool next_parameter(tide_cdr_t *list, uint16_t *id, tide_cdr_t *value) {
  *id = tide_cdr_get_u16(list);
  const size_t length = tide_cdr_get_u16(list);
  if (list->status != TIDE_OK || *id == PID_SENTINEL) return false;
  if (length % 4 != 0) malformed(list);
  const uint8_t *bytes = tide_cdr_view(list, length);
  if (bytes == NULL) return false;
  tide_cdr_reader(value, bytes, length, list->big_endian);
  return true;
}

static void put_encapsulation(tide_cdr_t *cdr) {
  static const uint8_t header[4] = {0, ENCAPSULATION_PL_CDR_LE, 0, 0};
  tide_cdr_put_bytes(cdr, header, sizeof header);
}

static void open_list(tide_cdr_t *list, const uint8_t *bytes, size_t length) {
  const unsigned kind = length < 4 ? 0 : (unsigned)(bytes[0] << 8 | bytes[1]);
  tide_cdr_reader(list, length < 4 ? NULL : bytes + 4, length < 4 ? 0 : length - 4, kind == ENCAPSULATION_PL_CDR_BE);
  if (kind != ENCAPSULATION_PL_CDR_BE && kind != ENCAPSULATION_PL_CDR_LE) malformed(list);
}

static void put_identity_parameter(tide_cdr_t *cdr, uint16_t id, const tide_rtps_sample_identity_t *identity) {
  const size_t body = begin_parameter(cdr, id);
  tide_rtps_put_guid(cdr, &identity->guid);
  put_number(cdr, identity->sequence);
  end(cdr, body);
}

static void put_inline_qos(tide_cdr_t *cdr, const tide_rtps_data_t *data) {
  /* Writes both ids, because rmw_fastrtps of older distributions reads only Fast DDS's own id. */
  if (data->related.guid.entity != 0) {
    put_identity_parameter(cdr, PID_CUSTOM_RELATED_SAMPLE_IDENTITY, &data->related);
    put_identity_parameter(cdr, PID_RELATED_SAMPLE_IDENTITY, &data->related);
  }
  if (data->has_key_hash) put_guid_parameter(cdr, PID_KEY_HASH, &data->key_hash);
  if (data->status != 0) {
    const uint8_t octets[4] = {0, 0, 0, data->status};
    const size_t body = begin_parameter(cdr, PID_STATUS_INFO);
    tide_cdr_put_bytes(cdr, octets, sizeof octets);
    end(cdr, body);
  }
  put_sentinel(cdr);
}

static void get_inline_qos(tide_cdr_t *cdr, tide_rtps_data_t *data) {
  uint16_t id;
  tide_cdr_t value;
  while (next_parameter(cdr, &id, &value)) {
    if (id == PID_STATUS_INFO) {
      const uint8_t *octets = tide_cdr_view(&value, 4);
      if (octets != NULL) data->status = octets[3];
    } else if (id == PID_KEY_HASH) {
      get_guid(&value, &data->key_hash);
      data->has_key_hash = true;
    } else if (id == PID_RELATED_SAMPLE_IDENTITY || id == PID_CUSTOM_RELATED_SAMPLE_IDENTITY) {
      get_guid(&value, &data->related.guid);
      data->related.sequence = get_number(&value);
    }
    if (value.status != TIDE_OK) malformed(cdr);
  }
}

void tide_rtps_put_data(tide_cdr_t *cdr, const tide_rtps_data_t *data) {
  const bool is_fragment = data->fragment_bytes != 0;
  const bool has_qos = data->status != 0 || data->has_key_hash || data->related.guid.entity != 0;
  uint8_t flags = has_qos ? TIDE_RTPS_FLAG_INLINE_QOS : 0;
  if (is_fragment) {
    flags |= data->is_key ? TIDE_RTPS_FLAG_FRAGMENT_KEY : 0;
  } else if (data->payload != NULL) {
    flags |= data->is_key ? TIDE_RTPS_FLAG_KEY : TIDE_RTPS_FLAG_DATA;
  }
  const size_t body = begin(cdr, is_fragment ? TIDE_RTPS_DATA_FRAG : TIDE_RTPS_DATA, flags);
  tide_cdr_put_u16(cdr, 0);
  tide_cdr_put_u16(cdr, is_fragment ? 28 : 16); /* octets from here to the inline QoS */
  put_entity(cdr, data->reader);
  put_entity(cdr, data->writer);
  put_number(cdr, data->sequence);
  if (is_fragment) {
    tide_cdr_put_u32(cdr, data->first_fragment);
    tide_cdr_put_u16(cdr, data->fragment_count);
    tide_cdr_put_u16(cdr, data->fragment_bytes);
    tide_cdr_put_u32(cdr, data->sample_bytes);
  }
  if (has_qos) put_inline_qos(cdr, data);
  if (data->payload != NULL) tide_cdr_put_bytes(cdr, data->payload, data->payload_bytes);
  end(cdr, body);
}

void tide_rtps_get_data(tide_cdr_t *cdr, const tide_rtps_submessage_t *submessage, tide_rtps_data_t *data) {
  const bool is_fragment = submessage->id == TIDE_RTPS_DATA_FRAG;
  *data = (tide_rtps_data_t){0};
  (void)tide_cdr_get_u16(cdr);
  const size_t to_qos = tide_cdr_get_u16(cdr);
  const size_t origin = cdr->position;
  data->reader = get_entity(cdr);
  data->writer = get_entity(cdr);
  data->sequence = get_number(cdr);
  if (is_fragment) {
    data->first_fragment = tide_cdr_get_u32(cdr);
    data->fragment_count = tide_cdr_get_u16(cdr);
    data->fragment_bytes = tide_cdr_get_u16(cdr);
    data->sample_bytes = tide_cdr_get_u32(cdr);
  }
  if (cdr->status == TIDE_OK && to_qos < cdr->position - origin) malformed(cdr);
  if (cdr->status == TIDE_OK) (void)tide_cdr_view(cdr, to_qos - (cdr->position - origin)); /* skip unknown members */
  if ((submessage->flags & TIDE_RTPS_FLAG_INLINE_QOS) != 0) get_inline_qos(cdr, data);
  if (cdr->status == TIDE_OK && data->sequence <= 0) malformed(cdr);
  if (cdr->status != TIDE_OK) return;
  data->is_key = (submessage->flags & (is_fragment ? TIDE_RTPS_FLAG_FRAGMENT_KEY : TIDE_RTPS_FLAG_KEY)) != 0;
  if (is_fragment) {
    /* The fragments must lie within the sample, and exactly their bytes must follow (padding aside). With 64 bits
     * nothing overflows. */
    const uint64_t from = ((uint64_t)data->first_fragment - 1) * data->fragment_bytes;
    uint64_t length = (uint64_t)data->fragment_count * data->fragment_bytes;
    if (data->first_fragment == 0 || length == 0 || from >= data->sample_bytes) {
      malformed(cdr);
      return;
    }
    if (length > data->sample_bytes - from) length = data->sample_bytes - from;
    data->payload_bytes = (size_t)length;
    data->payload = tide_cdr_view(cdr, data->payload_bytes);
  } else if (data->is_key || (submessage->flags & TIDE_RTPS_FLAG_DATA) != 0) {
    data->payload_bytes = tide_cdr_remaining(cdr);
    data->payload = tide_cdr_view(cdr, data->payload_bytes);
    data->sample_bytes = (uint32_t)data->payload_bytes;
  }
}

/* ---- sets, and the submessages that control reliability ---- */

static uint32_t bit_of(uint32_t index) { return 0x80000000u >> (index % 32); }

bool tide_rtps_set_has(const tide_rtps_set_t *set, int64_t number) {
  if (number < set->base || number - set->base >= (int64_t)set->bits) return false;
  const uint32_t index = (uint32_t)(number - set->base);
  return (set->bitmap[index / 32] & bit_of(index)) != 0;
}

void tide_rtps_set_add(tide_rtps_set_t *set, int64_t number) {
  if (number < set->base || number - set->base >= (int64_t)TIDE_RTPS_SET_BITS) return;
  const uint32_t index = (uint32_t)(number - set->base);
  for (; set->bits <= index; set->bits++) set->bitmap[set->bits / 32] &= ~bit_of(set->bits);
  set->bitmap[index / 32] |= bit_of(index);
}

void tide_rtps_set_remove(tide_rtps_set_t *set, int64_t number) {
  if (!tide_rtps_set_has(set, number)) return;
  const uint32_t index = (uint32_t)(number - set->base);
  set->bitmap[index / 32] &= ~bit_of(index);
}

int64_t tide_rtps_set_first(const tide_rtps_set_t *set) {
  for (uint32_t index = 0; index < set->bits; index++)
    if ((set->bitmap[index / 32] & bit_of(index)) != 0) return set->base + index;
  return 0;
}

/* Fragment numbers have one word, sequence numbers two. */
static void put_set(tide_cdr_t *cdr, const tide_rtps_set_t *set, bool is_fragments) {
  TIDE_INVARIANT(set->bits <= TIDE_RTPS_SET_BITS);
  if (is_fragments) {
    tide_cdr_put_u32(cdr, (uint32_t)set->base);
  } else {
    put_number(cdr, set->base);
  }
  tide_cdr_put_u32(cdr, set->bits);
  tide_cdr_put_array(cdr, set->bitmap, (set->bits + 31) / 32, 4);
}

static void get_set(tide_cdr_t *cdr, tide_rtps_set_t *set, bool is_fragments) {
  set->base = is_fragments ? (int64_t)tide_cdr_get_u32(cdr) : get_number(cdr);
  const uint32_t bits = tide_cdr_get_u32(cdr);
  /* The set's last number must not exceed the largest sequence number. Fast DDS begins with an empty set of base 0 in
   * some versions. */
  if (bits > TIDE_RTPS_SET_BITS || set->base < (bits != 0) || set->base > INT64_MAX - (int64_t)TIDE_RTPS_SET_BITS) {
    malformed(cdr);
  }
  if (cdr->status != TIDE_OK) return;
  tide_cdr_get_array(cdr, set->bitmap, (bits + 31) / 32, 4);
  set->bits = cdr->status == TIDE_OK ? bits : 0;
}

void tide_rtps_put_repair(tide_cdr_t *cdr, const tide_rtps_repair_t *repair) {
  const bool can_be_final = repair->id == TIDE_RTPS_HEARTBEAT || repair->id == TIDE_RTPS_ACKNACK;
  const size_t body = begin(cdr, repair->id, can_be_final && repair->final ? TIDE_RTPS_FLAG_FINAL : 0);
  put_entity(cdr, repair->reader);
  put_entity(cdr, repair->writer);
  if (repair->id != TIDE_RTPS_ACKNACK) put_number(cdr, repair->first);
  if (repair->id == TIDE_RTPS_HEARTBEAT) {
    put_number(cdr, repair->last);
  } else if (repair->id == TIDE_RTPS_HEARTBEAT_FRAG) {
    tide_cdr_put_u32(cdr, (uint32_t)repair->last);
  } else {
    put_set(cdr, &repair->set, repair->id == TIDE_RTPS_NACK_FRAG);
  }
  if (repair->id != TIDE_RTPS_GAP) tide_cdr_put_u32(cdr, repair->count);
  end(cdr, body);
}

void tide_rtps_get_repair(tide_cdr_t *cdr, const tide_rtps_submessage_t *submessage, tide_rtps_repair_t *repair) {
  *repair = (tide_rtps_repair_t){.id = submessage->id, .final = (submessage->flags & TIDE_RTPS_FLAG_FINAL) != 0};
  repair->reader = get_entity(cdr);
  repair->writer = get_entity(cdr);
  repair->first = 1;
  if (repair->id != TIDE_RTPS_ACKNACK) repair->first = get_number(cdr);
  if (repair->id == TIDE_RTPS_HEARTBEAT) {
    repair->last = get_number(cdr);
  } else if (repair->id == TIDE_RTPS_HEARTBEAT_FRAG) {
    repair->last = tide_cdr_get_u32(cdr);
  } else {
    get_set(cdr, &repair->set, repair->id == TIDE_RTPS_NACK_FRAG);
  }
  if (repair->id != TIDE_RTPS_GAP) repair->count = tide_cdr_get_u32(cdr);
  /* An empty Fast DDS history begins at 0 in some versions: 0 to 0 is read as "none". */
  if (repair->id == TIDE_RTPS_HEARTBEAT && repair->first == 0 && repair->last == 0) repair->first = 1;
  if (repair->first <= 0 || repair->first == INT64_MAX ||
      (repair->id == TIDE_RTPS_HEARTBEAT && (repair->last < repair->first - 1 || repair->last == INT64_MAX)) ||
      (repair->id == TIDE_RTPS_GAP && repair->set.base < repair->first))
    malformed(cdr);
}

/* ---- discovery ---- */

void tide_rtps_put_participant(tide_cdr_t *cdr, const tide_rtps_participant_data_t *data) {
  put_encapsulation(cdr);
  put_octets_parameter(cdr, PID_PROTOCOL_VERSION, header_start[4], header_start[5]);
  put_octets_parameter(cdr, PID_VENDORID, header_start[6], header_start[7]);
  put_guid_parameter(cdr, PID_PARTICIPANT_GUID, &data->guid);
  put_u32_parameter(cdr, PID_DOMAIN_ID, data->domain);
  put_locator_parameter(cdr, PID_METATRAFFIC_UNICAST_LOCATOR, data->discovery);
  put_locator_parameter(cdr, PID_DEFAULT_UNICAST_LOCATOR, data->data);
  put_time_parameter(cdr, PID_PARTICIPANT_LEASE_DURATION, data->lease_ns);
  put_u32_parameter(cdr, PID_BUILTIN_ENDPOINT_SET, data->builtin_endpoints);
  if (data->user_data.length != 0) {
    const size_t body = begin_parameter(cdr, PID_USER_DATA);
    tide_cdr_put_u32(cdr, (uint32_t)data->user_data.length);
    tide_cdr_put_bytes(cdr, data->user_data.characters, data->user_data.length);
    end(cdr, body);
  }
  put_sentinel(cdr);
}

static tide_rtps_text_t get_octets(tide_cdr_t *cdr) {
  const size_t length = tide_cdr_get_count(cdr, 1);
  const uint8_t *octets = tide_cdr_view(cdr, length);
  return (tide_rtps_text_t){(const char *)octets, octets == NULL ? 0 : length};
}

int tide_rtps_get_participant(const uint8_t *bytes, size_t length, const uint8_t *wanted,
                              tide_rtps_participant_data_t *data) {
  tide_cdr_t list, value;
  uint16_t id;
  *data = (tide_rtps_participant_data_t){.lease_ns = (int64_t)100 * SECOND_NS};
  open_list(&list, bytes, length);
  while (next_parameter(&list, &id, &value)) {
    if (id == PID_PARTICIPANT_GUID) get_guid(&value, &data->guid);
    if (id == PID_BUILTIN_ENDPOINT_SET) data->builtin_endpoints = tide_cdr_get_u32(&value);
    if (id == PID_PARTICIPANT_LEASE_DURATION) data->lease_ns = get_duration(&value);
    if (id == PID_METATRAFFIC_UNICAST_LOCATOR) get_locator(&value, wanted, &data->discovery);
    if (id == PID_DEFAULT_UNICAST_LOCATOR) get_locator(&value, wanted, &data->data);
    if (id == PID_USER_DATA) data->user_data = get_octets(&value);
    if (id == PID_DOMAIN_ID) {
      data->domain = tide_cdr_get_u32(&value);
      data->has_domain = true;
    }
    if (value.status != TIDE_OK) malformed(&list);
  }
  if (data->guid.entity != TIDE_RTPS_ENTITY_PARTICIPANT) malformed(&list);
  return list.status;
}

static const char hash_key[] = "typehash=";

void tide_rtps_put_endpoint(tide_cdr_t *cdr, const tide_rtps_endpoint_data_t *data) {
  tide_guid_t participant = data->guid;
  participant.entity = TIDE_RTPS_ENTITY_PARTICIPANT;
  put_encapsulation(cdr);
  put_guid_parameter(cdr, PID_ENDPOINT_GUID, &data->guid);
  put_guid_parameter(cdr, PID_PARTICIPANT_GUID, &participant);
  put_guid_parameter(cdr, PID_KEY_HASH, &data->guid);
  put_text_parameter(cdr, PID_TOPIC_NAME, data->topic);
  put_text_parameter(cdr, PID_TYPE_NAME, data->type);
  put_locator_parameter(cdr, PID_UNICAST_LOCATOR, data->data);
  put_octets_parameter(cdr, PID_PROTOCOL_VERSION, header_start[4], header_start[5]);
  put_octets_parameter(cdr, PID_VENDORID, header_start[6], header_start[7]);
  put_u32_parameter(cdr, PID_DURABILITY, data->qos.durability);
  put_time_parameter(cdr, PID_DEADLINE, data->qos.deadline_ns);
  put_time_parameter(cdr, PID_LIFESPAN, data->qos.lifespan_ns);
  size_t body = begin_parameter(cdr, PID_LIVELINESS);
  tide_cdr_put_u32(cdr, data->qos.liveliness);
  put_time(cdr, data->qos.lease_ns);
  end(cdr, body);
  body = begin_parameter(cdr, PID_RELIABILITY);
  tide_cdr_put_u32(cdr, data->qos.reliable ? 2 : 1);
  put_time(cdr, SECOND_NS / 10); /* the default of max_blocking_time; it is not matched */
  end(cdr, body);
  if (data->type_hash.length != 0) {
    body = begin_parameter(cdr, PID_USER_DATA);
    tide_cdr_put_u32(cdr, (uint32_t)(sizeof hash_key - 1 + data->type_hash.length + 1));
    tide_cdr_put_bytes(cdr, hash_key, sizeof hash_key - 1);
    tide_cdr_put_bytes(cdr, data->type_hash.characters, data->type_hash.length);
    tide_cdr_put_u8(cdr, ';');
    end(cdr, body);
  }
  put_sentinel(cdr);
}

static tide_rtps_text_t hash_of(tide_rtps_text_t user_data) {
  const size_t key = sizeof hash_key - 1;
  if (user_data.length < key || memcmp(user_data.characters, hash_key, key) != 0) return (tide_rtps_text_t){"", 0};
  tide_rtps_text_t hash = {user_data.characters + key, 0};
  while (hash.length < user_data.length - key && hash.characters[hash.length] != ';') hash.length++;
  return hash;
}

static tide_rtps_text_t get_text(tide_cdr_t *cdr) {
  tide_rtps_text_t text;
  text.characters = tide_cdr_get_string(cdr, &text.length);
  return text;
}

/* A list without names, or with one empty name, means the default partition. */
static bool get_partition(tide_cdr_t *cdr) {
  const uint32_t count = tide_cdr_get_count(cdr, 4);
  return count > 1 || (count == 1 && get_text(cdr).length != 0);
}

static bool lacks_xcdr1(tide_cdr_t *cdr) {
  const uint32_t count = tide_cdr_get_count(cdr, 2);
  bool found = count == 0; /* the default */
  for (uint32_t i = 0; i < count; i++) found |= tide_cdr_get_u16(cdr) == 0;
  return !found;
}

int tide_rtps_get_endpoint(const uint8_t *bytes, size_t length, bool is_writer, const uint8_t *wanted,
                           tide_rtps_endpoint_data_t *data) {
  tide_cdr_t list, value;
  uint16_t id;
  *data = (tide_rtps_endpoint_data_t){.type_hash = {"", 0}};
  tide_rtps_qos_t *qos = &data->qos;
  qos->reliable = is_writer;
  qos->deadline_ns = qos->lease_ns = qos->lifespan_ns = INT64_MAX;
  open_list(&list, bytes, length);
  while (next_parameter(&list, &id, &value)) {
    switch (id) {
      case PID_ENDPOINT_GUID: get_guid(&value, &data->guid); break;
      case PID_TOPIC_NAME: data->topic = get_text(&value); break;
      case PID_TYPE_NAME: data->type = get_text(&value); break;
      case PID_UNICAST_LOCATOR: get_locator(&value, wanted, &data->data); break;
      case PID_USER_DATA: data->type_hash = hash_of(get_octets(&value)); break;
      case PID_RELIABILITY: qos->reliable = tide_cdr_get_u32(&value) >= 2; break;
      case PID_DURABILITY: qos->durability = (uint8_t)tide_cdr_get_u32(&value); break;
      case PID_DEADLINE: qos->deadline_ns = get_duration(&value); break;
      case PID_LIFESPAN: qos->lifespan_ns = get_duration(&value); break;
      case PID_LIVELINESS:
        qos->liveliness = (uint8_t)tide_cdr_get_u32(&value);
        qos->lease_ns = get_duration(&value);
        break;
      case PID_OWNERSHIP: qos->exclusive = tide_cdr_get_u32(&value) != 0; break;
      case PID_PARTITION: qos->has_partition = get_partition(&value); break;
      case PID_DATA_REPRESENTATION: qos->lacks_xcdr1 = lacks_xcdr1(&value); break;
      default: /* parameters of later versions and of vendors */ break;
    }
    if (value.status != TIDE_OK) malformed(&list);
  }
  if (data->guid.entity == 0 || data->topic.length == 0 || data->type.length == 0) malformed(&list);
  return list.status;
}

int tide_rtps_incompatible(const tide_rtps_qos_t *offered, const tide_rtps_qos_t *requested) {
  if (requested->reliable && !offered->reliable) return TIDE_RTPS_POLICY_RELIABILITY;
  if (requested->durability > offered->durability) return TIDE_RTPS_POLICY_DURABILITY;
  if (requested->deadline_ns < offered->deadline_ns) return TIDE_RTPS_POLICY_DEADLINE;
  if (requested->liveliness > offered->liveliness || requested->lease_ns < offered->lease_ns)
    return TIDE_RTPS_POLICY_LIVELINESS;
  if (requested->exclusive != offered->exclusive) return TIDE_RTPS_POLICY_OWNERSHIP;
  if (requested->has_partition != offered->has_partition) return TIDE_RTPS_POLICY_PARTITION;
  if (requested->lacks_xcdr1 || offered->lacks_xcdr1) return TIDE_RTPS_POLICY_REPRESENTATION;
  return 0;
}
