/* SPDX-License-Identifier: Apache-2.0 */
/* The sending half of the Communication Daemon (PoDS, section 5.3.1: the parallel transmission handler), without
 * I/O: messages and time in, frames and deadlines out. One transmitter serves one peer; the client has one, the agent
 * has one for each client.
 *
 * data_pool            nodes of preallocated memory, in classes by size; a node holds one whole submessage
 * execution_buffer     nodes that could use the wire now, most urgent first, equal priorities in order of submission
 * current_node         the node whose fragment is on the wire
 * pending_buffer       reliable nodes that were sent and wait for their acknowledgment, and whatever has a time limit:
 *                      the first to give up first, without a limit the oldest first
 *
 * The caller asks for a node, writes one submessage (with its 4-byte header) into it and submits it: a bounded time,
 * O(log n) in nodes, never waiting for the wire. The link asks for the next frame whenever it is idle. A message longer
 * than the link quantum leaves in FRAGMENTs, and between two of them a more urgent frame may pass. Each level has its
 * own stream, so nothing urgent waits behind a gap of something less urgent.
 *
 * What is chosen: the most urgent of control submessages, ACKNACKs, HEARTBEATs and the head of execution_buffer; at
 * the same level in this order. The level of a node is that of its stream; within it the position in the chain counts,
 * except that a reliable stream is first come, first served. A stream whose window is full
 * takes its nodes out of execution_buffer until an acknowledgment opens it, so it keeps nobody else waiting.
 *
 * ACKNACKs travel alone, never as a further submessage of a data frame. Within a stream an acknowledgment would share
 * the order and the losses of that stream, and would be worth nothing before the last byte of the data has come (10 ms
 * for 100 B at 115,200 baud in place of 1.7). It would save 8 bytes of 20: in the three-chain system with both ways
 * reliable 4 % of them leave directly before data (14 of 333 in 100 periods), so 0.1 % of the line.
 *
 * Nodes and levels. Each level that has used nodes of a class has one of them kept for it: none takes a second one
 * unless each of the others would still find its first, and none evicts another one's only one. So a level that floods,
 * or whose peer does not acknowledge, refuses only its own messages, where there is a node for each level that uses
 * them and one for the session's requests. Levels that are 32 apart count as one. A program with one level uses them
 * all.
 *
 * Cost: submit, next, sent and each acknowledged message O(log nodes + streams in use); acquire O(1), except when nodes
 * run short (O(nodes)); expiry of a message in mid-stream O(nodes of the stream). Memory (Cortex-M7):
 * tide_transmitter_t 528 bytes, a node 88 bytes, its payload and two pointers, a stream 112.
 *
 * Not thread-safe: tide_daemon wraps every call in the critical section of the platform. Nothing allocates. */
#ifndef TIDE_TRANSMITTER_H
#define TIDE_TRANSMITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/priority.h"
#include "tide/queue.h"
#include "tide/xrce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In this structure and those below what is short and used often stands first, where the shortest instructions reach
 * it. */
typedef struct tide_node {
  tide_queue_entry_t entry; /* in execution_buffer; first member */
  uint8_t stream;           /* 0 while free */
  uint8_t state;            /* of the transmitter */
  uint8_t size_class;
  bool own; /* of no level: acquire_own */
  tide_priority_t priority;
  uint16_t first_sequence; /* reliable: of its first fragment, given when that leaves for the first time */
  uint16_t fragment_count;
  uint16_t next_fragment; /* first fragment never sent */
  uint16_t resend;        /* bit n: fragment window_base + n is to be sent again */
  uint16_t window_base;   /* first fragment not acknowledged */
  uint8_t *bytes;         /* room for one submessage, its header first */
  uint32_t capacity;
  uint32_t length;
  struct tide_node *next_in_stream;
  struct tide_node *next_free;
  void *owner;                /* the submitter's mark, passed to on_done */
  int64_t rank;               /* key in execution_buffer: priority, then order of submission */
  int64_t expires_ns;         /* TIDE_FOREVER (as acquire leaves it): kept until acknowledged; set before submit */
  tide_queue_entry_t pending; /* in pending_buffer */
#if TIDE_TRACE
  uint32_t trace_instance; /* of its chain */
#endif
} tide_node_t;

typedef struct tide_size_class {
  uint8_t *storage;    /* count * node_bytes bytes */
  uint32_t node_bytes; /* largest submessage of this class, with its header; a multiple of 4 */
  uint16_t count;
} tide_size_class_t;

