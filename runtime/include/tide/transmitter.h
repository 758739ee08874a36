/* SPDX-License-Identifier: Apache-2.0 */
/* The sending half of the Communication Daemon (PoDS, section 5.3.1: the parallel transmission handler), without I/O.
 * Messages and time go in, frames and deadlines come out. One transmitter serves one peer: a client has one, an agent
 * has one for each client.
 *
 * data_pool            nodes of preallocated memory, in classes by size; a node holds one whole submessage
 * execution_buffer     nodes that may be sent now, most urgent first, equal priorities in order of submission
 * current_node         the node whose fragment is on the wire
 * pending_buffer       nodes with a time limit, the earliest first; all reliable nodes that wait for their
 *                      acknowledgment are in the list of their stream
 *
 * The caller acquires a node, writes one submessage (with its 4-byte header) into it and submits it. That takes a
 * bounded time, O(log n) in nodes, and never waits for the wire. The link requests the next frame whenever it is idle.
 * A message longer than config.message_bytes leaves in FRAGMENTs, and a more urgent frame may pass between two of them.
 * Each level has its own stream, so an urgent message never waits behind a gap of a less urgent one.
 *
 * Choice. In each step the most urgent of these is sent: control submessages, ACKNACKs, HEARTBEATs, the head of
 * execution_buffer. At equal level they go in this order. The level of a node is that of its stream. Within a level the
 * position in the chain decides, except that a reliable stream is first come, first served. While the window of a
 * stream is full, its nodes are not in execution_buffer, so the stream delays no other stream.
 *
 * ACKNACKs travel alone, never as a further submessage of a data frame. Within a data frame an acknowledgment would
 * share the order and the losses of that stream, and would count only after the last byte of the data (10 ms for 100 B
 * at 115,200 baud; alone it takes 1.7 ms). A shared frame would save 8 bytes of 20. In the three-chain system, reliable
 * both ways, 4 % of the ACKNACKs leave directly before data (14 of 333 in 100 periods), so sharing would save 0.1 % of
 * the line.
 *
 * Nodes and levels. One node of each class is kept for each level that has used that class. No level takes a second
 * node unless every other level can still get its first, and no level evicts another level's only node. So if a level
 * floods, or its peer does not acknowledge, only messages of this level are refused. This holds if there is a node for
 * each level that uses the class, and one node for the requests of the session. Levels that are 32 apart count as one.
 * A program with one level uses all nodes.
 *
 * Nodes and writers. A writer (publisher, client, service) has starved if it found no free node of a class while it
 * held none. From then on one node is reserved for this writer, if there are more nodes than the levels need. So a
 * publisher that floods its level causes at most one refused message of each other writer. Beyond 32 writers, several
 * share one account.
 *
 * Cost: submit, next, sent and each acknowledged message take O(log nodes + streams in use). Acquire takes O(1), or
 * O(nodes) if it evicts a waiting message; without TIDE_NODE_COUNTS (on boards) it takes O(nodes) when nodes run short,
 * and O(nodes^2) if it evicts. The expiry of a message in mid-stream takes O(nodes of the stream). Memory (Cortex-M7):
 * tide_transmitter_t 576 bytes; a node 88 bytes, its payload and two pointers; a stream 112.
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

TIDE_EXTERN_C_BEGIN

/* Account numbers of nodes without a writer. */
#define TIDE_NODE_NO_WRITER 32u
#define TIDE_NODE_OWN 33u /* no writer and no level: acquired by tide_transmitter_acquire_own */

/* In this structure and those below, short members that are used often come first, where the shortest instructions can
 * address them. */
