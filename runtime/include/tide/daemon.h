/* SPDX-License-Identifier: Apache-2.0 */
/* The Communication Daemon: owner of one link. It connects transmitter and receiver to a link and a platform, makes
 * their calls safe between threads and interrupts, and keeps the wire busy.
 *
 * Contexts. Any thread or interrupt may submit. The link's context (an interrupt on a microcontroller, the link's
 * thread on POSIX) calls on_transmit_complete, on_bytes, on_message and poll. The executor calls process and release,
 * from any number of lanes at once.
 *
 * The wire never waits for a preempted thread. A single critical section of the platform covers the event that makes a
 * frame ready or the wire free, and the start of the most urgent frame. So outside of the section the wire is never
 * idle while a frame could be sent. An urgent frame is delayed by no more than the rest of the frame on the wire and
 * one start. Calling start outside of the section was rejected: a less urgent thread that is preempted inside start
 * would then block the wire until it runs again. To let another thread use the wire meanwhile, every link would need a
 * second buffer and a start that can be aborted.
 *
 * Critical sections are short and bounded. They contain no on_submessage and at most one start of the link. They copy
 * no message, except one that is packed into another. They compute no checksum, except of frames that
 * tide_receiver_commit handles at once, and of frames that are evicted or acknowledged early. Two lanes never deliver
 * frames of the same stream at the same time, so a stream keeps its order.
 *
 * Memory (Cortex-M7): tide_daemon_t about 1 KiB, plus the memory named in the configurations of its two halves. */
#ifndef TIDE_DAEMON_H
#define TIDE_DAEMON_H

#include "tide/framing.h"
#include "tide/platform.h"
#include "tide/receiver.h"
#include "tide/transmitter.h"
#if TIDE_TRACE
#include "tide/trace.h"
#endif

TIDE_EXTERN_C_BEGIN

struct tide_daemon;

/* The functions of a link.
 *
 * start puts one message on the wire and returns at once. TIDE_LINK_SENT: the message has left, and no further call
 * follows; if the frame is `awaited`, somebody has to call tide_daemon_poll. TIDE_OK: the parts stay valid until the
 * link calls tide_daemon_on_transmit_complete. The link calls it exactly once, when the last byte has left: later, from
 * any context, or already within start. After a negative return the message counts as sent and lost; a reliable stream
 * sends it again.
 *
 * start is called with the critical section held, from any context that makes a frame ready or the wire free: a
 * submitter, the executor, the link's context. So start must be short and bounded, must never wait, and must be able to
 * run in an interrupt. It should only store the parts and start the hardware. Work that is linear in the message
 * (framing, checksum) should be done as the bytes leave (tide_framing_writer); otherwise it must not exceed the
 * interrupt latency that the board tolerates. start may take locks if they are held briefly and never during calls of
 * the daemon. No start is under way when tide_daemon_detach_link has returned. */
#define TIDE_LINK_SENT 1

typedef enum tide_wait {
  TIDE_WAIT_NOT,    /* receive available data, and return */
  TIDE_WAIT_ANSWER, /* an answer is imminent, so polling may be worthwhile */
  TIDE_WAIT_WORK,   /* an executor on the program's thread waits for any work */
  TIDE_WAIT_LANE    /* a lane with its own thread, which the link and other lanes may preempt */
} tide_wait_t;

typedef struct tide_link {
  void *context;
  int (*start)(void *context, const tide_frame_parts_t *frame);
  /* Optional: waits for an event that a message of this link sets, like event_wait of the platform. Meanwhile the link
   * may let the caller receive; an answer then wakes one thread rather than two in turn. Called from any thread, never
   * with the critical section held. It returns at deadline_ns even when the link is closed meanwhile. `hold` is called
   * before `wait`, with the critical section held. From then until `wait` returns, the context must stay valid. With
   * TIDE_WAIT_NOT there is no event, and the call never waits. A submitter with many unacknowledged messages makes this
   * call, so that acknowledgments need not wake the link's context. */
  int (*wait)(void *context, tide_event_t *event, int64_t deadline_ns, tide_wait_t kind);
  void (*hold)(void *context);
  int64_t heartbeat_floor_ns; /* replaces the transmitter's value while this link is attached */
} tide_link_t;