typedef struct tide_output_stream {
  uint8_t id;             /* 0: place not used */
  uint16_t next_sequence; /* best effort: of the next frame */
  uint16_t first_unacknowledged;
  uint16_t next_to_send; /* reliable: first number never on the wire: at most window after the former */
  bool heartbeat_due;
  bool acknack_due; /* for the input stream of the same id */
  bool skipped;     /* something expired after it was sent, and the peer has not said yet that it goes on without */
  uint8_t heartbeats_unanswered; /* since the last progress */
  uint16_t acknack_first, acknack_missing;
  uint16_t nodes;            /* of this stream that are in use */
  uint16_t queued;           /* ... of these, in execution_buffer */
  uint16_t resent;           /* bit n: first_unacknowledged + n was on the wire more than once */
  tide_node_t *first, *last; /* reliable nodes not yet acknowledged, in order */
  tide_node_t *sending;      /* first of them that was not sent completely; null: none */
  int64_t heartbeat_at_ns;   /* TIDE_FOREVER: none needed */
  uint32_t sent_ticks[TIDE_RELIABLE_STREAMS ? 16 : 1]; /* when sequence number n last left, at n modulo 16, in units of
                                                          1,024 ns */
} tide_output_stream_t;

typedef struct tide_transmitter_counters {
  uint32_t submitted, refused_full, refused_large, evicted, expired;
  uint32_t refused_kept; /* of refused_full: there was a free node, kept for another level */
  uint32_t frames, fragments, retransmissions, heartbeats, acknacks;
  uint32_t acknowledged; /* nodes; a message that was packed is in the node of another one */
  uint32_t packed;       /* messages that joined one that was submitted before */
  uint32_t nack_ignored; /* ACKNACKs that make no sense, and flags for what is under way again already */
  uint32_t nodes_in_use_maximum;
} tide_transmitter_counters_t;

/* Why a node came back. */
typedef enum tide_node_outcome {
  TIDE_NODE_SENT,         /* best effort: the last byte has left the wire */
  TIDE_NODE_ACKNOWLEDGED, /* reliable */
  TIDE_NODE_EXPIRED,      /* not acknowledged (or not sent) in its time */
  TIDE_NODE_EVICTED,      /* gave way to a more urgent message */
  TIDE_NODE_DISCARDED,    /* reset */
  TIDE_NODE_PACKED        /* its message travels in the node before it: that one's outcome is its own */
} tide_node_outcome_t;

typedef struct tide_transmitter_config {
  tide_node_t *nodes;                     /* one for each node of all classes */
  tide_queue_entry_t **execution_storage; /* as many places as nodes */
  tide_queue_entry_t **pending_storage;   /* as many places as nodes */
  size_t node_count;
  const tide_size_class_t *classes; /* ascending node_bytes; the sum of their counts is node_count. Kept. */
  size_t class_count;               /* at most 4 */
  tide_output_stream_t *streams;    /* places for reliable and best-effort streams, taken at first use (also by the
                                       ACKNACKs for an input stream); given back by reset */
  size_t stream_count;              /* 65,535 at most. Those in use cost time, the others only memory. */
  uint32_t message_bytes;       /* the link quantum: largest XRCE message with its header; 64 or more, multiple of 4 */
  uint8_t window;               /* reliable messages in flight a stream, 1..16, 0: 16, as many as stock agents hold */
  bool pad_last;                /* clients pad every submessage of a stream with zeros to a multiple of 4, agents do not
                                   pad the last; the length never counts padding */
  bool hold_until_acknowledged; /* nothing less urgent starts while a reliable node waits for its acknowledgment
                                   (the published PoDS behaviour); false: the wire is never left idle, except for the
                                   levels below */
  bool pack;                  /* A reliable sample joins the one before it of the same writer, priority and stream while
                                 that one has not left: then the window is full or the link busy. They share a frame and
                                 are repeated together. No frame becomes longer than message_bytes, so it suits links of
                                 datagrams; on a line that sends byte by byte more urgent frames would wait for it. */
  uint32_t hold_levels[4];    /* bit n % 32 of word n / 32: as hold_until_acknowledged, while a message of level n waits
                                 for its acknowledgment */
  int64_t heartbeat_delay_ns; /* from the end of the last frame that a stream can send now to the HEARTBEAT that asks
                                 about it. Peers acknowledge every reliable message unasked, so it only finds what
                                 was lost at the end of a burst. 0: at once, as PoDS; -1: from the measured round
                                 trip (mean + 4 deviations, at least heartbeat_floor_ns; 20 ms before the first
                                 measurement) */
  int64_t heartbeat_floor_ns; /* the least that a delay of -1 comes down to; 0: 2 ms. Where frames take long an
                                 acknowledgment may wait behind one, and a question would only make it later. */
  int64_t heartbeat_period_ns; /* between HEARTBEATs without progress; 0: 100 ms. With a delay of -1 the repeats start
                                  at twice the delay and double up to this. After 8 of them it slows down to a half,
                                  a quarter, an eighth of the rate. */
  void (*on_done)(void *context, tide_node_t *node, tide_node_outcome_t outcome); /* may be null; from whatever context
                                    called; the node is free after it returns */
  void *context;
} tide_transmitter_config_t;

