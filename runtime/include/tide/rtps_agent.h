/* SPDX-License-Identifier: Apache-2.0 */
/* A link without an agent on a host: an agent for one client that runs on the board itself. To the session it is a
 * link, over which it receives and sends the same XRCE messages as with an agent on a host; towards ROS 2 it is a
 * DDSI-RTPS participant (tide/rtps_participant.h). So everything above the link stays as it is: publishing from the
 * pool, streams by level, received frames in the executor's order.
 *
 * A further link of this kind would need the same functions: accept a message from the session (tide_rtps_agent_write),
 * return the next message for the session (tide_rtps_agent_read), and report when to call again.
 *
 * Agent and participant are state machines without threads, sockets, clock or allocation. While tide_rtps_agent_is_up,
 * the caller passes datagrams to and from agent->participant (tide_participant_receive, tide_participant_poll). Not
 * thread-safe: the caller locks.
 *
 * Publishers become writers with the history of their QoS; KEEP_ALL gets the deepest history that the memory allows. A
 * reliable reader loses samples that it has not acknowledged before they are overwritten. This is counted, and no
 * publisher waits for a reader. Writers send with the level of their latest sample. Samples for a reliable subscription
 * are refused while the executor has not processed the frames before them, and ROS 2 sends them again. With KEEP_LAST,
 * they replace the oldest ones (in `dropped`) once as many as the depth wait. A best-effort sample without a free frame
 * replaces the oldest one that waits for its KEEP_LAST subscription.
 *
 * A request that finds no server within 5 s, or that newer ones replace before a server has acknowledged it, is
 * dropped, and so is a reply whose client is gone. A STATUS reports it to the session, as on a host.
 *
 * Not supported: CREATE by reference or XML; samples above TIDE_RTPS_SAMPLE_BYTES (counted and reported); type hashes;
 * the graph of rcl/graph.h. */
#ifndef TIDE_RTPS_AGENT_H
#define TIDE_RTPS_AGENT_H

#include "tide/rtps_participant.h"
#include "tide/stream.h"
#include "tide/xrce.h"

TIDE_EXTERN_C_BEGIN

/* Longest names, with NUL: NAME for topics, and for nodes with their namespace; TYPE for types. */
#ifndef TIDE_RTPS_NAME_BYTES
#define TIDE_RTPS_NAME_BYTES 80
#endif
#ifndef TIDE_RTPS_TYPE_BYTES
#define TIDE_RTPS_TYPE_BYTES 64
#endif
/* Streams of the session in each direction: TIDE_STREAMS of tide/pools.h, plus the stream of requests. */
#ifndef TIDE_RTPS_AGENT_STREAMS
#define TIDE_RTPS_AGENT_STREAMS 9
#endif
#define TIDE_RTPS_AGENT_ANSWERS 8u
/* Bytes of a history slot besides the sample: encapsulation, and the identity before a service's reply. */
#define TIDE_RTPS_SLOT_OVERHEAD_BYTES 28u

typedef struct tide_rtps_agent_node {
  uint16_t object; /* id of the XRCE participant; 0: free entry */
  tide_rtps_node_t node;
  char text[TIDE_RTPS_NAME_BYTES + 1]; /* namespace, NUL, name */
} tide_rtps_agent_node_t;

typedef struct tide_rtps_agent_topic {
  uint16_t object; /* id of the topic, or of the service or client that uses it; 0: free entry */
  uint16_t parent;
  char name[TIDE_RTPS_NAME_BYTES], type[TIDE_RTPS_TYPE_BYTES];
} tide_rtps_agent_topic_t;

typedef struct tide_rtps_output { /* a writer: for a publisher, a service's replies or a client's requests */
  uint16_t object;                /* 0: free entry */
  tide_rtps_agent_topic_t *topic;
  tide_rtps_writer_t writer;
  uint16_t *requests; /* array of config.history elements; for a client: the id of each request in the history */
  uint8_t *room; /* where a sample that the session sends in fragments is stored; null: no such sample is under way */
  size_t filled;
  uint8_t stream;  /* stream of these fragments */
  uint8_t unheard; /* number of dropped requests or replies that the session has not been told of */
  uint16_t request;
} tide_rtps_output_t;

typedef struct tide_rtps_input { /* a reader: for a subscription, a service's requests or a client's replies */
  uint16_t object;               /* 0: free entry */
  tide_rtps_agent_topic_t *topic;
  tide_rtps_reader_t reader;
  struct tide_rtps_agent *agent;
  uint16_t depth;   /* history depth of a KEEP_LAST subscription; 0: any other reader */
  uint16_t request; /* id of the READ_DATA; 0: none received yet */
  uint8_t stream;
  uint8_t frames;  /* number of outbox frames that hold its samples */
  bool is_refused; /* a sample was refused, because no frame was free */
} tide_rtps_input_t;

typedef struct tide_rtps_frame { /* element of the outbox: a message to the session, with its header */
  uint16_t bytes;                /* 0: free element */
  uint16_t sequence;
  uint8_t stream;
  bool is_sent;
  tide_rtps_input_t *input; /* whose sample it holds; null: the input was removed meanwhile */
} tide_rtps_frame_t;

