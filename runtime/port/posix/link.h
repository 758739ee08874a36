/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of link of this port share: a descriptor, a thread that plays the interrupt side, and one frame on its
 * way out. A kind fills in how its descriptor is opened, and how messages become bytes and back.
 *
 * Two contexts meet here. Submitters call the daemon's start, which writes to the descriptor at once, so that a frame
 * does not wait for a thread to wake. The link's thread does everything else. `mutex` guards the descriptor and the
 * outgoing frame; it is taken after the daemon's critical section and never held while the daemon is called.
 *
 * Datagrams end as they start: the system takes them at once, so the thread is not woken for them. It has the top
 * priority, so where it were, it would run after each of them and no two would ever leave together. It is there for
 * what arrives, for acknowledgments that do not, for what the system does not take now, and in a flood for what waits
 * for others (link_output.c). While it is in a turn of its own, what submitters have joins its batch.
 *
 * Datagrams are also received by callers that wait for something (link_wait.c), so that an answer need not wake two
 * threads in turn; `receiving` keeps them apart. The thread wakes all the same, because it may be more urgent. */
#ifndef TIDE_PORT_POSIX_LINK_H
#define TIDE_PORT_POSIX_LINK_H

#include <pthread.h>
#include <stdatomic.h>

#include "busy_poll.h"
#include "link_datagrams.h"
#include "link_times.h"
#include "tide/link_serial.h"
#include "tide/port.h"
#include "tide/posix_thread.h"

#define TIDE_POSIX_LINK_INPUT_BYTES 65540u /* the longest message and its length */
#define TIDE_POSIX_LINK_DATAGRAM_BYTES ((size_t)4u * TIDE_DATAGRAM_BYTES_MAXIMUM)

typedef struct tide_posix_link tide_posix_link_t;

typedef struct tide_posix_link_kind {
  /* Open the address; a non-blocking descriptor, or a negative status. */
  int (*open)(tide_posix_link_t *link);
  /* Fill link->output with the message. */
  int (*load)(tide_posix_link_t *link, const tide_frame_parts_t *frame);
  /* Hand the rest of the output to the system, as far as it takes it now. Negative: the message is lost. */
  int (*push)(tide_posix_link_t *link);
  /* Datagrams, instead of load and push: the message joins the link's batch. */
  int (*append)(tide_posix_link_t *link, const tide_frame_parts_t *frame);
  /* Has what the system took left the machine? Null: yes. */
  bool (*is_drained)(tide_posix_link_t *link);
  /* Something can be read, or may be. 0: nothing was; negative: the link is down. */
  int (*receive)(tide_posix_link_t *link);
  bool survives_errors; /* an error of the descriptor does not mean that the link is down (datagrams) */
} tide_posix_link_kind_t;

struct tide_posix_link {
  const tide_posix_link_kind_t *kind;
  tide_session_t *session;
  tide_link_address_t address;
  tide_posix_link_t *next; /* of all links; with the next one, under their mutex */
  unsigned holders;        /* callers that wait by way of this link */
  tide_posix_thread_t thread;
  pthread_mutex_t mutex, receiving;
  int wake_descriptor; /* eventfd */
  atomic_bool stop, woken;
  _Atomic int64_t asleep_until_ns; /* of the thread */
  _Atomic int64_t asked_ns;        /* when it has something to do: since its last turn started */
  _Atomic uint64_t bytes_received;
  _Atomic uint32_t messages_oversize;
  atomic_bool under_way;             /* something of what follows is: the thread looks without the mutex */
  _Atomic int64_t awaiting_until_ns; /* as long it sleeps no longer than to the next HEARTBEAT (link_output.c) */
  tide_posix_link_times_t times;     /* as they were when it was created */

  /* Under the mutex. */
  int descriptor; /* negative: down */
  bool busy;      /* a message was started and its end is not reported */
  tide_serial_output_t output;
  tide_datagram_output_t batch; /* in the storage of output */
  int64_t gather_until_ns;      /* when it leaves at the latest; 0: at the end of the thread's turn */
  tide_priority_t gathered_priority;
  int64_t submitted_ns; /* when a submitter last was done with one */
  int64_t recent_messages;
  tide_link_counters_t counters;

  int64_t awaited_ns; /* when the last message that the peer answers was started; under the daemon's critical section */

