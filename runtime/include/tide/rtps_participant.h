/* SPDX-License-Identifier: Apache-2.0 */
/* A DDSI-RTPS participant: discovers the ROS 2 nodes of its domain and exchanges samples with them, without an agent.
 *
 * A state machine without threads, sockets, clock or allocation. The program passes every received datagram to
 * tide_participant_receive, and calls tide_participant_poll for the datagrams to send until there is none. It needs one
 * socket, bound to TIDE_RTPS_PORT_DISCOVERY(domain, participant), and a second one for multicast, bound to
 * TIDE_RTPS_PORT_MULTICAST(domain), unless all participants are found at given addresses. Both may be read into the
 * same buffer; a sample of another participant can be one datagram of 64 KiB.
 *
 * All memory is the caller's, and stays in use until the participant is abandoned. Not thread-safe: the caller locks.
 * Times are nanoseconds of a clock that never goes back. Callbacks run inside tide_participant_receive and
 * tide_participant_poll; they may write samples, and must not call other functions of this header.
 *
 * What does not fit is counted and reported to config.event, because another participant must not cause an error of the
 * program. The cost of each call is proportional to the bytes, and to the endpoints, matches and remote participants in
 * the tables. */
#ifndef TIDE_RTPS_PARTICIPANT_H
#define TIDE_RTPS_PARTICIPANT_H

#include "tide/rtps.h"

TIDE_EXTERN_C_BEGIN

/* Datagrams sent are at most this long unless configured otherwise: the UDP payload that fits an Ethernet frame
 * (IPv4). */
#define TIDE_RTPS_DATAGRAM_BYTES 1472u
#define TIDE_RTPS_DATAGRAM_BYTES_MINIMUM 768u /* an announcement fits, with 300 characters of names */
#define TIDE_RTPS_FRAGMENTS 256u              /* largest number of fragments of a received sample */

/* ---- local nodes and endpoints: zero them, fill in the first part, add them, and leave them in place ---- */

/* A node as `ros2 node list` shows it. Endpoints without a node are listed under an unknown node. */
typedef struct tide_rtps_node {
  const char *name, *name_space; /* "driver", "/robot"; the namespace starts with a slash */
  struct tide_rtps_node *next;   /* set by the participant */
} tide_rtps_node_t;

typedef struct tide_rtps_endpoint {
  const char *topic, *type;     /* as DDS has them: "rt/chatter", "std_msgs::msg::dds_::String_" */
  const char *type_hash;        /* "RIHS01_..."; null: none is announced */
  const tide_rtps_node_t *node; /* null: the endpoint belongs to no node */
  tide_rtps_qos_t qos;          /* start from tide_rtps_qos_default. Lifespan and leases are announced, not enforced */
  uint8_t level;                /* endpoints of a larger level send first */
  void *context;                /* the program's */
  /* Set by the participant. */
  struct tide_rtps_endpoint *next;
  uint32_t entity;
  int64_t number; /* sequence number of its announcement */
  bool is_writer;
} tide_rtps_endpoint_t;

typedef struct tide_rtps_slot { /* element of a writer's history */
  uint32_t bytes;               /* size of the sample, with its encapsulation header */
  bool is_unheard;              /* of a service or client: no reader that it is for has been matched so far */
  int64_t source_ns, written_ns;
} tide_rtps_slot_t;

/* A writer keeps its last samples in `depth` slots of slot_bytes each (the largest sample + 4, with `related` + 20). If
 * a slot is overwritten, its sample is lost to the reliable readers that have not acknowledged it. */
typedef struct tide_rtps_writer {
  tide_rtps_endpoint_t endpoint;
  tide_rtps_slot_t *slots;
  uint8_t *memory; /* depth * slot_bytes */
  /* Array of depth elements. For a service's replies: the request that each reply answers. For a client's requests: the
   * reader of the replies. null: the writer of a topic. */
  tide_rtps_sample_identity_t *related;
  uint32_t depth, slot_bytes;
  /* For services and clients: for how long a sample without a reader waits for one, and how long after it was written a
   * reply still goes to its reader if that is matched later. A sample that finds no reader in this time, or that is
   * overwritten before a reader has acknowledged it, is reported (TIDE_RTPS_EVENT_UNHEARD). 0: no sample waits. */
  int64_t hold_ns;
  int64_t first, last; /* numbers of the samples in the slots; first = last + 1: none */
} tide_rtps_writer_t;