typedef struct tide_rtps_agent_stream { /* a stream towards the session */
  uint8_t id;                           /* 0: free element */
  uint8_t tries;
  uint16_t next,
      acknowledged;     /* next: number of the next frame; the session has acknowledged all below `acknowledged` */
  int64_t heartbeat_ns; /* time of the next HEARTBEAT; INT64_MAX: none is due */
} tide_rtps_agent_stream_t;

typedef struct tide_rtps_agent_counters {
  uint32_t malformed;   /* malformed messages from the session, or submessages in them */
  uint32_t unsupported; /* submessages of unsupported kinds or contents */
  uint32_t refused;     /* samples of reliable writers for which no frame was free; the writers send them again */
  uint32_t dropped;   /* samples of best-effort writers for which no frame was free, samples larger than the outbox, and
                       * samples that a newer one of a KEEP_LAST subscription replaced in the outbox */
  uint32_t too_large; /* the program's samples that were larger than a slot of the history */
  uint32_t unknown;   /* replies to requests that are not in the history any more */
  uint32_t resent;    /* frames sent to the session again */
} tide_rtps_agent_counters_t;

typedef struct tide_rtps_agent_config {
  /* Called when the program's first node is created. Fills in prefix, address and participant, and other members that
   * differ from their defaults; peers and matches are set already. False: this board cannot be reached in this
   * domain. */
  bool (*start)(void *context, uint32_t domain, tide_participant_config_t *config);
  /* Called on the thread that reads or writes, with the same context, for each event of the participant: matches, lost
   * samples, full tables. Also for samples that are too large for the history (the local endpoint is then a writer) or
   * for the outbox. Null: none. */
  void (*event)(void *context, const tide_rtps_event_t *event);
  uint8_t (*dscp)(uint8_t level); /* for the transports of the ports, see tide/rclc_rtps.h. Null: 0 for every level */
  void *context;
  tide_rtps_peer_t *peers;
  tide_rtps_match_t *matches;
  tide_rtps_agent_node_t *nodes;
  tide_rtps_agent_topic_t *topics; /* one for each output and input */
  tide_rtps_output_t *outputs;
  tide_rtps_input_t *inputs;
  tide_rtps_slot_t *slots; /* `history` elements for each output; related, requests and histories likewise */
  tide_rtps_sample_identity_t *related;
  uint16_t *requests;
  uint8_t *histories;        /* sample_bytes + TIDE_RTPS_SLOT_OVERHEAD_BYTES for each element */
  uint8_t *assemblies;       /* sample_bytes + 4 for each input */
  tide_rtps_frame_t *frames; /* the outbox: one for each input, and some for bursts; at most the session's window */
  uint8_t *frame_memory;     /* frame_bytes for each */
  uint16_t peer_count, match_count, node_count, output_count, input_count, frame_count;
  uint16_t history;     /* largest depth of a history */
  uint16_t frame_bytes; /* the session's mtu */
  uint32_t sample_bytes;
} tide_rtps_agent_config_t;

typedef struct tide_rtps_agent {
  tide_rtps_agent_config_t config;
  tide_participant_t participant;
  tide_rtps_agent_counters_t counters;
  /* Set by the agent. */
  uint8_t session; /* 0: no client */
  bool is_up, is_leaving;
  uint32_t key, domain;
  int64_t now_ns, wall_ns;
  tide_input_stream_t inputs[TIDE_RTPS_AGENT_STREAMS];
  tide_rtps_agent_stream_t streams[TIDE_RTPS_AGENT_STREAMS];
  struct {
    uint8_t session, id, length;
    uint8_t body[28];
  } answers[TIDE_RTPS_AGENT_ANSWERS];
  uint8_t first_answer, answer_count;
} tide_rtps_agent_t;

/* The configuration is copied. What it points to is not copied and must stay valid. */
void tide_rtps_agent_init(tide_rtps_agent_t *agent, const tide_rtps_agent_config_t *config);

/* True if the participant exists: pass datagrams to it, and poll it. */
static inline bool tide_rtps_agent_is_up(const tide_rtps_agent_t *agent) { return agent->is_up; }

/* Accepts a message from the session. False: offer the message again after further calls of tide_rtps_agent_read.
 * wall_ns: time since 1970 minus the clock of now_ns; 0: unknown. */
bool tide_rtps_agent_write(tide_rtps_agent_t *agent, const uint8_t *bytes, size_t length, int64_t now_ns,
                           int64_t wall_ns);
/* Returns the size of the next message for the session, at most frame_bytes, the most urgent level first. 0: there is
 * no message, and none before *deadline_ns unless something is written or received. */
size_t tide_rtps_agent_read(tide_rtps_agent_t *agent, uint8_t *bytes, int64_t now_ns, int64_t *deadline_ns);
/* Ends the participant: the next polls return datagrams that report this to the other participants. */
void tide_rtps_agent_close(tide_rtps_agent_t *agent, int64_t now_ns);

TIDE_EXTERN_C_END
#endif