typedef struct tide_node {
  tide_queue_entry_t entry; /* in execution_buffer; first member */
  uint8_t stream;           /* 0 while free */
  uint8_t state;            /* internal to the transmitter */
  uint8_t size_class;
  uint8_t account; /* account of its writer (below 32), TIDE_NODE_NO_WRITER or TIDE_NODE_OWN */
  tide_priority_t priority;
  uint16_t first_sequence; /* reliable: number of its first fragment, set when this fragment first leaves. Best effort:
                              time at which the node began to wait for its turn, in units of 2^20 ns */
  uint16_t fragment_count;
  uint16_t next_fragment; /* first fragment never sent */
  uint16_t resend;        /* bit n: fragment window_base + n is to be sent again */
  uint16_t window_base;   /* first fragment not acknowledged */
  uint8_t *bytes;         /* buffer for one submessage, its header first */
  uint32_t capacity;
  uint32_t length;
  struct tide_node *next_in_stream;
  struct tide_node *next_free;
  void *owner;        /* set by the submitter, passed to on_done */
  int64_t rank;       /* key in execution_buffer: priority, then order of submission */
  int64_t expires_ns; /* time limit; may be set between acquire and submit. TIDE_FOREVER, as set by acquire: none */
  tide_queue_entry_t pending; /* in pending_buffer */
#if TIDE_TRACE
  uint32_t trace_instance; /* instance of its chain */
#endif
} tide_node_t;

typedef struct tide_size_class {
  uint8_t *storage;    /* count * node_bytes bytes */
  uint32_t node_bytes; /* largest submessage of this class, with its header; a multiple of 4 */
  uint16_t count;
} tide_size_class_t;

/* A message longer than any node. Its writer fills a few nodes (the parts) repeatedly; each part is sent in the stream
 * as a run of FRAGMENTs. Memory: the writer's, initially all zero. */
typedef struct tide_long_message {
  tide_node_t *free; /* list of its nodes outside of the stream, linked by next_free */
  tide_node_t *last; /* its newest part in the stream; null: none is there */
  uint16_t parts;    /* parts in the stream, or still being read by the wire */
  uint8_t stream;    /* 0: no part submitted yet */
  bool complete;     /* no more parts come */
  bool lost;         /* the message's session ended before the peer had received all of it; all nodes were returned, and
                      * no more are accepted */
  int64_t rank;      /* rank in the queue, the same for all parts */
} tide_long_message_t;

typedef struct tide_output_stream {
  uint8_t id; /* 0: unused element */
  uint8_t level;
  uint16_t next_sequence; /* best effort: sequence number of the next frame */
  uint16_t first_unacknowledged;
  uint16_t next_to_send; /* reliable: first number that was never on the wire, at most `window` after
                            first_unacknowledged */
  bool heartbeat_due;
  bool acknack_due; /* an ACKNACK of the input stream of the same id is due */
  bool skipped;     /* a message expired after it was sent, and the peer has not confirmed yet that it skips the
                       message */
  uint8_t heartbeats_unanswered; /* HEARTBEATs sent since the last progress */
  uint16_t acknack_first, acknack_missing;
  uint16_t nodes;            /* nodes in use by this stream */
  uint16_t queued;           /* number of the stream's nodes that are in execution_buffer */
  uint16_t resent;           /* bit n: first_unacknowledged + n was sent more than once */
  tide_node_t *first, *last; /* reliable nodes not yet acknowledged, in order */
  tide_node_t *sending;      /* first of these nodes not yet sent completely; null: none, or a long message is being
                              * written */
#if TIDE_LONG_MESSAGES
  tide_long_message_t *long_message; /* null: none */
#endif
  int64_t heartbeat_at_ns;                             /* TIDE_FOREVER: no HEARTBEAT needed */
  uint32_t sent_ticks[TIDE_RELIABLE_STREAMS ? 16 : 1]; /* when sequence number n last left, at n modulo 16, in units of
                                                          1,024 ns */
} tide_output_stream_t;

typedef struct tide_transmitter_counters {
  uint32_t submitted, refused_full, refused_large, evicted, expired;
  uint32_t refused_kept; /* part of refused_full: a node was free, but reserved for another level or writer */
  uint32_t frames, fragments, retransmissions, heartbeats, acknacks;
  uint32_t acknowledged; /* acknowledged nodes; messages packed into one node count once */
  uint32_t packed;       /* messages packed into an earlier one's frame */
  uint32_t nack_ignored; /* ACKNACKs out of range, and flags for messages already being retransmitted */
  uint32_t nodes_in_use_maximum;
} tide_transmitter_counters_t;

/* Why a node was returned. */
typedef enum tide_node_outcome {
  TIDE_NODE_SENT,         /* best effort: the last byte has left the wire */
  TIDE_NODE_ACKNOWLEDGED, /* reliable: the peer has received all of it */
  TIDE_NODE_EXPIRED,      /* not acknowledged (or not sent) in its time */
  TIDE_NODE_EVICTED,      /* replaced by a more urgent message, or by a newer one of its level */
  TIDE_NODE_DISCARDED,    /* dropped by a reset */
  TIDE_NODE_PACKED        /* the node's message is sent in the preceding node and shares its outcome */
} tide_node_outcome_t;