typedef struct tide_rtps_sample {
  const uint8_t *bytes; /* CDR without the encapsulation header; valid during the callback */
  size_t length;
  bool big_endian;
  tide_rtps_sample_identity_t identity;
  /* In a reply: the client's reader and the number of its request. In a request: the guid to write into the reply,
   * together with `identity.sequence`. */
  tide_rtps_sample_identity_t related;
  int64_t source_ns; /* source timestamp of the writer, since 1970; 0: unknown */
} tide_rtps_sample_t;

struct tide_rtps_match;

/* Samples are passed to the program as they arrive, those of a reliable writer in order. The reader keeps no samples,
 * so after a lost sample the writer has to send all later ones again, too. Only a fragmented sample is assembled in
 * memory, for one writer at a time. */
typedef struct tide_rtps_reader {
  tide_rtps_endpoint_t endpoint;
  /* context: endpoint.context. False: there is no room. A reliable writer's sample is then requested again, at once
   * after tide_participant_resume; a best-effort writer's sample is lost. */
  bool (*sample)(void *context, const tide_rtps_sample_t *sample);
  uint8_t *memory;                 /* null: fragmented samples are skipped */
  uint32_t memory_bytes;           /* size of the largest fragmented sample, plus 4 */
  struct {                         /* set by the participant */
    struct tide_rtps_match *match; /* writer of the sample that is being assembled; null: none is */
    int64_t sequence, progress_ns;
    uint32_t sample_bytes, received; /* received: fragments */
    uint16_t fragment_bytes;
    uint32_t bitmap[TIDE_RTPS_FRAGMENTS / 32];
  } assembly;
} tide_rtps_reader_t;

/* ---- tables ---- */

typedef struct tide_rtps_proxy { /* state of a remote reader or writer */
  int64_t next;                  /* reader: it has acknowledged all below. writer: the next sample to deliver */
  int64_t end;        /* reader: all below were sent once. writer: samples from here on are not known to exist */
  int64_t due_ns;     /* time of the next HEARTBEAT or ACKNACK; INT64_MAX: none */
  uint32_t requested; /* reader: bit i: it has requested sample next + i again */
  uint32_t count_in, heard_ms;
  uint8_t tries;
  bool counted, answered, owes_answer;
} tide_rtps_proxy_t;

typedef struct tide_rtps_peer { /* a remote participant: 256 bytes on a Cortex-M */
  uint8_t prefix[TIDE_RTPS_PREFIX_BYTES];
  uint8_t address[4];  /* address from which it announced itself */
  uint16_t port, data; /* its ports for discovery and for samples; port 0: a free entry */
  uint16_t graph_port; /* port of its reader of ros_discovery_info */
  bool is_owed_announcement;
  int64_t lease_ns, expires_ns, since_ns;
  tide_rtps_proxy_t readers[3], writers[2]; /* indices: 0 publications, 1 subscriptions, 2 the graph */
  uint32_t graph_reader;                    /* entity of the reader of ros_discovery_info; 0: none is known */
} tide_rtps_peer_t;

typedef struct tide_rtps_match { /* a pair of a local and a remote endpoint: 64 bytes on a Cortex-M */
  tide_rtps_endpoint_t *local;   /* null: a free entry */
  uint32_t remote;               /* entity id of the remote endpoint */
  uint16_t peer, port;
  uint8_t policy; /* 0: they match; else the QoS policy that prevents the match */
  bool reliable, wants_history;
  bool is_refused; /* the program had no room for the next sample of this reliable writer */
  tide_rtps_proxy_t proxy;
  /* fragment: next fragment of the sample that is being sent. repair_fragment: next fragment of the sample that is
   * being repaired. If repair_bits is not 0, only the fragments repair_fragment + n whose bit n is set are repaired. */
  uint16_t fragment, repair_fragment;
  uint32_t repair_bits;
} tide_rtps_match_t;

/* ---- the participant ---- */

typedef enum tide_rtps_event_kind {
  TIDE_RTPS_EVENT_MATCHED,
  TIDE_RTPS_EVENT_UNMATCHED,
  TIDE_RTPS_EVENT_INCOMPATIBLE, /* once for each pair: count is the DDS policy id */
  TIDE_RTPS_EVENT_LOST,         /* samples that a reliable writer no longer had, or lost samples of a best-effort one */
  TIDE_RTPS_EVENT_TOO_LARGE,    /* a sample without memory for it; count: its bytes, as far as they are known */
  TIDE_RTPS_EVENT_MATCHES_FULL, /* a matching endpoint was not stored; it is stored when an entry becomes free */
  TIDE_RTPS_EVENT_PEERS_FULL,   /* a participant was not stored; reported again only after there was a free entry */
  TIDE_RTPS_EVENT_UNHEARD       /* a request or reply was dropped before a reader had it; count: its number */
} tide_rtps_event_kind_t;