  /* The thread's own. */
  bool is_pseudo_terminal, tells_when_empty;
  int64_t drained_check_ns; /* 0, or when to ask the driver again */
  int64_t reopen_ns, poll_ns;
  bool gave_way; /* somebody else was receiving */
  tide_datagram_input_t datagrams;
  uint8_t *datagram_storage; /* null where datagrams do not arrive */
  size_t input_bytes;
  uint8_t input[TIDE_POSIX_LINK_INPUT_BYTES];

  atomic_bool looking;        /* a caller that waits looks for what arrives, or has the following in hand */
  tide_busy_poll_t busy_poll; /* that caller's */
};

extern const tide_posix_link_kind_t tide_posix_link_serial, tide_posix_link_udp, tide_posix_link_tcp;

/* A link of functions: its thread runs it. */
int tide_posix_custom_open(tide_session_t *session, const tide_link_address_t *address);
bool tide_posix_custom_close(tide_session_t *session);
void tide_posix_custom_wake(tide_session_t *session);
bool tide_posix_custom_counters(tide_session_t *session, tide_link_counters_t *counters);

/* link_output.c. Leaves the mutex after a change of what goes out. */
void tide_posix_link_leave(tide_posix_link_t *link);
/* start of a tide_link_t. */
int tide_posix_link_start(void *context, const tide_frame_parts_t *frame);
/* For the thread: when there is something to do about what leaves; TIDE_FOREVER: when somebody asks, or the descriptor
 * can be written to, if that is wanted. */
int64_t tide_posix_link_output_due_ns(tide_posix_link_t *link, bool *wants_to_write);
/* When the thread wakes at the latest, as answers may have to be asked for. */
int64_t tide_posix_link_ask_again_ns(const tide_posix_link_t *link, int64_t now_ns);
/* The end of one message lets the daemon start the next. True when there may be more to do at once. */
bool tide_posix_link_report_complete(tide_posix_link_t *link);
/* A batch that is due leaves. */
void tide_posix_link_flush(tide_posix_link_t *link);
void tide_posix_link_push_rest(tide_posix_link_t *link);
/* Parts side by side behind `offset` bytes of the output. */
int tide_posix_link_gather(tide_posix_link_t *link, const tide_frame_parts_t *frame, size_t offset);
/* push for streams of bytes. */
int tide_posix_link_push_stream(tide_posix_link_t *link);
/* One read into input, behind what is there. 0: nothing to read now; negative: the link is down. */
int tide_posix_link_read(tide_posix_link_t *link);
/* A socket of this type that is connected to the address, non-blocking; waits at most timeout_ms. */
int tide_posix_link_connect(const tide_link_address_t *address, int type, int timeout_ms);
void tide_posix_link_count_received(tide_posix_link_t *link, size_t bytes, bool oversize);
int64_t tide_posix_link_now_ns(void);

/* link.c: the thread, the daemon's side. Open for the first time, on the caller's thread; and the opposite. */
int tide_posix_link_bring_up(tide_posix_link_t *link);
void tide_posix_link_take_down(tide_posix_link_t *link);
bool tide_posix_link_is_own_thread(const tide_posix_link_t *link);
void tide_posix_link_wake(tide_posix_link_t *link);
/* For the thread: there is something to do at this time, and whatever that is can be seen already. It is not woken for
 * what it wakes for anyhow. */
void tide_posix_link_ask(tide_posix_link_t *link, int64_t time_ns);

/* link_port.c: a link that is not freed before it is let go; null: there is none like this (any more). */
tide_posix_link_t *tide_posix_link_hold(const void *link);
void tide_posix_link_let_go(tide_posix_link_t *link);

/* link_wait.c: wait of a tide_link_t. */
int tide_posix_link_wait(void *link, tide_event_t *event, int64_t deadline_ns);

/* link_thread.c: a thread for the interrupt side of a link, of the priority that its address asks for or, where that is
 * not permitted, of the caller's scheduling. `function` starts with tide_posix_link_be_exact. */
int tide_posix_link_start_thread(tide_posix_thread_t *thread, int priority, void (*function)(void *context),
                                 void *context, tide_link_counters_t *counters);
/* Timers of the calling thread are exact from now on. */
void tide_posix_link_be_exact(void);

#endif
