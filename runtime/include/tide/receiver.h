/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving half of the Communication Daemon (PoDS, sections 5.2 and 5.3.2), without I/O.
 *
 * A link writes each arriving message into a free frame slot and commits it. Commit looks at the header once (about
 * 20 bytes: length, kind, target object). Acknowledgments, heartbeats, statuses and everything else without a stream
 * are handled there and then, so commit is the interrupt-based reception handler and may run in interrupt context.
 * So are STATUS and INFO in their streams, when it is their turn there, so that they need no slot and do not wait
 * behind data. Frames of streams are else only noted, by priority. The executor asks for the most urgent one; its
 * payload is verified and handed on only then, in place: a sample stays in its slot until it is released. What is early
 * in a reliable stream stays in its slot until the gap is filled. A stream keeps its order: what comes before an urgent
 * frame in the same stream is as urgent as that frame.
 *
 * Acknowledgment: a reliable frame is acknowledged once its checksum is good and its turn in the stream has come or it
 * is held; a gap is reported as soon as a header shows it. What is noted, but not yet looked at, is neither
 * acknowledged nor asked for again.
 *
 * FRAGMENTs grow into a message in the smallest tide_reassembly that is large enough. When those are in use, the first
 * fragment waits unacknowledged in its slot, and with it its stream; a message larger than all of them is skipped to
 * its end and counted, so that the stream goes on. Each account that gets messages in fragments has one of them kept
 * for it, once the first one has come: nobody takes a second one unless each of the others would still find its first.
 * So a reader that does not read, or a sender that stops in the midst of a message, delays nobody else, if each stream
 * carries the messages of one account, and there is a tide_reassembly for each account. What nobody reads takes none.
 *
 * Slots belong to who reads (tide_account_t). Each account has slots reserved for it; all share the rest. What nobody
 * reads has an account, too, with one slot. A frame beyond its account's reservation gets a slot only as long as all
 * reservations stay covered. Otherwise a waiting frame of the same account gives way, so that no account takes what
 * another one needs: of best effort the oldest (keep last), of a reliable stream the one farthest ahead, which is asked
 * for again. So only best-effort frames are lost, and counted at their account. Where an account's frames differ in
 * urgency the least urgent one gives way (by the level of its stream, then by priority). Frames of no account give way
 * the same, but the newest one first.
 *
 * Cost: commit and the steps of process O(slots + reassemblies + streams + accounts); most_urgent O(1); verify and
 * deliver linear in the frame. Memory (Cortex-M7): tide_receiver_t 240 bytes, a slot 72, a pointer and its bytes, a
 * stream 24, a reassembly 24 and its bytes, an account 20, and 8 for messages in fragments.
 *
 * Not thread-safe: tide_daemon wraps the calls. Nothing allocates. */
#ifndef TIDE_RECEIVER_H
#define TIDE_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/priority.h"
#include "tide/queue.h"
#include "tide/stream.h"
#include "tide/xrce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One who reads, and the slots it may use. Part of the reader's memory. */
typedef struct tide_account {
  struct tide_account *next; /* of the receiver; so is what follows, but for dropped */
  uint16_t wanted;           /* slots asked for */
  uint16_t reserved;         /* slots granted */
  uint16_t used;             /* slots that its frames are in, noted or not yet released */
  uint8_t stream;            /* that its last frame came on */
  bool full;                 /* its reader takes nothing now: its frames wait */
  uint32_t dropped;          /* best-effort frames that gave way */
#if TIDE_FRAGMENTS && TIDE_RESERVATIONS
  uint16_t reassemblies;   /* in its use */
  uint16_t waits;          /* times that a message of its waited for memory, because its own was in use */
  uint32_t fragment_bytes; /* the largest message in fragments that came for it; 0: none did */
#endif
} tide_account_t;

typedef struct tide_slot {
  tide_queue_entry_t entry; /* among the noted frames; first member */
  bool verify;
  uint8_t state; /* of the receiver; so is what follows */
  uint8_t stream;
  uint8_t owner;                                           /* who may process it; 0: everybody */
  bool arrived;                                            /* its stream knows of it */
  bool continues;                                          /* a FRAGMENT, and not the last */
  bool unwanted;                                           /* nobody reads it: only its place in the stream counts */
  bool answers;                                            /* STATUS and INFO, nothing else */
  bool blocked;                                            /* waits for a tide_reassembly */
  bool skips, skip_ended, too_large, malformed, completed; /* what delivering found out */
  uint16_t length;
  uint16_t crc; /* as received; meaningful when verify is set */
  uint16_t sequence;
  tide_priority_t priority; /* its own, or that of a frame behind it in its stream */
  uint16_t references;      /* taken by tide_receiver_retain, by the one who delivers only */
  uint16_t released;        /* given back */
  uint16_t position;        /* of the submessage to deliver next; 0: none was delivered */
  uint8_t *bytes;
  struct tide_reassembly *reassembly; /* that its FRAGMENT goes into */
  tide_account_t *account;            /* that the slot is charged to; null: free */
  uint64_t arrival;                   /* running number: FIFO order */
  int64_t arrived_ns;
} tide_slot_t;

