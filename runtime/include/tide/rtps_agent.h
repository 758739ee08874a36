/* SPDX-License-Identifier: Apache-2.0 */
/* The second wire: an agent for one client that runs on the board itself. To the session it is a link, over which it
 * receives and sends the same XRCE messages as with an agent on a host; towards ROS 2 it is a DDSI-RTPS participant
 * (tide/rtps_participant.h). So everything above the link stays as it is: publishing from the pool, streams by level,
 * received frames in the executor's order.
 *
 * Another wire, to which a session speaks the same way, needs the same three things: accept a message of the session
 * (tide_rtps_agent_write), have the next one for it (tide_rtps_agent_read), and say when to ask again.
 *
 * A state machine without threads, sockets, clock or allocation, as the participant, whose datagrams the caller passes
 * on: tide_participant_receive and tide_participant_poll on agent->participant while tide_rtps_agent_is_up. Not
 * thread-safe: the caller locks.
 *
 * Publishers become writers with the history of their QoS; KEEP_ALL gets the deepest history that the memory allows. A
 * reliable reader loses samples that it has not acknowledged before they are overwritten. This is counted, and no
 * publisher waits for a reader. Writers send with the level of their latest sample. Samples for a reliable subscription
 * are refused while the executor has not processed the frames before them, and ROS 2 sends them again.
 *
 * Not supported: CREATE by reference or XML; samples above TIDE_RTPS_SAMPLE_BYTES (counted); type hashes; the graph of
 * rcl/graph.h. */
#ifndef TIDE_RTPS_AGENT_H
#define TIDE_RTPS_AGENT_H

#include "tide/rtps_participant.h"
#include "tide/stream.h"
#include "tide/xrce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Longest names with NUL: of topics and of nodes with their namespace, and of types. */
#ifndef TIDE_RTPS_NAME_BYTES
#define TIDE_RTPS_NAME_BYTES 80
#endif
#ifndef TIDE_RTPS_TYPE_BYTES
#define TIDE_RTPS_TYPE_BYTES 64
#endif
/* Streams of the session each way, as TIDE_STREAMS of tide/pools.h and the stream of requests. */
#ifndef TIDE_RTPS_AGENT_STREAMS
#define TIDE_RTPS_AGENT_STREAMS 9
#endif
#define TIDE_RTPS_AGENT_ANSWERS 8u
/* Bytes of a slot of a writer's history besides the sample: encapsulation, and the identity before a service's reply.
 */
#define TIDE_RTPS_SLOT_OVERHEAD_BYTES 28u

typedef struct tide_rtps_agent_node {
  uint16_t object; /* the XRCE participant; 0: free */
  tide_rtps_node_t node;
  char text[TIDE_RTPS_NAME_BYTES + 1]; /* namespace, NUL, name */
} tide_rtps_agent_node_t;

typedef struct tide_rtps_agent_topic {
  uint16_t object; /* the topic, or a service's or client's; 0: free */
  uint16_t parent;
  char name[TIDE_RTPS_NAME_BYTES], type[TIDE_RTPS_TYPE_BYTES];
} tide_rtps_agent_topic_t;

typedef struct tide_rtps_output { /* of a publisher, of a service's replies, of a client's requests */
  uint16_t object;                /* 0: free */
  tide_rtps_agent_topic_t *topic;
  tide_rtps_writer_t writer;
  uint16_t *requests; /* config.history entries; of a client: the id of each request in the history */
  uint8_t *room;      /* of a sample that arrives in fragments; null: none does */
  size_t filled;
  uint8_t stream; /* of these fragments */
  uint16_t request;
} tide_rtps_output_t;

typedef struct tide_rtps_input { /* of a subscription, of a service's requests, of a client's replies */
  uint16_t object;               /* 0: free */
  tide_rtps_agent_topic_t *topic;
  tide_rtps_reader_t reader;
  struct tide_rtps_agent *agent;
  uint16_t request; /* READ_DATA; 0: not yet */
  uint8_t stream;
  uint8_t frames;  /* of its samples in the outbox */
  bool is_refused; /* a sample, for lack of a frame */
} tide_rtps_input_t;

