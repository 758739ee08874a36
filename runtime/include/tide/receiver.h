/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving half of the Communication Daemon (PoDS, sections 5.2 and 5.3.2), without I/O.
 *
 * Reception. A link writes each arriving message into a free frame slot and commits it. Commit reads the header only
 * (about 20 bytes: length, kind, target object), so a link may call it from an interrupt. Commit is the reception
 * handler of PoDS. Commit handles messages without a stream at once: acknowledgments, HEARTBEATs, statuses. STATUS and
 * INFO of a stream are also handled at once if they are next in order, so they need no slot and do not wait behind
 * data. All other frames of streams are only queued by priority (the heap `noted`).
 *
 * Delivery. The executor requests the most urgent queued frame. Only then is its payload verified and delivered, in
 * place: a sample stays in its slot until it is released. A stream keeps its order. A frame that arrives early in a
 * reliable stream stays in its slot until the gap is filled. A frame that precedes an urgent one in its stream becomes
 * equally urgent.
 *
 * Acknowledgment. A reliable frame is acknowledged once its checksum is verified and it is next in order, or held until
 * it is next. A gap is reported as soon as a header shows it. The exception is a missing frame that was retransmitted
 * and found no slot: it is requested again when a slot becomes free, after TIDE_BURST_NS, or at the sender's next
 * HEARTBEAT. A queued frame that is not verified yet is neither acknowledged nor requested again. A reader that keeps
 * only its last samples (account.keep) does not hold up its stream by not reading. Once a frame waits that is three
 * quarters of the window ahead of the stream's next frame, the next frames are verified and acknowledged although they
 * still wait for their reader. Frames acknowledged in this way outlive the session. They are evicted only for newer
 * frames of their history, or when another reader needs its reservation.
 *
 * Fragments. FRAGMENTs are reassembled in the smallest free tide_reassembly that is large enough. While all that are
 * large enough are in use, the first fragment waits unacknowledged in its slot, and its stream waits with it. A message
 * larger than every tide_reassembly is skipped to its end and counted, so its stream continues. One tide_reassembly is
 * kept for each account that has received a message in fragments. No account takes a second tide_reassembly unless
 * enough remain for the first one of each other account. So a reader that does not read, or a sender that stops in the
 * middle of a message, delays no other reader. This holds if each stream carries the messages of one account and there
 * is a tide_reassembly for each account. Messages without a reader take no tide_reassembly.
 *
 * Slots belong to readers. Each reader has an account (tide_account_t) with slots reserved for it; all accounts share
 * the rest. Frames without a reader belong to a separate account with one slot. A frame beyond its account's
 * reservation gets a slot only while all reservations stay covered. Otherwise a waiting frame of the same account is
 * evicted, so no account takes slots that another account needs. Of best-effort frames the oldest is evicted (keep
 * last). Of a reliable stream the frame farthest ahead is evicted, and the peer sends it again. So the only frames lost
 * are best-effort frames and frames acknowledged early; the account counts both. If the frames of an account differ in
 * urgency, the least urgent frame is evicted (by the level of its stream, then by priority). Among frames without a
 * reader the newest is evicted.
 *
 * A reader may keep only its latest frames (account.keep). A newer frame then evicts the reader's oldest unfragmented
 * frame, which counts as received in its stream and as dropped in its account.
 *
 * Cost: commit and each step of process O(slots + reassemblies + streams + accounts), also while all slots are in use.
 * Three things cost more. On links with checksums a frame that is evicted or acknowledged early is verified, linear in
 * its bytes. An urgent frame that raises the k frames before it in its stream moves them in the heap, O(k log slots). A
 * step that frees a slot or a reassembly searches the slots once for each stream that waits for one. most_urgent O(1);
 * verify and deliver linear in the frame. Memory (Cortex-M7): tide_receiver_t 272 bytes; a slot 80, a pointer and its
 * bytes; a stream 28; a reassembly 28 and its bytes; an account 20, and 8 more with fragments.
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

TIDE_EXTERN_C_BEGIN