typedef struct tide_transmitter_config {
  tide_node_t *nodes;                     /* one element for each node of all classes */
  tide_queue_entry_t **execution_storage; /* an array of node_count */
  tide_queue_entry_t **pending_storage;   /* an array of node_count */
  size_t node_count;
  const tide_size_class_t *classes; /* ascending node_bytes; their counts add up to node_count. Must stay valid. */
  size_t class_count;               /* at most 4 */
  tide_output_stream_t *streams;    /* one element for each reliable or best-effort stream, assigned at its first use
                                       (also by an ACKNACK for an input stream); released by reset */
  size_t stream_count;              /* 65,535 at most. Streams in use cost time; other streams cost only memory. */
  uint32_t message_bytes; /* largest XRCE message with its header (the link quantum); 64 or more, a multiple of 4 */
  uint8_t window;         /* largest number of unacknowledged reliable messages of a stream, 1..16; 0: 16, as many
                             as stock agents hold */
  bool pad_last;          /* clients pad every submessage of a stream with zeros to a multiple of 4; agents do not
                             pad the last one. The length never counts padding. */
  bool hold_until_acknowledged; /* true: while a reliable message waits for its acknowledgment, messages of less urgent
                                   levels do not start (the published PoDS behaviour). False: the wire is never left
                                   idle, except for hold_levels. */
  bool pack; /* A reliable sample joins the previous one of the same writer, priority and stream if the previous one has
                not left yet, because the window is full or the link busy. The two share a frame and are retransmitted
                together. No frame exceeds message_bytes, so this suits datagram links. On a serial line more urgent
                frames would wait for the longer frame. */
  uint32_t hold_levels[4];     /* bit n % 32 of word n / 32: hold_until_acknowledged for messages of level n */
  int64_t heartbeat_delay_ns;  /* time from the end of the last frame that a stream can send now to the HEARTBEAT that
                                  requests its acknowledgment. Peers acknowledge every reliable message unasked, so the
                                  HEARTBEAT only finds losses at the end of a burst. 0: at once, as PoDS. -1: adaptive,
                                  from the measured round trip (mean + 4 deviations, at least heartbeat_floor_ns; 20 ms
                                  before the first measurement) */
  int64_t heartbeat_floor_ns;  /* least adaptive delay; 0: 2 ms. On a slow link choose more than the time of a frame:
                                * the acknowledgment may wait behind a frame of the peer, and a HEARTBEAT sent
                                * meanwhile would only take time on the line. */
  int64_t heartbeat_period_ns; /* time between HEARTBEATs while nothing is acknowledged; 0: 100 ms. With an adaptive
                                  delay the first repeat comes after twice the delay, and the time doubles up to
                                  heartbeat_period_ns. Every fourth HEARTBEAT beyond the eighth unanswered one halves
                                  the rate, down to an eighth. */
  /* May be null. Called from the context of the call that ends the node; the node is free after it returns. */
  void (*on_done)(void *context, tide_node_t *node, tide_node_outcome_t outcome);
  void *context;
} tide_transmitter_config_t;

/* A frame to put on the link: head, body and tail, each of which may be empty. Valid until tide_transmitter_sent. */
typedef struct tide_frame_parts {
  uint8_t head_storage[48];
  const uint8_t *head;
  size_t head_bytes;
  const uint8_t *body;
  size_t body_bytes;
  const uint8_t *tail;
  size_t tail_bytes; /* padding */
#if TIDE_DESKTOP
  int64_t time_ns; /* now_ns of the call that returned the frame, so that a link need not read the clock again */
#endif
  tide_priority_t priority;
  bool awaited; /* the peer will answer (a reliable message, a HEARTBEAT): call tide_transmitter_poll for a new time
                   when it has left */
} tide_frame_parts_t;

typedef struct tide_transmitter tide_transmitter_t; /* defined below; the owner provides its storage */

/* TIDE_ERROR_ARGUMENT: bad configuration. */
int tide_transmitter_init(tide_transmitter_t *transmitter, const tide_transmitter_config_t *config);
/* Set the session id and the key that message headers carry. */
void tide_transmitter_set_session(tide_transmitter_t *transmitter, uint8_t session, uint32_t key);

