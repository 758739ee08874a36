/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of OMG DDS-XRCE 1.0, as the stock client and agent put them on the wire: one codec for both sides.
 * Everything here works on the caller's buffers, is re-entrant and allocates nothing.
 *
 * Length fields and the header's sequence number are always little-endian. Request ids, object ids, the client key and
 * the ACKNACK bitmap travel with the high octet first. The rest of a body follows the endianness flag. */
#ifndef TIDE_XRCE_H
#define TIDE_XRCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/cdr.h"

TIDE_EXTERN_C_BEGIN

enum {
  TIDE_XRCE_CREATE_CLIENT = 0x00,
  TIDE_XRCE_CREATE = 0x01,
  TIDE_XRCE_GET_INFO = 0x02,
  TIDE_XRCE_DELETE = 0x03,
  TIDE_XRCE_STATUS_AGENT = 0x04,
  TIDE_XRCE_STATUS = 0x05,
  TIDE_XRCE_INFO = 0x06,
  TIDE_XRCE_WRITE_DATA = 0x07,
  TIDE_XRCE_READ_DATA = 0x08,
  TIDE_XRCE_DATA = 0x09,
  TIDE_XRCE_ACKNACK = 0x0A,
  TIDE_XRCE_HEARTBEAT = 0x0B,
  TIDE_XRCE_RESET = 0x0C,
  TIDE_XRCE_FRAGMENT = 0x0D,
  TIDE_XRCE_TIMESTAMP = 0x0E,
  TIDE_XRCE_TIMESTAMP_REPLY = 0x0F
};

enum { /* flags of a submessage */
       TIDE_XRCE_FLAG_LITTLE_ENDIAN = 0x01,
       TIDE_XRCE_FLAG_LAST_FRAGMENT = 0x02, /* FRAGMENT */
       TIDE_XRCE_FLAG_REUSE = 0x02,         /* CREATE */
       TIDE_XRCE_FLAG_REPLACE = 0x04,       /* CREATE */
       TIDE_XRCE_FORMAT_MASK = 0x0E,        /* DATA, WRITE_DATA */
       TIDE_XRCE_FORMAT_DATA = 0x00,
       TIDE_XRCE_FORMAT_SAMPLE = 0x02,
       TIDE_XRCE_FORMAT_DATA_SEQUENCE = 0x08,
       TIDE_XRCE_FORMAT_SAMPLE_SEQUENCE = 0x0A,
       TIDE_XRCE_FORMAT_PACKED_SAMPLES = 0x0E
};

enum { /* statuses */
       TIDE_XRCE_STATUS_OK = 0x00,
       TIDE_XRCE_STATUS_OK_MATCHED = 0x01,
       TIDE_XRCE_STATUS_ERR_DDS = 0x80,
       TIDE_XRCE_STATUS_ERR_MISMATCH = 0x81,
       TIDE_XRCE_STATUS_ERR_ALREADY_EXISTS = 0x82,
       TIDE_XRCE_STATUS_ERR_DENIED = 0x83,
       TIDE_XRCE_STATUS_ERR_UNKNOWN_REFERENCE = 0x84,
       TIDE_XRCE_STATUS_ERR_INVALID_DATA = 0x85,
       TIDE_XRCE_STATUS_ERR_INCOMPATIBLE = 0x86,
       TIDE_XRCE_STATUS_ERR_RESOURCES = 0x87
};

enum { /* kinds of objects: the low four bits of an object id */
       TIDE_XRCE_KIND_INVALID = 0,
       TIDE_XRCE_KIND_PARTICIPANT = 1,
       TIDE_XRCE_KIND_TOPIC = 2,
       TIDE_XRCE_KIND_PUBLISHER = 3,
       TIDE_XRCE_KIND_SUBSCRIBER = 4,
       TIDE_XRCE_KIND_DATAWRITER = 5,
       TIDE_XRCE_KIND_DATAREADER = 6,
       TIDE_XRCE_KIND_REQUESTER = 7,
       TIDE_XRCE_KIND_REPLIER = 8,
       TIDE_XRCE_KIND_AGENT = 0x0D,
       TIDE_XRCE_KIND_CLIENT = 0x0E
};

enum { TIDE_XRCE_BY_REFERENCE = 1, TIDE_XRCE_BY_XML = 2, TIDE_XRCE_BY_BINARY = 3 };