/* A frame to put on the link: head, then body (either may be empty). Valid until tide_transmitter_sent. */
typedef struct tide_frame_parts {
  uint8_t head_storage[48];
  const uint8_t *head;
  size_t head_bytes;
  const uint8_t *body;
  size_t body_bytes;
  const uint8_t *tail;
  size_t tail_bytes; /* padding */
  tide_priority_t priority;
  bool awaited; /* the peer answers it (a reliable message, a HEARTBEAT): tide_transmitter_poll gives a new time when it
                   has left */
} tide_frame_parts_t;

typedef struct tide_transmitter tide_transmitter_t; /* defined below: storage is the owner's */

/* TIDE_ERROR_ARGUMENT names a bad configuration. */
int tide_transmitter_init(tide_transmitter_t *transmitter, const tide_transmitter_config_t *config);
/* The identity written into message headers. */
void tide_transmitter_set_session(tide_transmitter_t *transmitter, uint8_t session, uint32_t key);

/* A free node with room for bytes, from the smallest class that fits. When every fitting node is taken, the least
 * urgent best-effort node below `priority` that waits in execution_buffer (the oldest of these) is evicted, counted and
 * handed out instead. TIDE_ERROR_TOO_LARGE: no class can hold it. TIDE_ERROR_FULL: every node is reliable, on the
 * wire, of equal or higher priority, or another level's only one: give reliable messages of unimportant chains a time
 * limit (expires_ns). */
int tide_transmitter_acquire(tide_transmitter_t *transmitter, uint32_t bytes, tide_priority_t priority,
                             tide_node_t **node);
/* For what belongs to no level, as the requests of a session: any free node, and nothing is evicted. */
int tide_transmitter_acquire_own(tide_transmitter_t *transmitter, uint32_t bytes, tide_node_t **node);
/* Acquire would find a free node. O(nodes). */
bool tide_transmitter_may_acquire(const tide_transmitter_t *transmitter, uint32_t bytes, tide_priority_t priority);
/* Room of the free node that acquire would hand out; 0: there is none. O(classes). */
uint32_t tide_transmitter_free_bytes(const tide_transmitter_t *transmitter, uint32_t bytes);
void tide_transmitter_abandon(tide_transmitter_t *transmitter, tide_node_t *node);
/* node->length bytes of node->bytes are a submessage. stream: TIDE_STREAM_*; best effort must fit one message
 * (TIDE_ERROR_TOO_LARGE). On an error the node is free again (without on_done). TIDE_ERROR_CAPACITY_STREAMS: no place
 * for another stream.
 * expires_ns: a node that never was on the wire disappears at that time without a trace. One that was leaves a hole
 * that the peer must be told about (a HEARTBEAT whose first is beyond it), which the protocol can only do from the
 * front: it expires when everything before it in its stream is acknowledged or has expired, too. Stock clients do not
 * understand such a HEARTBEAT: agents should let the messages for them live forever. */
int tide_transmitter_submit(tide_transmitter_t *transmitter, tide_node_t *node, uint8_t stream, int64_t now_ns);

/* True: the message has joined the last one of the stream (config.pack), and its node is free again, by on_done with
 * TIDE_NODE_PACKED. False: nothing happened, submit it. O(streams) and linear in its bytes. */
bool tide_transmitter_pack(tide_transmitter_t *transmitter, tide_node_t *node, uint8_t stream);

/* A short submessage (at most 40 bytes, TIDE_ERROR_TOO_LARGE) outside any stream (stream 0, sequence 0), before
 * everything else of its priority. Small fixed queue: TIDE_ERROR_FULL. session 0xFF: the one set when it leaves;
 * otherwise written as given (CREATE_CLIENT). Not padded. Survives a reset. */
int tide_transmitter_submit_control(tide_transmitter_t *transmitter, const uint8_t *submessage, size_t length,
                                    uint8_t session, tide_priority_t priority);
/* An ACKNACK for an input stream is due; a later request replaces an earlier one that is still waiting. */
int tide_transmitter_request_acknack(tide_transmitter_t *transmitter, uint8_t stream, uint16_t first, uint16_t missing);