/* Acquire a free node with room for bytes, from the smallest class that fits. When every fitting node is in use, the
 * least urgent best-effort node below `priority` that waits in execution_buffer (the oldest of these) is evicted,
 * counted and returned instead. TIDE_ERROR_TOO_LARGE: no class can hold it. TIDE_ERROR_FULL: every node is reliable, on
 * the wire, of equal or higher priority, or kept for another level or writer. Give reliable messages of unimportant
 * chains a time limit (expires_ns) to avoid that. */
int tide_transmitter_acquire(tide_transmitter_t *transmitter, uint32_t bytes, tide_priority_t priority,
                             tide_node_t **node);
/* Like acquire, for a writer. writer: id of its object; 0: none. */
int tide_transmitter_acquire_for(tide_transmitter_t *transmitter, uint32_t bytes, tide_priority_t priority,
                                 uint16_t writer, tide_node_t **node);
/* Like acquire_for, for a sample of a best-effort writer with history KEEP_LAST. If acquire_for would fail, the
 * writer's oldest sample in execution_buffer is evicted and counted. The samples behind it move up, and the new sample
 * takes the turn of the last one. If none of its samples waits, the writer of this level with the most waiting samples
 * loses its oldest; each writer keeps one. TIDE_ERROR_FULL: no writer has two waiting samples, at least one of them in
 * a node that is large enough. O(nodes * own waiting samples). The lean profile evicts none. */
int tide_transmitter_acquire_last(tide_transmitter_t *transmitter, uint32_t bytes, tide_priority_t priority,
                                  uint16_t writer, tide_node_t **node);
/* Call it before a sample of a best-effort writer with history KEEP_LAST is submitted. If `depth` other samples of the
 * writer wait already, the oldest is evicted, unless it has waited for less than TIDE_BURST_NS (tide/receiver.h) and at
 * least half of all nodes are free. So a burst alone loses nothing. O(streams in use) while fewer than `depth` nodes of
 * the stream wait; O(nodes * depth) for each evicted sample. */
void tide_transmitter_keep_last(tide_transmitter_t *transmitter, tide_node_t *node, uint8_t stream, uint16_t depth,
                                int64_t now_ns);
/* Like acquire_for, but evicts nothing. TIDE_ERROR_FULL: no node is free for this writer; nothing was counted. */
int tide_transmitter_acquire_free(tide_transmitter_t *transmitter, uint32_t bytes, tide_priority_t priority,
                                  uint16_t writer, tide_node_t **node);
/* Acquire any free node, even a reserved one, for messages that belong to no level, such as the requests of a session.
 * Evicts nothing. */
int tide_transmitter_acquire_own(tide_transmitter_t *transmitter, uint32_t bytes, tide_node_t **node);
/* Capacity of the smallest free node that fits, even if it is reserved; 0 if none is free. O(classes). */
uint32_t tide_transmitter_free_bytes(const tide_transmitter_t *transmitter, uint32_t bytes);
/* Return an acquired node unused. */
void tide_transmitter_abandon(tide_transmitter_t *transmitter, tide_node_t *node);
/* Submit the submessage in the first node->length bytes of node->bytes. stream: TIDE_STREAM_*. A best-effort submessage
 * must fit one frame (TIDE_ERROR_TOO_LARGE). TIDE_ERROR_CAPACITY_STREAMS: no element for another stream. On an error
 * the node is free again (without on_done). expires_ns: a node that was never on the wire is dropped at that time, and
 * the peer notices nothing. A node that was on the wire leaves a gap, which the peer must skip (a HEARTBEAT with a
 * first number beyond it requests that). The protocol allows this only at the front of a stream. So such a node expires
 * when all messages before it in its stream are acknowledged or have expired, too. Stock clients do not understand such
 * a HEARTBEAT, so agents should set no time limits on messages for them. */
int tide_transmitter_submit(tide_transmitter_t *transmitter, tide_node_t *node, uint8_t stream, int64_t now_ns);
/* Submits the node. If the wire is free and nothing else waits for it, the function also makes the message's first
 * frame the frame on the wire, as tide_transmitter_next does, and returns 1; the node then was never in
 * execution_buffer. */