typedef struct tide_rtps_event {
  tide_rtps_event_kind_t kind;
  const tide_rtps_endpoint_t *local; /* null for TIDE_RTPS_EVENT_PEERS_FULL */
  tide_guid_t remote;                /* entity 0: none is known */
  int64_t count;
} tide_rtps_event_t;

typedef struct tide_rtps_counters {
  uint32_t malformed;    /* datagrams, or submessages in them */
  uint32_t strange;      /* datagrams whose participant is not in the table, or has another address */
  uint32_t duplicates;   /* samples received again */
  uint32_t ahead;        /* samples of reliable writers received before an earlier one, and so requested again */
  uint32_t lost;         /* lost samples, as in TIDE_RTPS_EVENT_LOST */
  uint32_t refused;      /* samples for which the program had no room */
  uint32_t unsupported;  /* samples with another encoding than plain CDR */
  uint32_t too_large;    /* fragmented samples that were too large for the reader's memory */
  uint32_t overwritten;  /* samples that were overwritten before they were sent to a matched reader */
  uint32_t unheard;      /* requests and replies as in TIDE_RTPS_EVENT_UNHEARD */
  uint32_t resent;       /* samples, and fragments, sent again */
  uint32_t peers_full;   /* announcements of participants for which the table had no entry */
  uint32_t matches_full; /* matching endpoints for which the table had no entry */
  uint32_t evicted;      /* participants without a matching endpoint, removed to make room for others */
  uint32_t restarted;    /* participants that began anew with the same GUID */
} tide_rtps_counters_t;

typedef struct tide_participant_config {
  /* Must differ between participants, and from start to start: as long as a participant with the prefix of an earlier
   * run announces itself, Fast DDS keeps the state of that run and may accept no samples. The first two octets are the
   * vendor's (TIDE_RTPS_VENDOR). */
  uint8_t prefix[TIDE_RTPS_PREFIX_BYTES];
  uint8_t address[4]; /* address at which others reach this participant */
  uint32_t domain;
  uint16_t participant;  /* number of this participant among those at its address, 0 to 119; selects the port */
  int64_t lease_ns;      /* others forget this participant after this time without a message from it; 0: 20 s */
  const char *user_data; /* null: "enclave=/;" */
  bool no_multicast;     /* announce only to `known` */
  /* Addresses to which this participant announces itself: to participants 0 to known_participants - 1 at each of
   * them. */
  const uint8_t (*known)[4];
  uint16_t known_count, known_participants;
  uint16_t datagram_bytes; /* 0: TIDE_RTPS_DATAGRAM_BYTES */
  tide_rtps_peer_t *peers;
  uint16_t peer_count;
  tide_rtps_match_t *matches;
  uint16_t match_count;
  void (*event)(void *context, const tide_rtps_event_t *event); /* may be null */
  void *context;
} tide_participant_config_t;

typedef struct tide_participant {
  tide_participant_config_t config;
  tide_rtps_counters_t counters;
  int64_t wall_ns; /* written by the program: time since 1970 minus its clock; 0: samples have no timestamp */
  /* Set by the participant. */
  tide_rtps_node_t *nodes;
  tide_rtps_endpoint_t *endpoints;
  tide_rtps_endpoint_t graph; /* the writer of ros_discovery_info, once there is a node */
  int64_t announced[3]; /* last sequence numbers: announced publications, announced subscriptions, graph samples */
  struct {
    int64_t number;
    uint32_t entity;
  } removed[2][4]; /* the four endpoints of each kind that were removed last */
  uint32_t entities;
  uint32_t count; /* count of the last HEARTBEAT or ACKNACK; one counter for all receivers */
  uint16_t fragment_bytes, match_turn, peer_turn;
  uint32_t announcement; /* next step of the present round of announcements */
  uint8_t early_announcements;
  int64_t announce_ns;
  int64_t unheard_ns; /* when a request or reply has waited for a reader long enough; INT64_MAX: none waits */
  bool has_told_full, has_refused_match, is_leaving;
} tide_participant_t;

/* The QoS of rmw_qos_profile_default: reliable, volatile, no deadline, infinite lease and lifespan. */
tide_rtps_qos_t tide_rtps_qos_default(void);

