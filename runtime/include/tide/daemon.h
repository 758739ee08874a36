/* SPDX-License-Identifier: Apache-2.0 */
/* The Communication Daemon: owner of one link. It joins transmitter and receiver to a link and a platform, makes their
 * calls safe between threads and interrupts, and keeps the wire busy.
 *
 * Contexts: submit from any thread or interrupt; on_transmit_complete, on_bytes, on_message and poll from the link's
 * context (an interrupt on a microcontroller, the link's thread on POSIX); process and release from the executor, any
 * number of lanes at once.
 *
 * The wire never waits for somebody who is preempted: what makes a frame ready or the wire free, and the link's start
 * of the most urgent frame there is then, are one critical section of the platform. Elsewhere a frame that could go and
 * an idle wire never meet, so the delay of an urgent frame is the rest of the one frame on the wire, and one start.
 * Rejected: start outside of the section. A less urgent thread that is preempted inside of it would keep the wire, and
 * everybody's frames, until it runs again; giving the wire to another thread meanwhile would need a second buffer, and
 * a start that survives being forgotten, in every link.
 *
 * Critical sections are short and bounded: no copy, no checksum and no on_submessage lies inside, and of the link one
 * start. Two lanes never deliver frames of the same stream at the same time, so a stream keeps its order.
 *
 * Memory (Cortex-M7): tide_daemon_t about 1 KiB, plus what the configurations of its two halves name. */
#ifndef TIDE_DAEMON_H
#define TIDE_DAEMON_H

#include "tide/framing.h"
#include "tide/platform.h"
#include "tide/receiver.h"
#include "tide/transmitter.h"
#if TIDE_TRACE
#include "tide/trace.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct tide_daemon;

/* What a link offers. start puts one message on the wire and returns at once; the parts stay valid until the link
 * calls tide_daemon_on_transmit_complete, which it does when the last byte has left, exactly once for each start that
 * returned TIDE_OK: later from any context, or from within start when the message is gone by then (where the message is
 * awaited, tide_daemon_poll is due all the same). A negative return: the message is counted as sent and lost (the
 * streams repair it).
 * start is called with the critical section held, by whoever made a frame ready or the wire free (a submitter, the
 * executor, the link's context), so it must be short, bounded and fit for an interrupt: it never waits. Best it only
 * takes note of the parts and sets the hardware going; what is linear in the message (framing, checksum) is done as the
 * bytes leave (tide_framing_writer), or is as short as the interrupt latency that the board can bear. It may take locks
 * that are only ever held briefly, and never while the daemon is called. When tide_daemon_detach_link has returned, no
 * start is under way. */
typedef struct tide_link {
  void *context;
  int (*start)(void *context, const tide_frame_parts_t *frame);
  /* Optional. For a caller that waits for something that comes by this link: as event_wait of the platform, but the
   * link may have the caller receive meanwhile, so that an answer wakes one thread and not two in turn. From any
   * thread, never with the critical section held; bounded by deadline_ns even when the link is closed meanwhile. */
  int (*wait)(void *context, tide_event_t *event, int64_t deadline_ns);
  int64_t heartbeat_floor_ns; /* as in the transmitter's configuration, as long as this link is attached */
} tide_link_t;

typedef struct tide_daemon_config {
  const tide_platform_t *platform;
  tide_transmitter_config_t transmitter; /* on_done and context are the daemon's: leave them empty */
  tide_receiver_config_t receiver;       /* context is passed on; on_acknowledge is the daemon's. ACKNACKs have been
                                            applied when on_control sees them. */
  /* Something was noted, acknowledged or changed: wake whoever executes. From the link's context, or from a release
   * that lets a waiting frame go on; without the critical section. May be null. */
  void (*on_activity)(void *context);
  /* As in the transmitter's configuration; called with the critical section held, so do little; every function of the
   * daemon may be called. May be null. */
  void (*on_done)(void *context, tide_node_t *node, tide_node_outcome_t outcome);
  void *context;
} tide_daemon_config_t;