int tide_transmitter_submit_next(tide_transmitter_t *transmitter, tide_node_t *node, uint8_t stream, int64_t now_ns,
                                 tide_frame_parts_t *frame);

/* Submit the next part of a long message: node->length octets. The first part begins with the submessage's header;
 * complete: this is the last part. The message occupies its (reliable) stream until the peer has acknowledged all of
 * it; messages submitted meanwhile follow it. Acknowledged parts return to message->free, after on_done.
 * TIDE_ERROR_FULL: another writer's long message occupies the stream. TIDE_ERROR_DISCONNECTED: the message is lost. On
 * an error the node is in message->free. The message ends when it is complete and parts is 0. O(log nodes). */
int tide_transmitter_submit_part(tide_transmitter_t *transmitter, tide_long_message_t *message, tide_node_t *node,
                                 uint8_t stream, bool complete, int64_t now_ns);
/* Give up a long message of which parts were submitted. The protocol cannot cancel a fragmented message: the peer would
 * join the received parts to the next message. So no stream sends from here on: begin a new session (reset, or
 * take_back), then tide_transmitter_pause_streams(false). False: the message has already ended or was lost; nothing was
 * done. */
bool tide_transmitter_give_up_long(tide_transmitter_t *transmitter, tide_long_message_t *message, int64_t now_ns);

/* Try to join the message to the last one of the stream (config.pack). True: done, and its node was returned by on_done
 * with TIDE_NODE_PACKED. False: nothing was done; submit it. O(streams), and linear in the bytes of the message. */
bool tide_transmitter_pack(tide_transmitter_t *transmitter, tide_node_t *node, uint8_t stream);

/* Submit a short submessage (at most 40 bytes, TIDE_ERROR_TOO_LARGE) outside any stream (stream 0, sequence 0). The
 * submessage is sent before everything else of its priority. The queue has TIDE_CONTROL_PLACES elements
 * (TIDE_ERROR_FULL). session 0xFF: the id of the session in force when the submessage leaves. Any other id is written
 * as given (CREATE_CLIENT). The submessage is not padded and survives a reset. */
int tide_transmitter_submit_control(tide_transmitter_t *transmitter, const uint8_t *submessage, size_t length,
                                    uint8_t session, tide_priority_t priority);
/* Request an ACKNACK for an input stream. It replaces an earlier request for the stream that was not sent yet. */
int tide_transmitter_request_acknack(tide_transmitter_t *transmitter, uint8_t stream, uint16_t first, uint16_t missing);

/* Whether a frame may be sent once the wire is free. A HEARTBEAT counts only after tide_transmitter_poll or _next has
 * found it due. */
bool tide_transmitter_has_next(const tide_transmitter_t *transmitter);
/* Returns 1 and the next frame, or 0 when no frame may be sent now, or when the last frame was not yet reported as
 * sent. */
int tide_transmitter_next(tide_transmitter_t *transmitter, int64_t now_ns, tide_frame_parts_t *frame);
/* Report that the last byte of the frame given by tide_transmitter_next has left. */
void tide_transmitter_sent(tide_transmitter_t *transmitter, int64_t now_ns);
/* Report that the frame was not sent (the link was cut). The frame is sent again when its turn comes. */
void tide_transmitter_cancel(tide_transmitter_t *transmitter);

/* Apply an ACKNACK of the peer. Frees acknowledged messages and queues only the flagged messages again. A flag is
 * ignored for a message that is queued, on the wire, or was sent again less than a round trip ago. An ACKNACK that was
 * overtaken by a newer ACKNACK has no effect. TIDE_ERROR_STATE: the ACKNACK acknowledges messages that were never sent,
 * so it belongs to another session; nothing was done. */
int tide_transmitter_on_acknack(tide_transmitter_t *transmitter, const tide_xrce_acknack_t *acknack, int64_t now_ns);

/* The earliest time at which tide_transmitter_poll may have something to do. */
int64_t tide_transmitter_deadline(const tide_transmitter_t *transmitter);
/* Handle due HEARTBEATs and expiries; returns the time of the next one, or TIDE_FOREVER. */
int64_t tide_transmitter_poll(tide_transmitter_t *transmitter, int64_t now_ns);