#define TIDE_XRCE_OBJECT_CLIENT 0xFFFEu
#define TIDE_XRCE_OBJECT_AGENT 0xFFFDu
#define TIDE_XRCE_OBJECT(number, kind) ((uint16_t)(((number) << 4) | (kind)))
#define TIDE_XRCE_OBJECT_KIND(id) ((uint8_t)((id)&0x0Fu))
#define TIDE_XRCE_STREAM_NONE 0x00u
#define TIDE_XRCE_SESSION_NONE_WITHOUT_KEY 0x80u
#define TIDE_XRCE_SESSION_NONE_WITH_KEY 0x00u

static inline bool tide_xrce_is_error(uint8_t status) { return status >= TIDE_XRCE_STATUS_ERR_DDS; }

/* No session has this id. In a filter this id means any session; in an outgoing message it means the sender's own
 * session. */
#define TIDE_XRCE_SESSION_ANY 0xFFu
/* True if the headers of a session with this id carry the client's key. */
static inline bool tide_xrce_session_has_key(uint8_t session) { return session < TIDE_XRCE_SESSION_NONE_WITHOUT_KEY; }
/* True if messages with this id belong to no session (the client has none yet). */
static inline bool tide_xrce_is_no_session(uint8_t session) {
  return session == TIDE_XRCE_SESSION_NONE_WITHOUT_KEY || session == TIDE_XRCE_SESSION_NONE_WITH_KEY;
}

#define TIDE_XRCE_HEADER_MAXIMUM_BYTES 8u /* header of a message, with its client's key */
#define TIDE_XRCE_SUBMESSAGE_HEADER_BYTES 4u
#define TIDE_XRCE_VENDOR 0x7464u /* "td"; stock parts use 0x010F */

typedef struct tide_xrce_header {
  uint8_t session;
  uint8_t stream;
  uint16_t sequence;
  uint32_t key; /* the client's key, if the headers of this session carry it */
} tide_xrce_header_t;

static inline size_t tide_xrce_header_bytes(uint8_t session) { return tide_xrce_session_has_key(session) ? 8u : 4u; }

/* Writes 4 or 8 bytes; the buffer has room for 8. Returns the bytes written. */
size_t tide_xrce_put_header(uint8_t *bytes, const tide_xrce_header_t *header);
/* Returns the bytes of the header, or TIDE_ERROR_MALFORMED. */
int tide_xrce_get_header(const uint8_t *bytes, size_t length, tide_xrce_header_t *header);

typedef struct tide_xrce_submessage {
  uint8_t id;
  uint8_t flags;
  uint16_t length; /* announced length of the body (too small for CREATE_CLIENT with properties) */
  const uint8_t *body;
  size_t body_bytes; /* actual length: the announced one, or for CREATE_CLIENT up to the end */
} tide_xrce_submessage_t;

/* Step through the submessages of a message. *position starts at the size of the header. Returns 1 and fills in
 * the submessage, 0 at the end, TIDE_ERROR_MALFORMED when the announced length runs beyond the message. */
int tide_xrce_next_submessage(const uint8_t *message, size_t length, size_t *position,
                              tide_xrce_submessage_t *submessage);
static inline void tide_xrce_put_submessage_header(uint8_t bytes[4], uint8_t id, uint8_t flags, uint16_t length) {
  bytes[0] = id;
  bytes[1] = flags;
  bytes[2] = (uint8_t)length;
  bytes[3] = (uint8_t)(length >> 8);
}

/* ---- bodies. put: appends the body to a writer whose origin is the start of the body. get: reads a body. Both
 * leave errors in cdr->status. ---- */

typedef struct tide_xrce_create_client {
  uint8_t version_major, version_minor;
  uint16_t vendor; /* 0x010F for eProsima: octets in this order */
  uint32_t key;
  uint8_t session;   /* wanted session id */
  uint16_t mtu;      /* transport MTU minus 4 */
  bool cookie_valid; /* get: true if the cookie was "XRCE" */
  uint32_t property_count;
  const uint8_t *properties; /* the encoded pairs of strings (get: a view), aligned to 4 in the body */
  size_t properties_bytes;
} tide_xrce_create_client_t;
void tide_xrce_put_create_client(tide_cdr_t *cdr, const tide_xrce_create_client_t *body);
void tide_xrce_get_create_client(tide_cdr_t *cdr, tide_xrce_create_client_t *body);

typedef struct tide_xrce_status_agent {
  uint8_t status, implementation_status;
  uint8_t version_major, version_minor;
  uint16_t vendor;
  bool cookie_valid;
} tide_xrce_status_agent_t;
void tide_xrce_put_status_agent(tide_cdr_t *cdr, const tide_xrce_status_agent_t *body);
void tide_xrce_get_status_agent(tide_cdr_t *cdr, tide_xrce_status_agent_t *body);