/* The next frame, if any may go now: 1 and the frame, or 0 (also while the last one was not reported as sent). */
int tide_transmitter_next(tide_transmitter_t *transmitter, int64_t now_ns, tide_frame_parts_t *frame);
/* The last byte of that frame has left. */
void tide_transmitter_sent(tide_transmitter_t *transmitter, int64_t now_ns);
/* That frame did not leave (the link was cut): it goes again when its turn comes. */
void tide_transmitter_cancel(tide_transmitter_t *transmitter);

/* An ACKNACK of the peer. Frees what is acknowledged, queues what is flagged (and only that) again; a flag for what is
 * queued, on the wire or was sent again less than a round trip ago is ignored. Late ones (overtaken) do nothing.
 * TIDE_ERROR_STATE: it acknowledges what was never sent, so the peer means another session; nothing was done. */
int tide_transmitter_on_acknack(tide_transmitter_t *transmitter, const tide_xrce_acknack_t *acknack, int64_t now_ns);

/* Heartbeats and expiries that are due by now; returns the time of the next one or TIDE_FOREVER. */
int64_t tide_transmitter_poll(tide_transmitter_t *transmitter, int64_t now_ns);

/* Streams start at 0 again. keep: unacknowledged reliable nodes are renumbered and sent again in the new session, in
 * their order, those that were sent in part from their start; everything else is discarded. May be called while a
 * frame is on the wire. */
void tide_transmitter_reset(tide_transmitter_t *transmitter, bool keep);
/* As reset without keep, but the unacknowledged reliable nodes are the caller's again, as after acquire: a list by
 * next_in_stream in the order of their submission, each with its bytes, length, priority and expires_ns, to be
 * submitted again or abandoned. O(nodes^2) at worst. */
tide_node_t *tide_transmitter_take_back(tide_transmitter_t *transmitter);
/* heartbeat_delay_ns and a bit of hold_levels of the configuration, at any time; in force from the next frame on.
 * TIDE_ERROR_ARGUMENT: a delay below -1, a level above TIDE_LEVEL_MAXIMUM. TIDE_ERROR_UNSUPPORTED: TIDE_HOLD=0. */
int tide_transmitter_set_heartbeat_delay(tide_transmitter_t *transmitter, int64_t delay_ns);
int tide_transmitter_hold_level(tide_transmitter_t *transmitter, uint8_t level, bool hold);
/* Hold back (or let go) everything that belongs to a stream; control submessages still go. */
void tide_transmitter_pause_streams(tide_transmitter_t *transmitter, bool paused);

/* True when every message of the stream was sent and, if reliable, acknowledged (0: of all streams). ACKNACKs and other
 * control submessages do not count. */
bool tide_transmitter_is_idle(const tide_transmitter_t *transmitter, uint8_t stream);

#ifndef TIDE_CONTROL_PLACES
#define TIDE_CONTROL_PLACES 6 /* 3 to 255 */
#endif
#define TIDE_TRANSMITTER_WINDOW_DEFAULT 16
struct tide_transmitter {
  bool paused, busy;
  uint8_t control_count;
  uint8_t session;
  uint8_t current_kind;
  uint8_t current_control;
  uint8_t current_outcome; /* of a current_node that came back while it was on the wire */
  uint8_t delay_shift;     /* the heartbeat delay is doubled so often: round trips could not be measured (Karn) */
  uint16_t current_sequence;
  uint16_t current_fragment;
  uint16_t nodes_in_use;
  uint16_t stream_places; /* the first of config.streams, as many as were in use at once since the last reset: nobody
                             looks at the others */
  tide_node_t *current_node;
  tide_output_stream_t *current_stream;
  tide_queue_t execution_buffer, pending_buffer;
  tide_node_t *free_nodes[4];
#if TIDE_RESERVATIONS
  uint16_t free_counts[4];
  uint32_t levels[4]; /* by class: bit n % 32: messages of level n have used nodes of it */
#endif
  uint32_t key;
  uint32_t fragment_bytes; /* payload of a full fragment */
  uint64_t submissions;
  uint32_t round_trip_eighths, deviation_quarters; /* smoothed, in fractions of 1,024 ns; 0 before the first sample */
  tide_transmitter_config_t config;
  struct {
    uint8_t bytes[40];
    uint8_t length, session;
    tide_priority_t priority;
  } control[TIDE_CONTROL_PLACES];
  tide_transmitter_counters_t counters;
};

#ifdef __cplusplus
}
#endif
#endif