/* Restart all streams at sequence number 0. If `keep` is true, unacknowledged reliable nodes are renumbered and sent
 * again in the new session, in order; partly sent nodes start from the beginning. All other nodes are discarded, and
 * long messages are lost. May be called while a frame is on the wire. */
void tide_transmitter_reset(tide_transmitter_t *transmitter, bool keep);
/* Like reset without keep, but the unacknowledged reliable nodes go back to the caller, as after acquire. Returns the
 * nodes in the order of submission, as a list by next_in_stream; each has its bytes, length, priority and expires_ns.
 * Submit each node again, or abandon it. O(nodes^2) at worst. */
tide_node_t *tide_transmitter_take_back(tide_transmitter_t *transmitter);
/* Change heartbeat_delay_ns, or a bit of hold_levels, at any time. The change takes effect with the next frame.
 * TIDE_ERROR_ARGUMENT: a delay below -1, a level above TIDE_LEVEL_MAXIMUM. TIDE_ERROR_UNSUPPORTED:
 * TIDE_RELIABLE_STREAMS=0. */
int tide_transmitter_set_heartbeat_delay(tide_transmitter_t *transmitter, int64_t delay_ns);
int tide_transmitter_hold_level(tide_transmitter_t *transmitter, uint8_t level, bool hold);
/* Hold back (or release) all frames of streams; control submessages are still sent. */
void tide_transmitter_pause_streams(tide_transmitter_t *transmitter, bool paused);

/* Number of frames of a reliable stream (messages or fragments) that were sent and are not acknowledged. */
uint16_t tide_transmitter_in_flight(const tide_transmitter_t *transmitter, uint8_t stream);

/* True when every message of the stream (0: of all streams) was sent and, if reliable, acknowledged. ACKNACKs and other
 * control submessages do not count. */
bool tide_transmitter_is_idle(const tide_transmitter_t *transmitter, uint8_t stream);

#define TIDE_TRANSMITTER_WINDOW_DEFAULT 16
/* Use of the nodes of a class: one bit for each level or writer that has one node, and one for each that has
 * several. */
typedef struct tide_node_use {
  uint32_t levels, levels_with_more, writers, writers_with_more;
} tide_node_use_t;
struct tide_transmitter {
  bool paused, busy;
  uint8_t control_count;
  bool may_hold; /* a level is configured to withhold less urgent levels until its messages are acknowledged */
  uint8_t current_kind;
  uint8_t current_control;
  uint8_t current_outcome; /* outcome of current_node if it ended while it was on the wire */
  uint8_t delay_shift;     /* number of doublings of the heartbeat delay, while round trips cannot be measured (Karn) */
  uint16_t current_sequence;
  uint16_t current_fragment;
  uint16_t nodes_in_use;
  uint16_t stream_places; /* largest number of streams in use at once since the last reset; only that many elements of
                             config.streams are searched */
  tide_node_t *current_node;
  tide_output_stream_t *current_stream; /* stream of the last frame; never null */
  tide_queue_t execution_buffer, pending_buffer;
  tide_node_t *free_nodes[4];
#if TIDE_RESERVATIONS
  uint16_t free_counts[4];
  uint32_t levels[4];  /* one word per class; bit n % 32: messages of level n have used its nodes */
  uint32_t starved[4]; /* per class: bit n: writer account n has starved */
  uint8_t kept[4];     /* per class: number of bits that are set in levels and in starved */
#endif
#if TIDE_NODE_COUNTS
  struct {
    uint16_t of_level[32], of_writer[32]; /* nodes in use, by level and by writer */
  } counted[4];
#endif
  tide_xrce_header_t header; /* of the last frame */
  uint32_t fragment_bytes;   /* payload of a full fragment */
  uint64_t submissions;
  int64_t heartbeat_least_ns;                      /* no HEARTBEAT is due before this time */
  bool answers_due;                                /* a stream may owe an ACKNACK or HEARTBEAT */
  uint32_t round_trip_eighths, deviation_quarters; /* smoothed round trip and its deviation, in eighths and quarters of
                                                      1,024 ns; 0 before the first sample */
  tide_transmitter_config_t config;
  struct {
    uint8_t bytes[40];
    uint8_t length, session;
    tide_priority_t priority;
  } control[TIDE_CONTROL_PLACES];
  tide_transmitter_counters_t counters;
};

TIDE_EXTERN_C_END
#endif