typedef struct tide_xrce_request {
  uint16_t request;
  uint16_t object;
} tide_xrce_request_t;
#define TIDE_XRCE_REQUEST_BYTES 4u
static inline tide_xrce_request_t tide_xrce_read_request(const uint8_t *octets) {
  const tide_xrce_request_t request = {(uint16_t)(octets[0] << 8 | octets[1]), (uint16_t)(octets[2] << 8 | octets[3])};
  return request;
}
static inline void tide_xrce_write_request(uint8_t *octets, tide_xrce_request_t request) {
  const uint32_t both = (uint32_t)request.request << 16 | request.object; /* one store */
  octets[0] = (uint8_t)(both >> 24);
  octets[1] = (uint8_t)(both >> 16);
  octets[2] = (uint8_t)(both >> 8);
  octets[3] = (uint8_t)both;
}
void tide_xrce_put_request(tide_cdr_t *cdr, tide_xrce_request_t body); /* the body of a DELETE contains nothing else */
tide_xrce_request_t tide_xrce_get_request(tide_cdr_t *cdr);

typedef struct tide_xrce_status_body {
  tide_xrce_request_t related;
  uint8_t status, implementation_status;
} tide_xrce_status_body_t;
void tide_xrce_put_status(tide_cdr_t *cdr, const tide_xrce_status_body_t *body);
void tide_xrce_get_status(tide_cdr_t *cdr, tide_xrce_status_body_t *body);

typedef struct tide_xrce_acknack {
  uint16_t first_unacknowledged;
  uint16_t missing;
  uint8_t stream;
} tide_xrce_acknack_t;
void tide_xrce_put_acknack(
    tide_cdr_t *cdr, const tide_xrce_acknack_t *body); /* bit n of `missing`: first_unacknowledged + n is missing */
void tide_xrce_get_acknack(tide_cdr_t *cdr, tide_xrce_acknack_t *body);

typedef struct tide_xrce_heartbeat {
  uint16_t first_unacknowledged;
  uint16_t last;
  uint8_t stream;
} tide_xrce_heartbeat_t;
void tide_xrce_put_heartbeat(tide_cdr_t *cdr, const tide_xrce_heartbeat_t *body);
void tide_xrce_get_heartbeat(tide_cdr_t *cdr, tide_xrce_heartbeat_t *body);

typedef struct tide_xrce_get_info_body {
  tide_xrce_request_t request;
  uint32_t mask;
} tide_xrce_get_info_body_t;
void tide_xrce_put_get_info(tide_cdr_t *cdr, const tide_xrce_get_info_body_t *body);
void tide_xrce_get_get_info(tide_cdr_t *cdr, tide_xrce_get_info_body_t *body);

typedef struct tide_xrce_info {
  tide_xrce_request_t related;
  uint8_t status, implementation_status; /* implementation status 1: the agent knows this session; 0: unknown session */
  uint16_t vendor;
  uint8_t version_major, version_minor;
} tide_xrce_info_t;
/* Writes the form that the stock agent sends (configuration and activity present, no address). */
void tide_xrce_put_info(tide_cdr_t *cdr, const tide_xrce_info_t *body);
/* Reads the statuses and, where present, version and vendor; the rest is skipped. */
void tide_xrce_get_info(tide_cdr_t *cdr, tide_xrce_info_t *body);

/* ---- discovery: a client sends a GET_INFO to this group; agents answer with an INFO that has addresses. ---- */

#define TIDE_XRCE_DISCOVERY_GROUP "239.255.0.2"
#define TIDE_XRCE_DISCOVERY_PORT 7400u

typedef struct tide_xrce_locator {
  uint8_t address[4]; /* IPv4, first octet first */
  uint16_t port;
} tide_xrce_locator_t;
#define TIDE_XRCE_DISCOVERY_QUESTION_BYTES 16u
#define TIDE_XRCE_DISCOVERY_ANSWER_BYTES 44u

/* Write the query into a buffer of TIDE_XRCE_DISCOVERY_QUESTION_BYTES. Returns its size in bytes. */
size_t tide_xrce_put_discovery_question(uint8_t *bytes);
/* True when a message is a discovery query; stores in *request the ids that the answer repeats. */
bool tide_xrce_get_discovery_question(const uint8_t *bytes, size_t length, tide_xrce_request_t *request);
/* Write an answer with one address into a buffer of TIDE_XRCE_DISCOVERY_ANSWER_BYTES. Returns its size in bytes. */
size_t tide_xrce_put_discovery_answer(uint8_t *bytes, const tide_xrce_info_t *info, tide_xrce_locator_t locator);
/* Reads the first IPv4 address with a port from an answer of version 1; addresses of other kinds are skipped.
 * TIDE_ERROR_MALFORMED: not such an answer. TIDE_ERROR_NOT_FOUND: it has no such address. */