typedef struct tide_daemon_config {
  const tide_platform_t *platform;
  tide_transmitter_config_t transmitter; /* the daemon sets on_done and context: leave them empty */
  tide_receiver_config_t receiver;       /* context is passed on; the daemon sets on_acknowledge. ACKNACKs have been
                                            applied when on_control sees them. */
  /* A frame was queued or acknowledged, or the state changed: wake the executor. It is called by whichever function of
   * the daemon caused the change, in that function's context and without the critical section. May be null. */
  void (*on_activity)(void *context);
  /* As in the transmitter's configuration. Called with the critical section held, so keep it short; every function of
   * the daemon may be called from it. May be null. */
  void (*on_done)(void *context, tide_node_t *node, tide_node_outcome_t outcome);
  void *context;
} tide_daemon_config_t;

typedef struct tide_daemon {
  bool link_open;
  bool starting, completed, cancelled; /* starting: link.start is running; completed, cancelled: meanwhile its frame was
                                          reported complete, or the link was detached */
  bool deferring;                      /* frames submitted by on_control and on_done are sent afterwards */
  bool out_of_step;                    /* since set_session the peer has acknowledged messages that were never sent */
  bool changed;                        /* on_activity must be called */
  const tide_platform_t *platform;
  tide_link_t link;
  tide_frame_parts_t frame;     /* the frame on the wire */
  tide_framing_reader_t reader; /* used with links that deliver bytes */
  struct {
    void (*on_activity)(void *context);
    void (*on_done)(void *context, tide_node_t *node, tide_node_outcome_t outcome);
    void *context;
    void *receiver_context;
    int32_t (*priority_of)(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account);
    void (*on_submessage)(void *context, const tide_delivery_t *delivery);
    void (*on_control)(void *context, const tide_delivery_t *delivery);
  } owner; /* the functions of the configuration */
  int64_t last_received_ns;
#if TIDE_TRACE
  tide_trace_ring_t *trace; /* null, or the ring for its records; set by the program after tide_daemon_init */
#endif
  tide_receiver_t receiver;
  tide_transmitter_t transmitter;
} tide_daemon_t;

#if TIDE_STATIC_PLATFORM /* the session defines these; they replace the pointers of the configuration */
int32_t tide_daemon_owner_priority_of(tide_daemon_t *daemon, uint8_t stream, tide_xrce_request_t request,
                                      tide_account_t **account);
void tide_daemon_owner_on_submessage(tide_daemon_t *daemon, const tide_delivery_t *delivery);
void tide_daemon_owner_on_control(tide_daemon_t *daemon, const tide_delivery_t *delivery);
void tide_daemon_owner_on_activity(tide_daemon_t *daemon);
void tide_daemon_owner_on_done(tide_daemon_t *daemon, tide_node_t *node, tide_node_outcome_t outcome);
#endif

int tide_daemon_init(tide_daemon_t *daemon, const tide_daemon_config_t *config);

/* Attach a link that is up: frames are sent from now on. A link that delivers bytes receives serial frames for
 * `address`. Call it from the link's context. */
int tide_daemon_attach_link(tide_daemon_t *daemon, const tide_link_t *link, uint8_t address);
/* Detach a link that is down: the frame on the wire is sent again later. The link must have released the frame (DMA
 * stopped) and must not report it any more. Call it from the link's context. */
void tide_daemon_detach_link(tide_daemon_t *daemon);

/* Submission takes bounded time and never waits. acquire gives the caller a node to fill outside the critical section.
 * TIDE_ERROR_FULL: no node is free (after expired messages were reclaimed), and there is no message of lower priority
 * that could be evicted. */
int tide_daemon_acquire(tide_daemon_t *daemon, uint32_t bytes, tide_priority_t priority, tide_node_t **node);
/* Like tide_transmitter_acquire_for. */
int tide_daemon_acquire_for(tide_daemon_t *daemon, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                            tide_node_t **node);
/* Like tide_transmitter_acquire_own. */
int tide_daemon_acquire_own(tide_daemon_t *daemon, uint32_t bytes, tide_node_t **node);
/* For best-effort writers with KEEP_LAST: like tide_transmitter_acquire_last and tide_transmitter_keep_last. Call the
 * second one within the platform's critical section. */