/* A reader's share of the slots. Memory: the reader's. */
typedef struct tide_account {
  struct tide_account *next; /* set by the receiver, as are all members below except keep and dropped */
  uint16_t wanted;           /* slots requested */
  uint16_t reserved;         /* slots granted */
  uint16_t used;             /* slots that hold its frames, queued or not yet released */
  uint8_t stream;            /* stream of its last frame */
  bool full;                 /* the reader accepts no frames now, so its frames wait */
  uint8_t keep;              /* set by its owner: largest number of frames that wait, beyond which older frames are
                              * evicted; 0: all wait */
  uint32_t dropped;          /* frames that were evicted (best effort) or replaced by newer frames (keep) */
#if TIDE_FRAGMENTS && TIDE_RESERVATIONS
  uint16_t reassemblies;   /* reassemblies in use */
  uint16_t waits;          /* times a message waited for a reassembly because the account's own was in use */
  uint32_t fragment_bytes; /* size of its largest fragmented message; 0: none so far */
#endif
} tide_account_t;

typedef struct tide_slot {
  tide_queue_entry_t entry; /* in the heap `noted` of queued frames; first member */
  bool verify;
  uint8_t state; /* set by the receiver, as are all members below */
  uint8_t stream;
  uint8_t owner;  /* number of the executor that may process the frame; 0: any */
  bool arrived;   /* the frame is registered in its stream */
  bool passed;    /* acknowledged early, so its stream does not wait for this frame */
  bool continues; /* a FRAGMENT that is not the last of its message */
  bool whole;     /* consists of DATA only */
  bool unwanted;  /* has no reader: only its sequence number matters */
  bool answers;   /* consists of STATUS and INFO only */
  bool blocked;   /* waits for a tide_reassembly */
  bool skips, skip_ended, too_large, malformed, completed; /* results of the delivery */
  uint16_t length;
  uint16_t crc; /* received checksum; meaningful when verify is set */
  uint16_t sequence;
  tide_priority_t priority; /* the frame's own priority, or the higher priority of a later frame in its stream */
  uint16_t references;      /* calls of tide_receiver_retain so far; only on_submessage makes them */
  uint16_t released;        /* calls of tide_receiver_release so far */
  uint16_t position;        /* offset of the next submessage to deliver; 0: none delivered yet */
  uint8_t *bytes;
  struct tide_reassembly *reassembly; /* where its message is reassembled, if this is a FRAGMENT */
  tide_account_t *account;            /* account that uses the slot; null: free, or being filled */
  uint64_t arrival;                   /* running number: FIFO order */
  int64_t arrived_ns;
} tide_slot_t;

/* Memory for one fragmented message. A stream uses it from the first fragment to the release of the message. */
typedef struct tide_reassembly {
  uint8_t *bytes;
  uint32_t capacity;
  uint32_t length;
  uint8_t stream; /* 0: free */
  uint8_t state;
  tide_priority_t priority;
  uint8_t owner;
  uint16_t references, released;
  tide_account_t *account; /* account of the message */
} tide_reassembly_t;

/* The history depth limits how many frames of a reader wait. Frames that arrived within the last TIDE_BURST_NS count as
 * a burst, and may exceed the depth as long as there are spare slots. Same value as Limits::burst_ns of the agent. */
#define TIDE_BURST_NS INT64_C(20000000)

/* A frame may belong to one of several executors. Then priority_of returns the priority plus TIDE_FRAME_OWNER(number of
 * the executor, 1..127). Any executor may process a frame without such a number. */
#define TIDE_FRAME_OWNER(owner) ((int32_t)(owner) << 16)

/* The frames that one lane processes: frames of its executor (owner) with a priority from least to most. */
typedef struct tide_frame_share {
  tide_priority_t least, most;
  uint8_t owner; /* 0: all owners */
} tide_frame_share_t;

/* One submessage of a stream, for on_submessage. */
typedef struct tide_delivery {
  tide_xrce_header_t header;
  tide_xrce_submessage_t submessage;
  int64_t arrived_ns;
  void *memory; /* the tide_slot_t or tide_reassembly_t that holds the body */
  bool reassembled;
} tide_delivery_t;

typedef struct tide_receiver_counters {
  uint32_t frames, noted, control, checksum_errors, malformed, foreign_session;
  uint32_t overflow_dropped, duplicates, outside_window, gaps, given_up, reassembly_too_large, reassembly_busy;
  uint32_t unwanted;     /* frames without a reader */
  uint32_t answers;      /* frames of streams that commit handled at once */
  uint32_t streams_full; /* frames of streams for which no stream element was free */
} tide_receiver_counters_t;