typedef struct tide_rtps_frame { /* of the outbox: a message to the session, with its header */
  uint16_t bytes;                /* 0: free */
  uint16_t sequence;
  uint8_t stream;
  bool is_sent;
  tide_rtps_input_t *input; /* null: removed meanwhile */
} tide_rtps_frame_t;

typedef struct tide_rtps_agent_stream { /* towards the session */
  uint8_t id;                           /* 0: free */
  uint8_t tries;
  uint16_t next, acknowledged; /* next to give; all below are acknowledged */
  int64_t heartbeat_ns;        /* INT64_MAX: none is due */
} tide_rtps_agent_stream_t;

typedef struct tide_rtps_agent_counters {
  uint32_t malformed;   /* messages of the session, or submessages in them */
  uint32_t unsupported; /* submessages */
  uint32_t refused;     /* samples of reliable writers for which no frame was free; they come again */
  uint32_t dropped;     /* the same, of unreliable writers; and samples that no frames of the outbox can hold */
  uint32_t too_large;   /* samples of the program above the slots of the history */
  uint32_t unknown;     /* replies to requests that are not in the history any more */
  uint32_t resent;      /* frames, to the session */
} tide_rtps_agent_counters_t;

typedef struct tide_rtps_agent_config {
  /* Called when the program's first node is created. Fills in prefix, address, participant and whatever is not default
   * of the rest; peers and matches are given already. False: it cannot be reached in this domain. */
  bool (*start)(void *context, uint32_t domain, tide_participant_config_t *config);
  void *context;
  tide_rtps_peer_t *peers;
  tide_rtps_match_t *matches;
  tide_rtps_agent_node_t *nodes;
  tide_rtps_agent_topic_t *topics; /* one for each output and input */
  tide_rtps_output_t *outputs;
  tide_rtps_input_t *inputs;
  tide_rtps_slot_t *slots;              /* history for each output */
  tide_rtps_sample_identity_t *related; /* the same */
  uint16_t *requests;                   /* the same */
  uint8_t *histories;                   /* the same, of sample_bytes + TIDE_RTPS_SLOT_OVERHEAD_BYTES */
  uint8_t *assemblies;                  /* sample_bytes + 4 for each input */
  tide_rtps_frame_t *frames;            /* one for each input, and some for bursts; at most the session's window */
  uint8_t *frame_memory;                /* frame_bytes for each */
  uint16_t peer_count, match_count, node_count, output_count, input_count, frame_count;
  uint16_t history;     /* depth of histories, at most */
  uint16_t frame_bytes; /* the session's mtu */
  uint32_t sample_bytes;
} tide_rtps_agent_config_t;

typedef struct tide_rtps_agent {
  tide_rtps_agent_config_t config;
  tide_participant_t participant;
  tide_rtps_agent_counters_t counters;
  /* The agent's. */
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

/* The configuration is copied, what it points to is not, and stays in use. */
void tide_rtps_agent_init(tide_rtps_agent_t *agent, const tide_rtps_agent_config_t *config);

/* The participant exists: pass datagrams to it, and poll it. */
static inline bool tide_rtps_agent_is_up(const tide_rtps_agent_t *agent) { return agent->is_up; }

/* A message of the session. False: it is to be offered again, after the next reads. wall_ns: time since 1970 minus the
 * clock of now_ns; 0: unknown. */
bool tide_rtps_agent_write(tide_rtps_agent_t *agent, const uint8_t *bytes, size_t length, int64_t now_ns,
                           int64_t wall_ns);
/* The next message for the session, at most frame_bytes. 0: none before *deadline_ns unless something is written or
 * received. The most urgent level first. */
size_t tide_rtps_agent_read(tide_rtps_agent_t *agent, uint8_t *bytes, int64_t now_ns, int64_t *deadline_ns);
/* Ends the participant: it says goodbye with the next polls. */
void tide_rtps_agent_close(tide_rtps_agent_t *agent, int64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif
