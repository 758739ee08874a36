/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of DDSI-RTPS 2.x as ROS 2 nodes send them over UDP: submessages, inline QoS, and the parameter lists of
 * discovery. Everything here works on the caller's buffers, is re-entrant and allocates nothing; decoded values point
 * into the message. The cost is proportional to the number of bytes.
 *
 * A message is written through one cursor (tide_cdr_writer) over the whole datagram. Every submessage starts at a
 * multiple of 4 and is little-endian. Both byte orders are read. */
#ifndef TIDE_RTPS_H
#define TIDE_RTPS_H

#include "tide/cdr.h"

TIDE_EXTERN_C_BEGIN

enum {
  TIDE_RTPS_PAD = 0x01,
  TIDE_RTPS_ACKNACK = 0x06,
  TIDE_RTPS_HEARTBEAT = 0x07,
  TIDE_RTPS_GAP = 0x08,
  TIDE_RTPS_INFO_TS = 0x09,
  TIDE_RTPS_INFO_SRC = 0x0C,
  TIDE_RTPS_INFO_DST = 0x0E,
  TIDE_RTPS_NACK_FRAG = 0x12,
  TIDE_RTPS_HEARTBEAT_FRAG = 0x13,
  TIDE_RTPS_DATA = 0x15,
  TIDE_RTPS_DATA_FRAG = 0x16
};

enum { /* flags of a submessage */
       TIDE_RTPS_FLAG_LITTLE_ENDIAN = 0x01,
       TIDE_RTPS_FLAG_FINAL = 0x02,      /* HEARTBEAT, ACKNACK: no answer needed */
       TIDE_RTPS_FLAG_INVALIDATE = 0x02, /* INFO_TS: no timestamp from here on */
       TIDE_RTPS_FLAG_INLINE_QOS = 0x02, /* DATA, DATA_FRAG */
       TIDE_RTPS_FLAG_DATA = 0x04,       /* DATA: the payload is a sample */
       TIDE_RTPS_FLAG_KEY = 0x08,        /* DATA: the payload is a key */
       TIDE_RTPS_FLAG_FRAGMENT_KEY = 0x04
};

/* Entity ids: three octets of key and one of kind; the first octet is the most significant. */
enum { TIDE_RTPS_KIND_WRITER = 0x03, TIDE_RTPS_KIND_READER = 0x04 }; /* user-defined, without a key */
#define TIDE_RTPS_ENTITY_UNKNOWN 0u
#define TIDE_RTPS_ENTITY_PARTICIPANT 0x000001C1u
#define TIDE_RTPS_ENTITY_SPDP_WRITER 0x000100C2u
#define TIDE_RTPS_ENTITY_SPDP_READER 0x000100C7u
#define TIDE_RTPS_ENTITY_PUBLICATIONS_WRITER 0x000003C2u
#define TIDE_RTPS_ENTITY_PUBLICATIONS_READER 0x000003C7u
#define TIDE_RTPS_ENTITY_SUBSCRIPTIONS_WRITER 0x000004C2u
#define TIDE_RTPS_ENTITY_SUBSCRIPTIONS_READER 0x000004C7u
/* Bits of PID_BUILTIN_ENDPOINT_SET: announcer and detector of participants, publications and subscriptions. */
#define TIDE_RTPS_BUILTIN_ENDPOINTS 0x3Fu

#define TIDE_RTPS_VENDOR 0x7464u /* "td", not assigned by the OMG */
#define TIDE_RTPS_HEADER_BYTES 20u
#define TIDE_RTPS_PREFIX_BYTES 12u
/* Bytes of a message besides the payload, at most: header, INFO_DST, INFO_TS, DATA_FRAG with inline QoS, HEARTBEAT. */
#define TIDE_RTPS_OVERHEAD_BYTES (20u + 16u + 12u + 36u + 60u + 32u)
#define TIDE_RTPS_SET_BITS 256u /* largest number of bits in a set of sequence or fragment numbers */

typedef struct tide_guid {
  uint8_t prefix[TIDE_RTPS_PREFIX_BYTES];
  uint32_t entity;
} tide_guid_t;

typedef struct tide_rtps_locator { /* UDP over IPv4 */
  uint8_t address[4];
  uint16_t port; /* 0: none */
} tide_rtps_locator_t;

/* Characters that need not end in NUL. */
typedef struct tide_rtps_text {
  const char *characters;
  size_t length;
} tide_rtps_text_t;

/* UDP ports of a domain: one for multicast, which all participants share, and two for each participant by its number,
 * counted from 0. A domain has 120 participants at most; domains above 232 have no ports. */
#define TIDE_RTPS_PORT_MULTICAST(domain) (7400u + 250u * (domain))
#define TIDE_RTPS_PORT_DISCOVERY(domain, participant) (7410u + 250u * (domain) + 2u * (participant))
#define TIDE_RTPS_PORT_DATA(domain, participant) (7411u + 250u * (domain) + 2u * (participant))

/* ---- header and submessages ---- */

void tide_rtps_put_header(tide_cdr_t *cdr, const uint8_t prefix[TIDE_RTPS_PREFIX_BYTES]);
/* Returns TIDE_OK, TIDE_ERROR_MALFORMED, or TIDE_ERROR_VERSION for a major version other than 2. *prefix points into
 * the message. */
int tide_rtps_get_header(const uint8_t *bytes, size_t length, const uint8_t **prefix);

typedef struct tide_rtps_submessage {
  uint8_t id, flags;
  const uint8_t *body;
  size_t body_bytes;
} tide_rtps_submessage_t;
/* Step through the submessages. *position starts at TIDE_RTPS_HEADER_BYTES. Returns 1 and fills in the submessage, 0 at
 * the end, TIDE_ERROR_MALFORMED when a length runs beyond the message. */
int tide_rtps_next(const uint8_t *message, size_t length, size_t *position, tide_rtps_submessage_t *submessage);
/* A cursor over the body, in its byte order. */
void tide_rtps_open(tide_cdr_t *cdr, const tide_rtps_submessage_t *submessage);

/* put: appends a whole submessage. get: reads the body from a cursor made by tide_rtps_open. Both leave errors in
 * cdr->status. */

/* 16 octets, as in a GUID's parameter and in rmw_dds_common/msg/Gid. */
void tide_rtps_put_guid(tide_cdr_t *cdr, const tide_guid_t *guid);

/* Extends the last submessage, which begins at `start`, by everything that was appended after it. */
void tide_rtps_extend(tide_cdr_t *cdr, size_t start);

void tide_rtps_put_info_dst(tide_cdr_t *cdr, const uint8_t prefix[TIDE_RTPS_PREFIX_BYTES]);
/* ns: time since 1970, at most until 2106. It is transmitted in units of 0.23 ns. */
void tide_rtps_put_info_ts(tide_cdr_t *cdr, int64_t ns);
int64_t tide_rtps_get_timestamp(tide_cdr_t *cdr);

typedef struct tide_rtps_sample_identity { /* which request a reply answers, and which reader waits for the reply */
  tide_guid_t guid;                        /* entity 0: none */
  int64_t sequence;                        /* number of the answered request; not used in a request */
} tide_rtps_sample_identity_t;

/* DATA, and DATA_FRAG if fragment_bytes is not 0. */
typedef struct tide_rtps_data {
  uint32_t reader, writer;
  int64_t sequence;
  uint32_t first_fragment; /* 1-based; the message has this one and the next fragment_count - 1 */
  uint16_t fragment_count; /* 1 when written */
  uint16_t fragment_bytes; /* size of each fragment; the sample's last one may be shorter */
  uint32_t sample_bytes;   /* size of the whole serialised sample, with its encapsulation header */
  const uint8_t *payload;  /* the sample or these fragments; null: no payload */
  size_t payload_bytes;
  bool is_key;
  uint8_t status; /* PID_STATUS_INFO: bit 0 disposed, bit 1 unregistered */
  bool has_key_hash;
  tide_guid_t key_hash;
  tide_rtps_sample_identity_t related;
} tide_rtps_data_t;
void tide_rtps_put_data(tide_cdr_t *cdr, const tide_rtps_data_t *data);
void tide_rtps_get_data(tide_cdr_t *cdr, const tide_rtps_submessage_t *submessage, tide_rtps_data_t *data);

/* Numbers from base to base + bits - 1; those whose bit is set are in the set. */
typedef struct tide_rtps_set {
  int64_t base;
  uint32_t bits; /* 0 to TIDE_RTPS_SET_BITS */
  uint32_t bitmap[TIDE_RTPS_SET_BITS / 32];
} tide_rtps_set_t;
bool tide_rtps_set_has(const tide_rtps_set_t *set, int64_t number);
/* Numbers outside base..base + TIDE_RTPS_SET_BITS - 1 are ignored. */
void tide_rtps_set_add(tide_rtps_set_t *set, int64_t number);
void tide_rtps_set_remove(tide_rtps_set_t *set, int64_t number);
/* Returns the smallest number in the set; 0: the set is empty. */
int64_t tide_rtps_set_first(const tide_rtps_set_t *set);

/* One structure for the submessages that control reliability. The kinds use these members:
 *   HEARTBEAT        first to last: the available numbers (first = last + 1: none); count; final
 *   HEARTBEAT_FRAG   first: number of the sample; last: its last available fragment; count
 *   GAP              first to set.base - 1, and the set: numbers that will not be sent
 *   ACKNACK          set: all numbers below set.base are acknowledged, those in the set are missing; count; final
 *   NACK_FRAG        first: number of the sample; set: its missing fragments; count */
typedef struct tide_rtps_repair {
  uint8_t id;
  uint32_t reader, writer;
  int64_t first, last;
  tide_rtps_set_t set;
  uint32_t count;
  bool final;
} tide_rtps_repair_t;
void tide_rtps_put_repair(tide_cdr_t *cdr, const tide_rtps_repair_t *repair);
/* Numbers that no sender may use (0, negative, first > last + 1, more bits than 256) are TIDE_ERROR_MALFORMED. */
void tide_rtps_get_repair(tide_cdr_t *cdr, const tide_rtps_submessage_t *submessage, tide_rtps_repair_t *repair);

/* ---- discovery: parameter lists with their encapsulation header, as payloads of DATA ---- */

/* A participant announces a list of locators, which is long on machines with many networks. The locator with the wanted
 * address is returned or, if there is none, the first one for UDP over IPv4. wanted: the address that the announcement
 * came from; null: any. */
typedef struct tide_rtps_participant_data {
  tide_guid_t guid;
  uint32_t builtin_endpoints;
  int64_t lease_ns;
  tide_rtps_locator_t discovery, data; /* unicast */
  uint32_t domain;
  bool has_domain;
  tide_rtps_text_t user_data; /* ROS 2: "enclave=/;" */
} tide_rtps_participant_data_t;
void tide_rtps_put_participant(tide_cdr_t *cdr, const tide_rtps_participant_data_t *data);
int tide_rtps_get_participant(const uint8_t *bytes, size_t length, const uint8_t *wanted,
                              tide_rtps_participant_data_t *data);

/* Times: INT64_MAX is infinite. The defaults of the specification apply to absent parameters. */
typedef struct tide_rtps_qos {
  bool reliable;
  uint8_t durability; /* 0 volatile, 1 transient local, 2 transient, 3 persistent */
  uint8_t liveliness; /* 0 automatic, 1 manual by participant, 2 manual by topic */
  bool exclusive;     /* ownership */
  bool has_partition; /* in a partition other than the default one */
  bool lacks_xcdr1;   /* offers or accepts only later encodings */
  int64_t deadline_ns, lease_ns, lifespan_ns;
} tide_rtps_qos_t;

typedef struct tide_rtps_endpoint_data {
  tide_guid_t guid;
  tide_rtps_text_t topic, type; /* as DDS calls them: "rt/chatter", "std_msgs::msg::dds_::String_" */
  tide_rtps_text_t type_hash;   /* ROS 2: "RIHS01_..." of the user data; may be empty */
  tide_rtps_qos_t qos;
  tide_rtps_locator_t data; /* port 0: the participant's locator applies */
} tide_rtps_endpoint_data_t;
void tide_rtps_put_endpoint(tide_cdr_t *cdr, const tide_rtps_endpoint_data_t *data);
/* is_writer: selects the defaults of writers. TIDE_ERROR_MALFORMED: also when there is no GUID, topic or type. */
int tide_rtps_get_endpoint(const uint8_t *bytes, size_t length, bool is_writer, const uint8_t *wanted,
                           tide_rtps_endpoint_data_t *data);

/* The first DDS policy in which offered and requested QoS are incompatible; 0: they match. */
enum {
  TIDE_RTPS_POLICY_DURABILITY = 2,
  TIDE_RTPS_POLICY_DEADLINE = 4,
  TIDE_RTPS_POLICY_OWNERSHIP = 6,
  TIDE_RTPS_POLICY_LIVELINESS = 8,
  TIDE_RTPS_POLICY_PARTITION = 10,
  TIDE_RTPS_POLICY_RELIABILITY = 11,
  TIDE_RTPS_POLICY_REPRESENTATION = 23
};
int tide_rtps_incompatible(const tide_rtps_qos_t *offered, const tide_rtps_qos_t *requested);

bool tide_guid_equal(const tide_guid_t *left, const tide_guid_t *right);

TIDE_EXTERN_C_END
#endif