typedef struct tide_receiver_config {
  tide_slot_t *slots;
  size_t slot_count;                  /* 2 or more: one is reserved for the arriving frame */
  uint8_t *storage;                   /* slot_count * slot_bytes */
  uint32_t slot_bytes;                /* the largest message of the link, at most 65,535 */
  tide_queue_entry_t **noted_storage; /* array of slot_count */
  tide_input_stream_t *streams;       /* each stream takes an element at its first message */
  size_t stream_count;
  uint8_t window;                  /* window of reliable streams, 1..16; 0: 16 */
  tide_reassembly_t *reassemblies; /* bytes and capacity filled in by the caller */
  size_t reassembly_count;         /* 0: no fragmented messages */
  void *context;
  /* Called by commit for a frame that begins with DATA, or with the first fragment of DATA, and by accept for the first
   * fragment again. Returns the priority of the callback that a DATA submessage for this request and object will make
   * ready, plus the executor that owns the reader (TIDE_FRAME_OWNER). Sets *account to the reader's account; on entry,
   * *account is that of frames without a reader. A negative result: the frame has no reader (if reliable, it is still
   * acknowledged, then dropped). If the function is null, the level of the stream decides, as for all submessages but
   * DATA. */
  int32_t (*priority_of)(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account);
  /* A submessage of a stream, in order and verified. To keep its body beyond the call, use tide_receiver_retain and
   * later tide_receiver_release. A daemon calls it without the critical section, one call at a time for each stream. */
  void (*on_submessage)(void *context, const tide_delivery_t *delivery);
  /* A verified submessage without a stream, or a STATUS or INFO that is next in order; called by commit or accept.
   * ACKNACKs are included. HEARTBEAT and RESET have been applied already. Its body is valid during the call only. A
   * daemon calls it with the critical section held, so keep it short; every function of the daemon may be called from
   * it. */
  void (*on_control)(void *context, const tide_delivery_t *delivery);
  /* An ACKNACK must be sent. Called by commit and accept. */
  void (*on_acknowledge)(void *context, uint8_t stream, uint16_t first, uint16_t missing);
} tide_receiver_config_t;

typedef struct tide_receiver {
  uint8_t session; /* messages of other sessions are dropped; 0xFF: any */
  bool withheld;   /* a stream has missing frames that are not requested, for lack of slots */
  uint32_t key;
  tide_slot_t *filling;
  tide_queue_t noted;
  tide_account_t nobody; /* account of frames without a reader; first in the list of accounts */
  uint16_t free;         /* free slots, except the one that is filled next */
  uint16_t slots_used;   /* slots from this index on are free and need not be inspected */
  uint16_t owed;         /* reserved slots that are not in use */
  uint64_t next_arrival;
  int64_t refused_ns; /* time at which a reliable frame last found no slot; 0: not within TIDE_BURST_NS */
  tide_receiver_config_t config;
  uint32_t skipping[TIDE_FRAGMENTS ? 8 : 1];   /* bit per stream id: the rest of a message that is too large or has no
                                                  reader is skipped */
  uint32_t abandoning[TIDE_FRAGMENTS ? 8 : 1]; /* bit per stream id: part of a message was given up */
  tide_receiver_counters_t counters;
} tide_receiver_t;

int tide_receiver_init(tide_receiver_t *receiver, const tide_receiver_config_t *config);
/* Accept this session only: messages of other sessions are dropped and counted. Messages without a session (ids 0x80
 * and 0x00) pass when they have no stream. Sessions below 0x80 must carry this key. session 0x80: there is no session
 * now; messages without a stream pass with any id, and all others are dropped. Initially everything passes (0xFF). */
void tide_receiver_set_session(tide_receiver_t *receiver, uint8_t session, uint32_t key);
/* Start all streams at 0 again. Noted frames are dropped, except those already acknowledged; samples in use stay valid.
 * May be called at any time, also from on_control. */
void tide_receiver_reset(tide_receiver_t *receiver);

/* Reserve slots for a reader: as many as it requests, or fewer when all accounts together request more slots than
 * exist. In that case all accounts get the same number, perhaps none; account->reserved holds it. When the reader's
 * frames arrive, waiting frames of accounts beyond their reservation are evicted. O(accounts * slots). */
void tide_receiver_open_account(tide_receiver_t *receiver, tide_account_t *account, uint16_t wanted);
/* End the reservation. The account's frames have no reader from now on. */
void tide_receiver_close_account(tide_receiver_t *receiver, tide_account_t *account);
/* True if the account's oldest sample should be dropped. Two conditions must hold. First, its queued samples (the given
 * number) and its messages in slots exceed the history depth. Second, the oldest sample is too old for a burst
 * (is_old), or slots are short: none is free beyond the reservations, or missing frames are not requested for lack of
 * slots. If slots are short, an old sample is dropped as soon as the account uses its whole reservation, unless it is
 * the only one. O(slots). */