/* A caller that waits for a node; on its stack. */
typedef struct tide_daemon_waiter {
  struct tide_daemon_waiter *next;
  tide_event_t event;
  uint32_t bytes;
  tide_priority_t priority;
  bool own; /* as tide_transmitter_acquire_own */
} tide_daemon_waiter_t;

typedef struct tide_daemon {
  bool link_open;
  bool starting, completed, cancelled; /* link.start is being called; what it reported about that frame itself */
  bool deferring;                      /* what on_control and on_done submit goes out afterwards */
  bool out_of_step;                    /* the peer acknowledged what was never sent, since set_session */
  bool changed;                        /* on_activity is to be called */
  const tide_platform_t *platform;
  tide_link_t link;
  tide_frame_parts_t frame;      /* on the wire */
  tide_framing_reader_t reader;  /* for links that deliver bytes */
  tide_daemon_waiter_t *waiters; /* most urgent first, then the one that came first */
  tide_event_t done_event;       /* set when a node comes back: callers that wait sleep on it */
  struct {
    void (*on_activity)(void *context);
    void (*on_done)(void *context, tide_node_t *node, tide_node_outcome_t outcome);
    void *context;
    void *receiver_context;
    int32_t (*priority_of)(void *context, uint8_t stream, tide_xrce_request_t request, tide_account_t **account);
    void (*on_submessage)(void *context, const tide_delivery_t *delivery);
    void (*on_control)(void *context, const tide_delivery_t *delivery);
  } owner; /* of the configuration: whom to tell */
  int64_t last_received_ns;
#if TIDE_TRACE
  tide_trace_ring_t *trace; /* null, or where its records go; set by the program after tide_daemon_init */
#endif
  tide_receiver_t receiver;
  tide_transmitter_t transmitter;
} tide_daemon_t;

#if TIDE_STATIC_SESSION /* the session has these, in place of the pointers of the configuration */
int32_t tide_daemon_owner_priority_of(tide_daemon_t *daemon, uint8_t stream, tide_xrce_request_t request,
                                      tide_account_t **account);
void tide_daemon_owner_on_submessage(tide_daemon_t *daemon, const tide_delivery_t *delivery);
void tide_daemon_owner_on_control(tide_daemon_t *daemon, const tide_delivery_t *delivery);
void tide_daemon_owner_on_activity(tide_daemon_t *daemon);
void tide_daemon_owner_on_done(tide_daemon_t *daemon, tide_node_t *node, tide_node_outcome_t outcome);
#endif

int tide_daemon_init(tide_daemon_t *daemon, const tide_daemon_config_t *config);

/* The link is up: frames go out from now on, and bytes arrive as serial frames for `address` (if the link delivers
 * bytes). From the link's context. */
int tide_daemon_attach_link(tide_daemon_t *daemon, const tide_link_t *link, uint8_t address);
/* The link is down: what was on the wire is sent again later. The link must have let go of the frame (DMA stopped) and
 * must not report it any more. From the link's context. */
void tide_daemon_detach_link(tide_daemon_t *daemon);

/* Submit: bounded time, never waits. acquire gives the caller a node of its own to fill outside the critical section.
 * When it answers TIDE_ERROR_FULL (expired nodes have been taken back by then, or somebody as urgent waits for such a
 * node), nothing less urgent could give way. One who wants to wait does so with acquire_until, or (one caller at a
 * time) sleeps on done_event, which is set whenever a node comes back, and tries again. */
int tide_daemon_acquire(tide_daemon_t *daemon, uint32_t bytes, tide_priority_t priority, tide_node_t **node);
/* The same, as tide_transmitter_acquire_own. */
int tide_daemon_acquire_own(tide_daemon_t *daemon, uint32_t bytes, tide_node_t **node);
/* The same, but waits until deadline_ns for a node: the most urgent that waits gets the one that comes back, of equals
 * the first.
 * TIDE_ERROR_TIMEOUT. From threads only, any number of them; never from a callback. O(waiting threads). */
int tide_daemon_acquire_until(tide_daemon_t *daemon, uint32_t bytes, tide_priority_t priority, int64_t deadline_ns,
                              tide_node_t **node);
/* For a caller within the platform's critical section: a node that is free now. TIDE_ERROR_FULL: there is none that may
 * be taken without more work; leave the section and call tide_daemon_acquire. */
int tide_daemon_acquire_locked(tide_daemon_t *daemon, uint32_t bytes, tide_priority_t priority, tide_node_t **node);
void tide_daemon_abandon(tide_daemon_t *daemon, tide_node_t *node);
int tide_daemon_submit(tide_daemon_t *daemon, tide_node_t *node, uint8_t stream);
/* The same for a caller within the platform's critical section, which is left with `state`: what it
 * decided there still holds when the node is submitted. */
int tide_daemon_submit_and_leave(tide_daemon_t *daemon, tide_node_t *node, uint8_t stream, uintptr_t state);
int tide_daemon_submit_control(tide_daemon_t *daemon, const uint8_t *submessage, size_t length, uint8_t session,
                               tide_priority_t priority);

/* From the link. */
void tide_daemon_on_transmit_complete(tide_daemon_t *daemon);
void tide_daemon_on_bytes(tide_daemon_t *daemon, const uint8_t *bytes, size_t count);      /* serial */
void tide_daemon_on_message(tide_daemon_t *daemon, const uint8_t *message, size_t length); /* datagram, one message */
/* For a thread that waits for something from this peer: event_wait of the platform, by way of the link if it has one of
 * its own (tide_link_t.wait). */
int tide_daemon_wait(tide_daemon_t *daemon, tide_event_t *event, int64_t deadline_ns);
/* Heartbeats, expiries; starts the wire if it is idle. Returns when to be called again; the link's context calls it
 * after everything above, too, because sending and hearing move that time. */
int64_t tide_daemon_poll(tide_daemon_t *daemon);

/* From the executor. */
int32_t tide_daemon_most_urgent(tide_daemon_t *daemon);
int tide_daemon_process_most_urgent(tide_daemon_t *daemon);
int tide_daemon_process_oldest(tide_daemon_t *daemon);
/* The same of one lane's share of the frames: see tide_receiver_most_urgent_of. */
int32_t tide_daemon_most_urgent_of(tide_daemon_t *daemon, const tide_frame_share_t *share);
int tide_daemon_process_most_urgent_of(tide_daemon_t *daemon, const tide_frame_share_t *share);
int tide_daemon_process_oldest_of(tide_daemon_t *daemon, const tide_frame_share_t *share);
void tide_daemon_disown(tide_daemon_t *daemon, uint8_t owner);
void tide_daemon_release(tide_daemon_t *daemon, void *memory, bool reassembled);
/* tide_receiver_set_full(account, false), and whoever processes frames is told. */
void tide_daemon_resume(tide_daemon_t *daemon, tide_account_t *account);

/* A new session: see tide_transmitter_reset and tide_receiver_reset. */
void tide_daemon_set_session(tide_daemon_t *daemon, uint8_t session, uint32_t key);
void tide_daemon_reset(tide_daemon_t *daemon, bool keep);
int tide_daemon_set_heartbeat_delay(tide_daemon_t *daemon, int64_t delay_ns);
int tide_daemon_set_packing(tide_daemon_t *daemon, bool pack);
int tide_daemon_hold_level(tide_daemon_t *daemon, uint8_t level, bool hold);
void tide_daemon_pause_streams(tide_daemon_t *daemon, bool paused);
bool tide_daemon_is_idle(tide_daemon_t *daemon, uint8_t stream);

#ifdef __cplusplus
}
#endif
#endif