int tide_daemon_acquire_last(tide_daemon_t *daemon, uint32_t bytes, tide_priority_t priority, uint16_t writer,
                             tide_node_t **node);
void tide_daemon_keep_last_locked(tide_daemon_t *daemon, tide_node_t *node, uint8_t stream, uint16_t depth);
void tide_daemon_abandon(tide_daemon_t *daemon, tide_node_t *node);
int tide_daemon_submit(tide_daemon_t *daemon, tide_node_t *node, uint8_t stream);
/* Like submit, for a caller inside the platform's critical section. The node is submitted, and the section is then left
 * with `state`. So what the caller decided inside the section still holds at submission. */
int tide_daemon_submit_and_leave(tide_daemon_t *daemon, tide_node_t *node, uint8_t stream, uintptr_t state);
/* Like tide_transmitter_submit_part. */
int tide_daemon_submit_part(tide_daemon_t *daemon, tide_long_message_t *message, tide_node_t *node, uint8_t stream,
                            bool complete);
int tide_daemon_submit_control(tide_daemon_t *daemon, const uint8_t *submessage, size_t length, uint8_t session,
                               tide_priority_t priority);

/* Called by the link. */
void tide_daemon_on_transmit_complete(tide_daemon_t *daemon);
void tide_daemon_on_bytes(tide_daemon_t *daemon, const uint8_t *bytes, size_t count);      /* serial */
void tide_daemon_on_message(tide_daemon_t *daemon, const uint8_t *message, size_t length); /* datagram, one message */
/* Wait for an event that a message of this peer sets: by tide_link_t.wait if the link has one, else by event_wait of
 * the platform. Only threads may call it. */
int tide_daemon_wait(tide_daemon_t *daemon, tide_event_t *event, int64_t deadline_ns, tide_wait_t kind);
/* Handle due HEARTBEATs and expiries, and start a frame if the wire is idle. Returns when to call it again. The
 * link's context also calls it after each of the functions above, because sending and receiving change that time. */
int64_t tide_daemon_poll(tide_daemon_t *daemon);

/* Called by the executor. */
int32_t tide_daemon_most_urgent(tide_daemon_t *daemon);
int tide_daemon_process_most_urgent(tide_daemon_t *daemon);
int tide_daemon_process_oldest(tide_daemon_t *daemon);
/* These three functions do the same for one lane's share of the frames: see tide_receiver_most_urgent_of. */
int32_t tide_daemon_most_urgent_of(tide_daemon_t *daemon, const tide_frame_share_t *share);
int tide_daemon_process_most_urgent_of(tide_daemon_t *daemon, const tide_frame_share_t *share);
int tide_daemon_process_oldest_of(tide_daemon_t *daemon, const tide_frame_share_t *share);
void tide_daemon_disown(tide_daemon_t *daemon, uint8_t owner);
void tide_daemon_release(tide_daemon_t *daemon, void *memory, bool reassembled);
/* Calls tide_receiver_set_full(account, false), then wakes the executor. */
void tide_daemon_resume(tide_daemon_t *daemon, tide_account_t *account);

/* Begin a new session: see tide_transmitter_reset and tide_receiver_reset. */
void tide_daemon_set_session(tide_daemon_t *daemon, uint8_t session, uint32_t key);
void tide_daemon_reset(tide_daemon_t *daemon, bool keep);
int tide_daemon_set_heartbeat_delay(tide_daemon_t *daemon, int64_t delay_ns);
int tide_daemon_set_packing(tide_daemon_t *daemon, bool pack);
int tide_daemon_hold_level(tide_daemon_t *daemon, uint8_t level, bool hold);
void tide_daemon_pause_streams(tide_daemon_t *daemon, bool paused);
bool tide_daemon_is_idle(tide_daemon_t *daemon, uint8_t stream);

TIDE_EXTERN_C_END
#endif