/* Memory in which one fragmented message grows. Taken by a stream from its first fragment to the release of the
 * message. */
typedef struct tide_reassembly {
  uint8_t *bytes;
  uint32_t capacity;
  uint32_t length;
  uint8_t stream; /* 0: free */
  uint8_t state;
  tide_priority_t priority;
  uint8_t owner;
  uint16_t references, released;
  tide_account_t *account; /* of the message */
} tide_reassembly_t;

/* A frame may belong to one of several executors: what priority_of returns is the priority and TIDE_FRAME_OWNER of its
 * number, 1..127, added. Without a number anyone processes it. */
#define TIDE_FRAME_OWNER(owner) ((int32_t)(owner) << 16)

/* The frames that one lane processes: with a priority from least to most, and nobody else's. */
typedef struct tide_frame_share {
  tide_priority_t least, most;
  uint8_t owner; /* 0: those of all owners */
} tide_frame_share_t;

/* One submessage of a stream, as handed to on_submessage. */
typedef struct tide_delivery {
  tide_xrce_header_t header;
  tide_xrce_submessage_t submessage;
  int64_t arrived_ns;
  void *memory; /* tide_slot_t or tide_reassembly_t that the body lies in */
  bool reassembled;
} tide_delivery_t;

typedef struct tide_receiver_counters {
  uint32_t frames, noted, control, checksum_errors, malformed, foreign_session;
  uint32_t overflow_dropped, duplicates, outside_window, gaps, given_up, reassembly_too_large, reassembly_busy;
  uint32_t unwanted;     /* frames that nobody reads */
  uint32_t answers;      /* frames of streams that were handled at once */
  uint32_t streams_full; /* frames of a stream for which there is no place */
} tide_receiver_counters_t;

typedef struct tide_receiver_config {
  tide_slot_t *slots;
  size_t slot_count;                  /* 2 or more: one is always kept for the frame that is arriving */
  uint8_t *storage;                   /* slot_count * slot_bytes */
  uint32_t slot_bytes;                /* the largest message of the link, at most 65,535 */
  tide_queue_entry_t **noted_storage; /* slot_count places */
  tide_input_stream_t *streams;       /* taken at the first message of a stream */
  size_t stream_count;
  uint8_t window;                  /* of reliable streams, 1..16; 0: 16 */
  tide_reassembly_t *reassemblies; /* bytes and capacity filled in by the caller */
  size_t reassembly_count;         /* 0: no fragmented messages */
  void *context;
  /* The priority of the callback that a DATA submessage for this request and object will make ready, whose frame it is
   * (TIDE_FRAME_OWNER), and, in *account, whose slot it takes (null as it comes: nobody's); called once a frame, from
   * commit, for its first submessage. Negative: nobody wants it (a reliable one is still acknowledged, then dropped).
   * Null: the level of the stream decides, as it does for everything that is not DATA. */
  int32_t (*priority_of)(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account);
  /* A submessage of a stream, in order, verified. To keep the body beyond the call: tide_receiver_retain, later
   * tide_receiver_release. In a daemon: without the critical section; one call at a time for each stream. */
  void (*on_submessage)(void *context, const tide_delivery_t *delivery);
  /* A submessage without stream, or a STATUS or INFO in its turn, from commit or accept, verified. ACKNACK included;
   * HEARTBEAT and RESET have been applied already. Its body is gone after the call. In a daemon: with the critical
   * section held, so do little; every function of the daemon may be called. */
  void (*on_control)(void *context, const tide_delivery_t *delivery);
  /* An ACKNACK is to be sent. From commit and from accept. */
  void (*on_acknowledge)(void *context, uint8_t stream, uint16_t first, uint16_t missing);
} tide_receiver_config_t;

typedef struct tide_receiver {
  uint8_t session; /* messages of other sessions are dropped; 0xFF: any */
  bool withheld;   /* of a stream or more */
  uint32_t key;
  tide_slot_t *filling;
  tide_queue_t noted;
  tide_account_t nobody; /* what no account is for; first of the list of all */
  uint16_t free;         /* slots in nobody's use, without the one that is filled next */
  uint16_t owed;         /* slots that accounts have reserved and do not use */
  uint64_t next_arrival;
  tide_receiver_config_t config;
  uint32_t skipping[TIDE_FRAGMENTS ? 8 : 1];   /* by stream id: the rest of a message that is too large goes by */
  uint32_t abandoning[TIDE_FRAGMENTS ? 8 : 1]; /* by stream id: a part of a message was given up */
  tide_receiver_counters_t counters;
} tide_receiver_t;