bool tide_receiver_is_behind(const tide_receiver_t *receiver, const tide_account_t *account, size_t samples,
                             bool is_old);
/* While an account is full, its frames wait unacknowledged, and their streams wait with them. */
void tide_receiver_set_full(tide_receiver_t *receiver, tide_account_t *account, bool full);

/* Returns the slot for the next message: a buffer of config.slot_bytes, never null after init. */
uint8_t *tide_receiver_claim(tide_receiver_t *receiver);
/* Commit the message in the claimed slot. verify: check crc before delivery (at once for messages without stream).
 * Returns 1: queued; 0: handled or dropped. Errors are counted, not returned. Bounded; may run in an interrupt. */
int tide_receiver_commit(tide_receiver_t *receiver, uint16_t length, bool verify, uint16_t crc, int64_t now_ns);

/* True if frames of reliable streams find no slot, or found none a moment ago: tide_receiver_poll has work. */
static inline bool tide_receiver_is_short(const tide_receiver_t *receiver) {
  return receiver->withheld || receiver->refused_ns != 0;
}
/* While frames find no slot, drop samples beyond the history depths, let streams continue past frames that wait, and
 * request again the frames that found no slot. Returns when to call this function again; also call it after each
 * commit. O(slots * (accounts + streams)). */
int64_t tide_receiver_poll(tide_receiver_t *receiver, int64_t now_ns);

/* Priority of the most urgent queued frame that could be processed, or TIDE_PRIORITY_NONE. O(1). */
int32_t tide_receiver_most_urgent(const tide_receiver_t *receiver);
/* Verify and deliver the most urgent queued frame. Other frames of its stream that waited for this frame can be
 * processed next. Returns the number of submessages delivered; 0 when there was no frame, or the frame was bad, early
 * or a duplicate. */
int tide_receiver_process_most_urgent(tide_receiver_t *receiver);
/* Like tide_receiver_process_most_urgent, but for the frame that arrived first (the FIFO of the batch executor). */
int tide_receiver_process_oldest(tide_receiver_t *receiver);
/* Like tide_receiver_most_urgent, but only for the frames of one share. O(queued frames) if the most urgent of all
 * queued frames belongs to another share. */
int32_t tide_receiver_most_urgent_of(const tide_receiver_t *receiver, const tide_frame_share_t *share);
/* Whether the predicate `is` holds for the account of the share's most urgent frame (is_first), or of an equally urgent
 * frame. O(queued frames). */
bool tide_receiver_any_of(const tide_receiver_t *receiver, const tide_frame_share_t *share, void *context,
                          bool (*is)(void *context, const tide_account_t *account, bool is_first));
/* The owner has ended: any executor may process its frames from now on. */
void tide_receiver_disown(tide_receiver_t *receiver, uint8_t owner);

/* The steps of tide_receiver_process_most_urgent, for a caller that does its own locking. Call take, accept and finish
 * under the lock. Call verify and deliver without the lock: they read the payload and call on_submessage. Between take
 * and finish no other caller gets a frame of the same stream. slot = take(); if (slot && accept(slot, verify(slot))) {
 * count = deliver(slot); finish(slot); } */
tide_slot_t *tide_receiver_take_most_urgent_of(tide_receiver_t *receiver, const tide_frame_share_t *share);
tide_slot_t *tide_receiver_take_oldest_of(tide_receiver_t *receiver, const tide_frame_share_t *share);
bool tide_receiver_verify(const tide_slot_t *slot);
/* False: nothing to deliver, and the slot no longer belongs to the caller. */
bool tide_receiver_accept(tide_receiver_t *receiver, tide_slot_t *slot, bool verified);
int tide_receiver_deliver(tide_receiver_t *receiver, tide_slot_t *slot);
void tide_receiver_finish(tide_receiver_t *receiver, tide_slot_t *slot);

/* retain: call it only from on_submessage, once for each body that is kept. It needs no lock. release: call it once for
 * each retain, in any order, from any context (in a daemon: tide_daemon_release). */
void tide_receiver_retain(tide_receiver_t *receiver, const tide_delivery_t *delivery);
void tide_receiver_release(tide_receiver_t *receiver, void *memory, bool reassembled);

TIDE_EXTERN_C_END
#endif