/* TIDE_ERROR_ARGUMENT: a missing pointer, an empty table, a domain or participant number without ports, datagram_bytes
 * below the minimum. The configuration is copied; what it points to is not. */
int tide_participant_init(tide_participant_t *participant, const tide_participant_config_t *config, int64_t now_ns);

/* May be called at any time. The first node makes this participant publish ros_discovery_info: its nodes with their
 * endpoints, as `ros2 node list` and `ros2 topic info -v` show them. Call tide_participant_remove for a node's
 * endpoints before remove_node. TIDE_ERROR_TOO_LARGE: the nodes and endpoints do not fit a datagram (see
 * add_writer). */
int tide_participant_add_node(tide_participant_t *participant, tide_rtps_node_t *node, int64_t now_ns);
void tide_participant_remove_node(tide_participant_t *participant, const tide_rtps_node_t *node);

/* May be called at any time. If remote participants are known already, adding an endpoint makes them announce their
 * endpoints again. TIDE_ERROR_FULL: 65,535 endpoints were added before; TIDE_ERROR_TOO_LARGE: the names do not fit a
 * datagram, a sample has too many fragments, or ros_discovery_info would not fit a datagram (it has 16 bytes for each
 * endpoint of a node, and 32 bytes plus the names for each node; 80 endpoints of one node fit
 * TIDE_RTPS_DATAGRAM_BYTES). */
int tide_participant_add_writer(tide_participant_t *participant, tide_rtps_writer_t *writer, int64_t now_ns);
int tide_participant_add_reader(tide_participant_t *participant, tide_rtps_reader_t *reader, int64_t now_ns);
/* The endpoint is the caller's again. Only the last four removed endpoints of each kind are announced as gone. A remote
 * participant that misses an announcement keeps the endpoint as long as it knows this participant. */
void tide_participant_remove(tide_participant_t *participant, tide_rtps_endpoint_t *endpoint, int64_t now_ns);

/* write_begin returns room for a sample of `bytes` octets (CDR, without encapsulation header), or null when it is
 * larger than a slot. If the history is full, it removes the oldest sample. write_end publishes the sample, which must
 * be little-endian, and returns its number. length: at most the bytes of write_begin and, for a writer with `related`,
 * slot_bytes - 20. related: for a writer with `related`, else null. */
uint8_t *tide_participant_write_begin(tide_participant_t *participant, tide_rtps_writer_t *writer, size_t bytes);
int64_t tide_participant_write_end(tide_participant_t *participant, tide_rtps_writer_t *writer, size_t length,
                                   const tide_rtps_sample_identity_t *related, int64_t now_ns);
/* Report that there is room for samples of this reader again. */
void tide_participant_resume(tide_participant_t *participant, const tide_rtps_reader_t *reader, int64_t now_ns);
/* Returns the GUID of a local endpoint. */
tide_guid_t tide_participant_guid(const tide_participant_t *participant, const tide_rtps_endpoint_t *endpoint);
/* True if all matched reliable readers have acknowledged all samples. */
bool tide_participant_is_acknowledged(const tide_participant_t *participant, const tide_rtps_writer_t *writer);
/* Number of remote endpoints with which this endpoint is matched. */
size_t tide_participant_matched(const tide_participant_t *participant, const tide_rtps_endpoint_t *endpoint);

/* Process a received datagram and the address it came from. Its contents may be arbitrary. */
void tide_participant_receive(tide_participant_t *participant, const uint8_t *bytes, size_t length,
                              const uint8_t address[4], int64_t now_ns);

typedef struct tide_rtps_datagram {
  uint8_t *bytes;                 /* the caller's buffer of config.datagram_bytes */
  bool (*is_full)(uint8_t level); /* no datagram of this level can be sent now, so none is returned; null: all can */
  size_t length;
  tide_rtps_locator_t to;
  uint8_t level;       /* of the endpoint; 0 for discovery */
  int64_t deadline_ns; /* if there is no datagram: when to poll again, unless something is received or written before */
} tide_rtps_datagram_t;
/* True: send this datagram, then call again. Order: samples and acknowledgments by the level of their endpoint (the
 * most urgent first, equal levels in turn), then discovery. */
bool tide_participant_poll(tide_participant_t *participant, int64_t now_ns, tide_rtps_datagram_t *datagram);

/* Leave the domain: the next polls return datagrams that report this to the other participants, and nothing else. */
void tide_participant_leave(tide_participant_t *participant, int64_t now_ns);

TIDE_EXTERN_C_END
#endif