int tide_receiver_init(tide_receiver_t *receiver, const tide_receiver_config_t *config);
/* Messages of other sessions are dropped and counted; those without a session (ids 0x80 and 0x00) are let through when
 * they have no stream. Sessions below 0x80 must come with this key. Initially any session is taken (0xFF). */
void tide_receiver_set_session(tide_receiver_t *receiver, uint8_t session, uint32_t key);
/* Streams start at 0 again; noted frames are dropped; samples in use stay valid. Any time, also from on_control. */
void tide_receiver_reset(tide_receiver_t *receiver);

/* Slots for one who reads. As many as it wants, or fewer when all accounts together want more than there are: then
 * all get the same number, or none, and a program sees in account->reserved what it got. Waiting frames of others that
 * use more than is now reserved for them give way when its own arrive. O(accounts * slots). */
void tide_receiver_open_account(tide_receiver_t *receiver, tide_account_t *account, uint16_t wanted);
/* Its frames are nobody's from now on, its reservation everybody's. */
void tide_receiver_close_account(tide_receiver_t *receiver, tide_account_t *account);
/* full: frames of the account wait, unacknowledged, and with them their streams, until it is not full any more. */
void tide_receiver_set_full(tide_receiver_t *receiver, tide_account_t *account, bool full);

/* The slot in which the next message goes (never null after init; config.slot_bytes of room). */
uint8_t *tide_receiver_claim(tide_receiver_t *receiver);
/* The claimed slot holds a message. verify: check crc when its turn comes (at once for messages without stream).
 * Returns 1: noted, 0: handled or dropped at once; errors are counted, not returned. Bounded, interrupt context. */
int tide_receiver_commit(tide_receiver_t *receiver, uint16_t length, bool verify, uint16_t crc, int64_t now_ns);

/* Priority of the most urgent noted frame that could be processed, or TIDE_PRIORITY_NONE. O(1). */
int32_t tide_receiver_most_urgent(const tide_receiver_t *receiver);
/* Verify and hand on one noted frame; those of its stream that it lets go can be processed after it. Returns the
 * number of submessages handed on; 0 when there was none or the frame was bad, early or a duplicate. */
int tide_receiver_process_most_urgent(tide_receiver_t *receiver);
/* The same for the frame that came first: the batch executor's FIFO. */
int tide_receiver_process_oldest(tide_receiver_t *receiver);
/* The same among the frames of a share; O(noted frames) when the most urgent of all is not in it. */
int32_t tide_receiver_most_urgent_of(const tide_receiver_t *receiver, const tide_frame_share_t *share);
/* Frames of this owner are everybody's from now on: it does not process any more. */
void tide_receiver_disown(tide_receiver_t *receiver, uint8_t owner);

/* The steps of process, for those who lock: take, accept and finish under the lock; verify and deliver, which read the
 * payload and call on_submessage, without. Between take and finish nobody else gets a frame of the same stream.
 *   slot = take(); if (slot && accept(slot, verify(slot))) { count = deliver(slot); finish(slot); }              */
tide_slot_t *tide_receiver_take_most_urgent(tide_receiver_t *receiver);
tide_slot_t *tide_receiver_take_oldest(tide_receiver_t *receiver);
tide_slot_t *tide_receiver_take_most_urgent_of(tide_receiver_t *receiver, const tide_frame_share_t *share);
tide_slot_t *tide_receiver_take_oldest_of(tide_receiver_t *receiver, const tide_frame_share_t *share);
bool tide_receiver_verify(const tide_slot_t *slot);
/* False: there is nothing to deliver and the slot is no longer the caller's. */
bool tide_receiver_accept(tide_receiver_t *receiver, tide_slot_t *slot, bool verified);
int tide_receiver_deliver(tide_receiver_t *receiver, tide_slot_t *slot);
void tide_receiver_finish(tide_receiver_t *receiver, tide_slot_t *slot);

/* retain: from on_submessage only, no lock needed; once for each body that is kept. release: once for each retain, in
 * any order, from any context (in a daemon: tide_daemon_release). */
void tide_receiver_retain(tide_receiver_t *receiver, const tide_delivery_t *delivery);
void tide_receiver_release(tide_receiver_t *receiver, void *memory, bool reassembled);

#ifdef __cplusplus
}
#endif
#endif