int tide_xrce_get_discovery_answer(const uint8_t *bytes, size_t length, tide_xrce_locator_t *locator);

typedef struct tide_xrce_time {
  int32_t seconds;
  uint32_t nanoseconds;
} tide_xrce_time_t;
void tide_xrce_put_timestamp(tide_cdr_t *cdr, tide_xrce_time_t body);
tide_xrce_time_t tide_xrce_get_timestamp(tide_cdr_t *cdr);
typedef struct tide_xrce_timestamp_reply {
  tide_xrce_time_t transmit, receive, originate;
} tide_xrce_timestamp_reply_t;
void tide_xrce_put_timestamp_reply(tide_cdr_t *cdr, const tide_xrce_timestamp_reply_t *body);
void tide_xrce_get_timestamp_reply(tide_cdr_t *cdr, tide_xrce_timestamp_reply_t *body);
tide_xrce_time_t tide_xrce_time_from_ns(int64_t ns);
int64_t tide_xrce_time_to_ns(tide_xrce_time_t time);

typedef struct tide_xrce_read_data {
  tide_xrce_request_t request;
  uint8_t stream; /* stream on which the reader wants its data */
  uint8_t format;
  const char *filter; /* null: none */
  size_t filter_length;
  bool has_delivery_control;
  uint16_t max_samples; /* 0xFFFF: no limit; 0: cancel */
  uint16_t max_elapsed_time_s;
  uint16_t max_bytes_per_second;
  uint16_t min_pace_period_ms;
} tide_xrce_read_data_t;
void tide_xrce_put_read_data(tide_cdr_t *cdr, const tide_xrce_read_data_t *body);
void tide_xrce_get_read_data(tide_cdr_t *cdr, tide_xrce_read_data_t *body);

/* ---- CREATE: what an object is ---- */

enum { /* QoS flags of the binary representation */
       TIDE_XRCE_QOS_RELIABLE = 0x01,
       TIDE_XRCE_QOS_KEEP_LAST = 0x02,
       TIDE_XRCE_QOS_OWNERSHIP_EXCLUSIVE = 0x04,
       TIDE_XRCE_QOS_TRANSIENT_LOCAL = 0x08,
       TIDE_XRCE_QOS_TRANSIENT = 0x10,
       TIDE_XRCE_QOS_PERSISTENT = 0x20
};

typedef struct tide_text {
  const char *characters;
  size_t length;
} tide_text_t;

/* One object, in any of the three representations. Fields not used by the kind or representation are zero. Strings are
 * views (get) or read at once (put); no NUL needed. */
typedef struct tide_xrce_object {
  uint8_t kind;           /* TIDE_XRCE_KIND_* */
  uint8_t representation; /* TIDE_XRCE_BY_* */
  bool has_name, has_qos, has_depth, has_deadline, has_lifespan, has_request_topic, has_reply_topic;
  uint16_t parent;    /* object id of the participant, publisher or subscriber */
  uint16_t topic;     /* datawriter, datareader: object id of the topic */
  int16_t domain;     /* participants */
  uint16_t qos_flags; /* TIDE_XRCE_QOS_* */
  uint16_t depth;
  uint32_t deadline_ms, lifespan_ms;
  tide_text_t text; /* the XML or the reference; empty XML is one NUL on the wire */
  tide_text_t name; /* participant: its name; topic: its name; requester, replier: the service */
  tide_text_t type; /* topic */
  tide_text_t request_type, reply_type, request_topic, reply_topic; /* requester, replier */
} tide_xrce_object_t;

typedef struct tide_xrce_create {
  tide_xrce_request_t request; /* request id and the id that the object gets */
  tide_xrce_object_t object;
} tide_xrce_create_t;
void tide_xrce_put_create(tide_cdr_t *cdr, const tide_xrce_create_t *body);
/* Like tide_xrce_put_create, from separate parts. */
void tide_xrce_put_creation(tide_cdr_t *cdr, tide_xrce_request_t request, const tide_xrce_object_t *object);
void tide_xrce_get_create(tide_cdr_t *cdr, tide_xrce_create_t *body);

TIDE_EXTERN_C_END
#endif
