/* SPDX-License-Identifier: Apache-2.0 */
/* The links of this port: a descriptor, a thread that acts as the interrupt context, and one outgoing frame. A kind
 * (serial, UDP, TCP) defines how its descriptor is opened and how messages are converted to bytes and back.
 *
 * Two contexts meet here. A submitter calls, through the daemon, the link's start, which writes to the descriptor at
 * once, so that a frame does not wait for a thread to wake. The link's thread does most other work. The daemon's
 * critical section, in which frames start, guards the descriptor and the outgoing frame as well.
 *
 * The transmission of a datagram ends when it starts, because the system takes it at once. So the thread is not woken
 * for datagrams. Otherwise the thread, which has the top priority, would run after each datagram, and no two datagrams
 * would be sent together. The thread handles missing acknowledgments, datagrams that the system does not take now, and
 * in a flood messages that wait for others. While the thread is running, submitted messages join its batch.
 *
 * Waiting callers also receive datagrams, so that an answer need not wake two threads in turn; `receiving` serialises
 * these callers. If one thread of the program does all the waiting and publishing, it delays no other thread, so it
 * attends the link itself. While it waits, and for a while after it waited or published, the link's thread does not
 * listen. After that the link's thread takes over, so that a long callback, or a program that only computes, delays an
 * acknowledgment by ATTENTION_NS at most. With a second thread or lanes the link's thread always listens, because it
 * may be more urgent than the waiting thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "busy_poll.h"
#include "event.h"
#include "link_datagrams.h"
#include "link_times.h"
#include "serial_speed.h"
#include "tide/link_custom.h"
#include "tide/link_serial.h"
#include "tide/port.h"
#include "tide/posix_thread.h"
#include "tide/status.h"

#define INPUT_BYTES 65540u /* the longest message and its length */
#define DATAGRAM_BYTES ((size_t)4u * TIDE_DATAGRAM_BYTES_MAXIMUM)
#define SECOND_NS INT64_C(1000000000)
#define REOPEN_NS INT64_C(200000000)
#define AWAKE INT64_MIN /* the thread is awake, and checks requests before it sleeps */
/* Messages sent in a row before the thread checks for received data. */
#define MESSAGES_A_TURN 32
/* There is a flood while the leaky bucket has at least this many messages. The bucket holds FLOOD_MESSAGES_MAXIMUM at
 * most. */
#define FLOOD_MESSAGES 64
#define FLOOD_MESSAGES_MAXIMUM 256
/* The shortest delay of a HEARTBEAT if the transmitter measures it (tide_transmitter_config_t.heartbeat_delay_ns). */
#define HEARTBEAT_LEAST_NS INT64_C(2000000)
/* For this time after it waited or published, the program's only thread receives instead of the link's thread. */
#define ATTENTION_NS HEARTBEAT_LEAST_NS
/* After a second thread was seen, the link's thread listens for this time. */
#define SHARED_NS INT64_C(1000000000)
#define PRESSED_NS INT64_C(10000000)
#define PSEUDO_TERMINAL_FIRST 136u /* major numbers of the terminal side, as Linux assigns them */
#define PSEUDO_TERMINAL_LAST 143u
#define RECEIVE_BUFFER_BYTES (1 << 20)
/* Limit of unsent bytes of a TCP connection in the kernel; further messages wait where they can be reordered by
 * priority. */
#define UNSENT_BYTES 16384
#define CONNECT_TIMEOUT_MS 500
#define LENGTH_BYTES 2u
#define RECEIVE_CALLS_A_TURN 4
/* A caller that finds the link's thread receiving sleeps for this long. Usually the link's thread sets the caller's
 * event by then; otherwise the caller receives the data itself. */
#define THREAD_RECEIVES_NS INT64_C(500000)
#define CUSTOM_TURN_NS INT64_C(20000000)

typedef struct link link_t;

typedef struct kind {
  /* Open the address; a non-blocking descriptor, or a negative status. */
  int (*open)(link_t *link);
  /* Fill link->output with the message. */
  int (*load)(link_t *link, const tide_frame_parts_t *frame);
  /* Hand the rest of the output to the system, as far as it takes it now. Negative: the message is lost. */
  int (*push)(link_t *link);
  /* For datagrams, instead of load and push: the message joins the link's batch. */
  int (*append)(link_t *link, const tide_frame_parts_t *frame);
  /* Whether the bytes that the system accepted have left the machine. Null: they always have. */
  bool (*is_drained)(link_t *link);
  /* Called when data may be readable. 0: there was none; negative: the link is down. */
  int (*receive)(link_t *link);
  bool survives_errors; /* a descriptor error does not take the link down (datagrams) */
} kind_t;

struct link {
  const kind_t *kind;
  tide_session_t *session;
  tide_link_address_t address;
  link_t *next;        /* in the list of all links, which links_mutex guards */
  atomic_uint holders; /* callers that wait on this link; changed in the critical section */
  tide_posix_thread_t thread;
  pthread_mutex_t receiving;
  int timer; /* wakes the thread for a request that is due before its wake-up time */
  atomic_bool stop, timer_set;
  _Atomic int64_t asleep_until_ns; /* wake-up time of the sleeping thread */
  _Atomic int64_t own_deadline_ns; /* wake-up time if nothing is requested */
  _Atomic int64_t asked_ns;        /* earliest time requested since the thread's last turn started */
  _Atomic uint64_t bytes_received;
  _Atomic uint32_t messages_oversize;
  atomic_bool under_way;         /* the output holds a message; the thread reads this member outside the critical
                                    section */
  tide_posix_link_times_t times; /* copied when the link was created */

  /* Members that decide who receives. */
  _Atomic uintptr_t user; /* the thread that published or waited last */
  _Atomic int64_t
      shared_until_ns;   /* until then the program counts as having several threads; TIDE_FOREVER: it has lanes */
  atomic_bool attending; /* the user's thread waits and receives */
  int64_t relieved_ns;   /* time at which the attending caller last took over the timer's work */
  _Atomic int64_t attended_until_ns; /* the thread does not listen before this time */

  /* The following members are used in the critical section. */
  int descriptor; /* negative: link down */
  bool busy;      /* a message was started and its end is not reported yet */
  tide_serial_output_t output;
  tide_datagram_output_t batch; /* shares the storage of output */
  int64_t gather_until_ns;      /* latest time of sending the batch; 0: at the end of the thread's turn */
  tide_priority_t gathered_priority;
  int64_t submitted_ns; /* time at which a submitter last completed a message */
  int64_t recent_messages;
  tide_link_counters_t counters;

  /* Used by the thread only. */
  bool is_pseudo_terminal, tells_when_empty;
  int64_t drained_check_ns; /* time at which to query the driver again; 0: no query is needed */
  int64_t reopen_ns, poll_ns;
  tide_datagram_input_t datagrams;
  uint8_t *datagram_storage; /* null if no datagrams arrive */
  size_t input_bytes;
  uint8_t input[INPUT_BYTES];

  atomic_bool looking;        /* a waiting caller is polling, or uses the next member */
  tide_busy_poll_t busy_poll; /* used by the caller that is polling */
};

tide_posix_link_times_t tide_posix_link_times = {
    .poll_limit_ns = 20000000, .flood_gap_ns = 20000, .gather_ns = 50000, .attention_ns = ATTENTION_NS, .pause = NULL};

static pthread_mutex_t links_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t link_let_go = PTHREAD_COND_INITIALIZER;
static link_t *links;
static _Thread_local const link_t *link_of_this_thread, *attended_by_this_thread;

static int64_t clock_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

static int64_t earlier(int64_t left_ns, int64_t right_ns) { return left_ns < right_ns ? left_ns : right_ns; }

/* ---- threads that act as the interrupt context ---- */

/* A SCHED_DEADLINE thread cannot pass on its scheduling or bandwidth. */
static tide_posix_scheduling_t inherited(void) {
  tide_posix_scheduling_t scheduling = tide_posix_own_scheduling();
  const bool known = scheduling.policy == SCHED_FIFO || scheduling.policy == SCHED_RR;
  if (!known) scheduling = (tide_posix_scheduling_t){.policy = SCHED_OTHER, .cpu = TIDE_POSIX_ANY_CPU};
  return scheduling;
}

static tide_posix_scheduling_t asked_for(int priority) {
  if (priority == TIDE_LINK_PRIORITY_INHERIT) return inherited();
  if (priority == 0) priority = sched_get_priority_max(SCHED_FIFO);
  return (tide_posix_scheduling_t){.policy = SCHED_FIFO, .priority = priority, .cpu = TIDE_POSIX_ANY_CPU};
}

/* Start a thread with the address's priority or, if that is not permitted, with the caller's scheduling. `function` has
 * to call be_exact first. */
static int start_thread(tide_posix_thread_t *thread, int priority, void (*function)(void *context), void *context,
                        tide_link_counters_t *counters) {
  tide_posix_thread_config_t config = {
      .scheduling = asked_for(priority), .name = "tide link", .function = function, .context = context};
  int status = tide_posix_thread_start(thread, &config);
  counters->thread_status = status == TIDE_ERROR_NOT_PERMITTED ? status : TIDE_OK;
  if (status == TIDE_ERROR_NOT_PERMITTED) {
    config.scheduling = inherited();
    status = tide_posix_thread_start(thread, &config);
  }
  counters->thread_priority = config.scheduling.priority;
  return status;
}

/* Timers of the calling thread are exact from now on. */
static void be_exact(void) { (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

static bool is_own_thread(const link_t *link) { return link_of_this_thread == link; }
static uintptr_t enter(const link_t *link) { return tide_platform_enter(link->session->daemon.platform); }
static void leave(const link_t *link, uintptr_t state) { tide_platform_exit(link->session->daemon.platform, state); }

static void set_timer(const link_t *link, int64_t time_ns) {
  const struct itimerspec due = {.it_value = {(time_t)(time_ns / SECOND_NS), (long)(time_ns % SECOND_NS)}};
  (void)timerfd_settime(link->timer, TFD_TIMER_ABSTIME, &due, NULL); /* 0 stops the timer */
}

/* Requests work from the thread at this time; the work must already be visible. Either this function sees the thread's
 * wake-up time, or the thread sees the request before it sleeps. A request for a later time only sets a timer: the
 * thread is not woken now to compute its wake-up time. A caller that attends the link checks by itself, except for work
 * that only the thread does (time 0). */
static void ask(link_t *link, int64_t time_ns) {
  if (time_ns == TIDE_FOREVER || is_own_thread(link)) return;
  int64_t asked_ns = atomic_load(&link->asked_ns);
  while (time_ns < asked_ns && !atomic_compare_exchange_weak(&link->asked_ns, &asked_ns, time_ns)) {}
  if (time_ns > 0 && attended_by_this_thread == link) return;
  if (time_ns >= atomic_load(&link->asleep_until_ns)) return;
  const uintptr_t state = enter(link);
  if (time_ns < atomic_load(&link->asleep_until_ns)) {
    set_timer(link, time_ns > 1 ? time_ns : 1);
    atomic_store(&link->asleep_until_ns, time_ns);
    atomic_store(&link->timer_set, true);
  }
  leave(link, state);
}

/* ---- sending: from the daemon's start to the report of its end ---- */

/* Call after a change of the output. Either the thread sees a submitter's message before it sleeps, or the submitter's
 * request, which follows, wakes it. */
static void note_output_locked(link_t *link) {
  const bool waits = link->batch.count > 0u || link->gather_until_ns != TIDE_FOREVER;
  atomic_store_explicit(&link->under_way, link->busy || waits, memory_order_release);
}

/* The push function for streams of bytes. */
static int push_stream(link_t *link) {
  const uint8_t *bytes;
  size_t rest = tide_serial_output_rest(&link->output, &bytes);
  while (rest > 0u) {
    const ssize_t count = write(link->descriptor, bytes, rest);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      link->counters.writes_partial++;
      return TIDE_OK;
    }
    if (count < 0) return TIDE_ERROR_LINK;
    tide_serial_output_wrote(&link->output, (size_t)count, clock_ns());
    link->counters.bytes_sent += (uint64_t)count;
    rest = tide_serial_output_rest(&link->output, &bytes);
  }
  return TIDE_OK;
}

static void flush_locked(link_t *link) {
  link->gather_until_ns = TIDE_FOREVER;
  if (link->batch.count == 0u) return;
  const uint64_t lost = link->batch.lost, bytes_sent = link->batch.bytes_sent;
  if (!tide_datagram_output_flush(&link->batch)) link->counters.writes_partial++;
  link->counters.messages_lost += (uint32_t)(link->batch.lost - lost); /* no route, or too long: counted as lost */
  link->counters.bytes_sent += link->batch.bytes_sent - bytes_sent;
  link->counters.batches++;
}

/* A leaky bucket of the submitters' messages, with one leak each flood_gap_ns. */
static bool is_flood_locked(link_t *link, int64_t now_ns) {
  const int64_t leaked = (now_ns - link->submitted_ns) / link->times.flood_gap_ns;
  link->recent_messages = leaked < link->recent_messages ? link->recent_messages - leaked + 1 : 1;
  if (link->recent_messages > FLOOD_MESSAGES_MAXIMUM) link->recent_messages = FLOOD_MESSAGES_MAXIMUM;
  link->submitted_ns = now_ns;
  return link->recent_messages >= FLOOD_MESSAGES;
}

/* Messages wait only in a flood, and only if they can be sent with the others as one train. So the system call, during
 * which the critical section is held, stays short. A message more urgent than a waiting message is sent at once,
 * together with the waiting messages. */
static bool may_wait_locked(link_t *link, const tide_frame_parts_t *frame) {
  const tide_datagram_output_t *batch = &link->batch;
  if (!batch->trains || batch->blocked || tide_datagram_output_is_full(batch)) return false;
  if (batch->count == 1u) {
    link->gather_until_ns = frame->time_ns + link->times.gather_ns;
    link->gathered_priority = frame->priority;
    return true;
  }
  const tide_datagram_t *last = &batch->datagrams[batch->count - 1u];
  if (link->gather_until_ns == TIDE_FOREVER || frame->priority > link->gathered_priority) return false;
  if (last[-1].length != last->length || frame->time_ns >= link->gather_until_ns) return false;
  link->gathered_priority = frame->priority;
  return true;
}

/* Handles the most frequent case: one submitter's message, and no other message to send with it. False: not sent; the
 * message must join the batch. */
static bool send_alone_locked(link_t *link, const tide_frame_parts_t *frame) {
  struct iovec parts[3] = {{(void *)frame->head, frame->head_bytes},
                           {(void *)frame->body, frame->body_bytes},
                           {(void *)frame->tail, frame->tail_bytes}};
  const struct msghdr message = {.msg_iov = parts, .msg_iovlen = frame->tail_bytes > 0u ? 3u : 2u};
  /* A direct system call: sendmsg of the C library is a cancellation point, and a cancelled thread would hold the
   * section for ever. */
  const long sent = syscall(SYS_sendmsg, link->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return false;
  link->counters.bytes_sent += (uint64_t)sent;
  link->counters.batches++;
  link->submitted_ns = clock_ns();
  return true;
}

/* The messages of the link's thread leave together when its turn ends. Submitters' messages are sent now, after those
 * already in the batch, since numbers in a stream must rise; the wire never waits for a preempted thread. */
static int append_locked(link_t *link, const tide_frame_parts_t *frame, bool gathers) {
  const int status = link->kind->append(link, frame);
  if (status != TIDE_OK) return status;
  if (is_own_thread(link)) {
    tide_serial_output_wrote(&link->output, 0u, frame->time_ns);
    link->gather_until_ns = 0;
  } else if (!gathers || !may_wait_locked(link, frame)) {
    flush_locked(link);
    link->submitted_ns = clock_ns();
  }
  return TIDE_OK;
}

static int start_locked(link_t *link, const tide_frame_parts_t *frame, bool gathers) {
  int status = link->kind->append != NULL ? append_locked(link, frame, gathers) : link->kind->load(link, frame);
  if (status == TIDE_OK && link->kind->append == NULL) status = link->kind->push(link);
  link->busy = status == TIDE_OK;
  if (!link->busy) {
    link->counters.messages_lost++;
    tide_serial_output_reset(&link->output);
  }
  note_output_locked(link);
  return status;
}

/* From now on the thread listens, at least until this time. */
static void share_until(link_t *link, int64_t time_ns) {
  int64_t before_ns = atomic_load(&link->shared_until_ns);
  while (time_ns > before_ns && !atomic_compare_exchange_weak(&link->shared_until_ns, &before_ns, time_ns)) {}
  if (time_ns > before_ns) ask(link, 0);
}

/* Whether the caller is the only thread of the program that publishes or waits. */
static bool is_only_user(link_t *link, int64_t now_ns) {
  const uintptr_t self = (uintptr_t)pthread_self();
  const uintptr_t before = atomic_load_explicit(&link->user, memory_order_relaxed);
  if (before != self) {
    atomic_store_explicit(&link->user, self, memory_order_relaxed);
    if (before != 0u) share_until(link, now_ns + SHARED_NS);
  }
  return now_ns >= atomic_load(&link->shared_until_ns);
}

static int64_t complete_ns_locked(const link_t *link);

/* When the thread must act on a submitted message: report its end, send the batch, or request a missing acknowledgment.
 * The session determines when an acknowledgment must be requested, and is polled at the earliest time at which that is
 * possible. */
static int64_t due_ns_locked(const link_t *link, const tide_frame_parts_t *frame) {
  const bool waits = link->kind->append != NULL || link->output.written < link->output.length;
  if (link->busy && waits) return 0; /* the output waits for the descriptor, and so does the thread */
  const int64_t due_ns = earlier(complete_ns_locked(link), link->gather_until_ns);
  if (!frame->awaited) return due_ns;
  const int64_t set_ns = link->session->daemon.transmitter.config.heartbeat_delay_ns;
  const int64_t least_ns = set_ns >= 0 ? earlier(set_ns, HEARTBEAT_LEAST_NS) : HEARTBEAT_LEAST_NS;
  return earlier(due_ns, frame->time_ns + least_ns);
}

/* start of a tide_link_t, which the daemon calls with the critical section held. */
static int start_frame(void *context, const tide_frame_parts_t *frame) {
  link_t *link = context;
  if (link->descriptor < 0) return TIDE_ERROR_LINK;
  if (link->busy) return TIDE_ERROR_STATE;
  const bool submitted = link->kind->append != NULL && !is_own_thread(link);
  const bool gathers = submitted && is_flood_locked(link, frame->time_ns) && frame->body_bytes > 0u && !frame->awaited;
  const bool alone = submitted && !gathers && link->batch.count == 0u && send_alone_locked(link, frame);
  const int status = alone ? TIDE_OK : start_locked(link, frame, gathers);
  if (status != TIDE_OK) return status;
  /* A submitter's datagram is gone when the system has taken it, or when it waits for others in a flood. While the
   * system takes no more, or the batch is full, the daemon starts no frame, so that waiting frames can still be
   * overtaken. */
  const bool gone = alone || (submitted && !link->batch.blocked && !tide_datagram_output_is_full(&link->batch));
  if (gone) {
    link->counters.messages_sent++;
    if (!alone) {
      link->busy = false;
      note_output_locked(link);
    }
    if (frame->awaited && is_only_user(link, frame->time_ns)) {
      atomic_store(&link->attended_until_ns, frame->time_ns + link->times.attention_ns);
    }
  }
  if (!alone || frame->awaited) ask(link, due_ns_locked(link, frame));
  return gone ? TIDE_LINK_SENT : TIDE_OK;
}

static int64_t complete_ns_locked(const link_t *link) {
  if (!link->busy || link->batch.blocked || tide_datagram_output_is_full(&link->batch)) return TIDE_FOREVER;
  const int64_t complete_ns = tide_serial_output_complete_ns(&link->output);
  return complete_ns < link->drained_check_ns ? link->drained_check_ns : complete_ns;
}

/* Time at which the thread must act on the output. TIDE_FOREVER: only on request, or when the descriptor becomes
 * writable, if wanted. */
static int64_t output_due_ns(link_t *link, bool *wants_to_write) {
  *wants_to_write = false;
  if (!atomic_load(&link->under_way)) return TIDE_FOREVER;
  const uintptr_t state = enter(link);
  const int64_t complete_ns = complete_ns_locked(link);
  const int64_t gather_until_ns = link->batch.blocked ? TIDE_FOREVER : link->gather_until_ns;
  *wants_to_write = link->batch.blocked || (link->busy && link->output.written < link->output.length);
  leave(link, state);
  return earlier(complete_ns, gather_until_ns);
}

/* If the pending message was sent, ends it and returns true. */
static bool take_complete(link_t *link, int64_t now_ns) {
  const uintptr_t state = enter(link);
  bool complete = complete_ns_locked(link) <= now_ns;
  if (complete && link->kind->is_drained != NULL && !link->kind->is_drained(link)) {
    link->drained_check_ns = now_ns + tide_serial_duration_ns(1u, link->output.baud);
    complete = false;
  }
  if (complete) {
    const int64_t late_ns = now_ns - tide_serial_output_complete_ns(&link->output);
    if (late_ns > link->counters.complete_late_maximum_ns) link->counters.complete_late_maximum_ns = late_ns;
    link->counters.messages_sent++;
    link->busy = false;
    link->drained_check_ns = 0;
  }
  note_output_locked(link);
  leave(link, state);
  return complete;
}

/* Reports sent messages; each report lets the daemon start the next message. True: there may be more to report. */
static bool report_complete(link_t *link) {
  for (int count = 0; count < MESSAGES_A_TURN; count++) {
    if (!atomic_load(&link->under_way)) return false;
    if (!take_complete(link, clock_ns())) return false;
    tide_daemon_on_transmit_complete(&link->session->daemon);
  }
  return true;
}

/* Sends a batch that is due. */
static void flush(link_t *link) {
  if (!atomic_load(&link->under_way)) return;
  const uintptr_t state = enter(link);
  if (link->batch.blocked || link->gather_until_ns <= clock_ns()) flush_locked(link);
  note_output_locked(link);
  leave(link, state);
}

static void push_rest(link_t *link) {
  const uintptr_t state = enter(link);
  if (link->busy && link->output.written < link->output.length && link->kind->push(link) != TIDE_OK) {
    tide_serial_output_reset(&link->output); /* report_complete ends the message; the descriptor reports the error */
    link->counters.messages_lost++;
  }
  note_output_locked(link);
  leave(link, state);
}

/* ---- receiving ---- */

static void count_received(link_t *link, size_t bytes, bool oversize) {
  (void)atomic_fetch_add_explicit(&link->bytes_received, bytes, memory_order_relaxed);
  if (oversize) (void)atomic_fetch_add_explicit(&link->messages_oversize, 1u, memory_order_relaxed);
}

/* One read into `input`, after its present contents. 0: nothing to read now; negative: the link is down. */
static int read_input(link_t *link) {
  ssize_t count;
  do {
    count = read(link->descriptor, link->input + link->input_bytes, sizeof link->input - link->input_bytes);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (count <= 0) return TIDE_ERROR_LINK;
  link->input_bytes += (size_t)count;
  return (int)count;
}

/* ---- serial: a tty in raw mode, 8N1 ----
 *
 * The end of a transmission is computed from the baud rate; on real hardware the driver is also queried whether its
 * queue and the UART's shift register are empty. */

static bool is_pseudo_terminal(int descriptor) {
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISCHR(status.st_mode)) return false;
  const unsigned number = major(status.st_rdev);
  return number >= PSEUDO_TERMINAL_FIRST && number <= PSEUDO_TERMINAL_LAST;
}

/* Raw, 8N1, no flow control, and with empty queues. A pseudo terminal has no speed, so any value works.
 */
static int make_raw(link_t *link, int descriptor) {
  struct termios mode;
  if (tcgetattr(descriptor, &mode) != 0) return TIDE_ERROR_LINK;
  cfmakeraw(&mode);
  mode.c_cflag |= (tcflag_t)(CLOCAL | CREAD);
  mode.c_cflag &= ~(tcflag_t)(CSTOPB | CRTSCTS);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  if (!tide_serial_set_speed(&mode, link->address.baud) && !link->is_pseudo_terminal) return TIDE_ERROR_ARGUMENT;
  if (tcsetattr(descriptor, TCSANOW, &mode) != 0) return TIDE_ERROR_LINK;
  (void)tcflush(descriptor, TCIOFLUSH);
  return TIDE_OK;
}

static int open_serial(link_t *link) {
  const int descriptor = open(link->address.device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return TIDE_ERROR_LINK;
  link->is_pseudo_terminal = is_pseudo_terminal(descriptor);
  const int status = make_raw(link, descriptor);
  if (status != TIDE_OK) {
    (void)close(descriptor);
    return status;
  }
  unsigned register_status = 0u;
  link->tells_when_empty = ioctl(descriptor, TIOCSERGETLSR, &register_status) == 0;
  return descriptor;
}

static int load_serial(link_t *link, const tide_frame_parts_t *frame) {
  return tide_serial_output_load(&link->output, frame);
}

static bool is_drained(link_t *link) {
  int queued = 0;
  unsigned register_status = 0u;
  if (link->is_pseudo_terminal || link->address.paced || link->descriptor < 0) return true;
  if (ioctl(link->descriptor, TIOCOUTQ, &queued) == 0 && queued > 0) return false;
  if (!link->tells_when_empty || ioctl(link->descriptor, TIOCSERGETLSR, &register_status) != 0) return true;
  return (register_status & TIOCSER_TEMT) != 0u;
}

static int receive_serial(link_t *link) {
  const int count = read_input(link);
  if (count <= 0) return count;
  count_received(link, (size_t)count, false);
  link->input_bytes = 0u;
  tide_daemon_on_bytes(&link->session->daemon, link->input, (size_t)count);
  return count;
}

static const kind_t serial_kind = {
    .open = open_serial, .load = load_serial, .push = push_stream, .is_drained = is_drained, .receive = receive_serial};

/* ---- sockets: UDP and TCP ---- */

static void set_option(int descriptor, int level, int option, int value) {
  (void)setsockopt(descriptor, level, option, &value, (socklen_t)sizeof value);
}

/* Waits for the pending connection; returns 0 when it is established. */
static int finish_connect(int descriptor, int timeout_ms) {
  struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
  int error = 0;
  socklen_t length = (socklen_t)sizeof error;
  if (poll(&wait, 1, timeout_ms) != 1) return -1;
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -1;
  return error == 0 ? 0 : -1;
}

static int connect_to(const struct addrinfo *target, int timeout_ms) {
  const int descriptor = socket(target->ai_family, target->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return TIDE_ERROR_LINK;
  set_option(descriptor, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER_BYTES);
  if (target->ai_socktype == SOCK_STREAM) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES);
  } else {
    set_option(descriptor, SOL_SOCKET, SO_SNDBUF, TIDE_DATAGRAM_SOCKET_BYTES);
  }
  int result = connect(descriptor, target->ai_addr, target->ai_addrlen);
  if (result != 0 && errno == EINPROGRESS) result = finish_connect(descriptor, timeout_ms);
  if (result == 0) return descriptor;
  (void)close(descriptor);
  return TIDE_ERROR_LINK;
}

/* A socket of this type that is connected to the address, non-blocking. A name with addresses of both families means
 * IPv4, which an agent serves by default. */
static int connect_address(const tide_link_address_t *address, int type) {
  static const int families[] = {AF_INET, AF_INET6};
  char service[8];
  (void)snprintf(service, sizeof service, "%u", (unsigned)address->port);
  int descriptor = TIDE_ERROR_LINK;
  for (size_t i = 0; i < 2u && descriptor < 0; i++) {
    const struct addrinfo hints = {.ai_family = families[i], .ai_socktype = type};
    struct addrinfo *targets = NULL;
    if (getaddrinfo(address->host, service, &hints, &targets) != 0) continue;
    for (const struct addrinfo *target = targets; target != NULL && descriptor < 0; target = target->ai_next) {
      descriptor = connect_to(target, CONNECT_TIMEOUT_MS);
    }
    freeaddrinfo(targets);
  }
  return descriptor;
}

static int open_udp(link_t *link) {
  const int descriptor = connect_address(&link->address, SOCK_DGRAM);
  if (descriptor < 0) return descriptor;
  tide_datagram_output_init(&link->batch, descriptor, link->output.frame, link->output.capacity);
  tide_datagram_input_init(&link->datagrams, descriptor, link->datagram_storage, DATAGRAM_BYTES);
  return descriptor;
}

static void put_parts(uint8_t *bytes, const tide_frame_parts_t *frame) {
  if (frame->head_bytes > 0u) memcpy(bytes, frame->head, frame->head_bytes);
  bytes += frame->head_bytes;
  if (frame->body_bytes > 0u) memcpy(bytes, frame->body, frame->body_bytes);
  bytes += frame->body_bytes;
  if (frame->tail_bytes > 0u) memcpy(bytes, frame->tail, frame->tail_bytes);
}

static int append_udp(link_t *link, const tide_frame_parts_t *frame) {
  const size_t length = frame->head_bytes + frame->body_bytes + frame->tail_bytes;
  uint8_t *bytes = tide_datagram_output_place(&link->batch, length);
  if (bytes == NULL) return TIDE_ERROR_TOO_LARGE;
  put_parts(bytes, frame);
  tide_datagram_output_add(&link->batch, length, NULL);
  return TIDE_OK;
}

static void take_datagram(void *context, const uint8_t *bytes, size_t length, const tide_socket_address_t *from) {
  link_t *link = context;
  (void)from; /* the socket is connected */
  const bool oversize = length > link->session->config.mtu;
  count_received(link, length, oversize);
  if (length > 0u && !oversize) tide_daemon_on_message(&link->session->daemon, bytes, length);
}

static int receive_udp(link_t *link) {
  const uint64_t before = link->datagrams.received;
  for (int turn = 0; turn < RECEIVE_CALLS_A_TURN; turn++) {
    if (!tide_datagram_input_take(&link->datagrams, take_datagram, link)) break;
  }
  return link->datagrams.received != before ? 1 : 0;
}

static const kind_t udp_kind = {
    .open = open_udp, .append = append_udp, .receive = receive_udp, .survives_errors = true};

/* On TCP each message is preceded by its length in two octets, low first. */
static int open_tcp(link_t *link) { return connect_address(&link->address, SOCK_STREAM); }

static int load_tcp(link_t *link, const tide_frame_parts_t *frame) {
  const size_t length = frame->head_bytes + frame->body_bytes + frame->tail_bytes;
  if (LENGTH_BYTES + length > link->output.capacity) return TIDE_ERROR_TOO_LARGE;
  link->output.frame[0] = (uint8_t)length;
  link->output.frame[1] = (uint8_t)(length >> 8);
  put_parts(link->output.frame + LENGTH_BYTES, frame);
  link->output.length = LENGTH_BYTES + length;
  link->output.written = 0u;
  return TIDE_OK;
}

static int receive_tcp(link_t *link) {
  const int count = read_input(link);
  if (count <= 0) return count;
  size_t taken = 0u; /* bytes of whole messages */
  while (link->input_bytes - taken >= LENGTH_BYTES) {
    const uint8_t *message = link->input + taken + LENGTH_BYTES;
    const size_t length = (size_t)link->input[taken] | (size_t)link->input[taken + 1u] << 8;
    if (link->input_bytes - taken - LENGTH_BYTES < length) break;
    const bool oversize = length > link->session->config.mtu;
    count_received(link, LENGTH_BYTES + length, oversize);
    if (length > 0u && !oversize) tide_daemon_on_message(&link->session->daemon, message, length);
    taken += LENGTH_BYTES + length;
  }
  link->input_bytes -= taken;
  if (taken > 0u) memmove(link->input, link->input + taken, link->input_bytes);
  return count;
}

static const kind_t tcp_kind = {.open = open_tcp, .load = load_tcp, .push = push_stream, .receive = receive_tcp};

/* ---- callers that attend the link ----
 *
 * A waiting caller receives its answer itself if it notices the answer before the link's thread does. It polls for a
 * while before it sleeps, if that is useful (busy_poll.h). */

/* The hold function of a tide_link_t, called with the critical section held. */
static void hold_locked(void *context) { ((link_t *)context)->holders++; }

/* Nothing of the link is used after the section: destroy may be waiting for the last holder. */
static void let_go(link_t *link) {
  const uintptr_t state = enter(link);
  const tide_platform_t *platform = link->session->daemon.platform;
  const bool stops = atomic_load(&link->stop);
  link->holders--;
  tide_platform_exit(platform, state);
  if (!stops) return;
  (void)pthread_mutex_lock(&links_mutex);
  (void)pthread_cond_broadcast(&link_let_go);
  (void)pthread_mutex_unlock(&links_mutex);
}

/* Does the work that is due. A caller that attends the link also replaces all earlier requests by the next deadline,
 * because an acknowledgment that arrived need not be requested any more. The caller does not replace the requests while
 * a batch waits for its time. */
static void serve(link_t *link, bool has_flushed) {
  int64_t asked_ns = atomic_load(&link->asked_ns);
  const int64_t next_ns = tide_session_poll_received(link->session);
  if (attended_by_this_thread == link && (has_flushed || !atomic_load(&link->under_way))) {
    (void)atomic_compare_exchange_strong(&link->asked_ns, &asked_ns, next_ns);
  }
  ask(link, next_ns);
}

/* Negative: another thread receives; 0: no data. */
static int receive_instead(link_t *link) {
  if (pthread_mutex_trylock(&link->receiving) != 0) return -1;
  const int received = link->kind->receive(link);
  (void)pthread_mutex_unlock(&link->receiving);
  if (received != 0) serve(link, false);
  return received != 0;
}

/* Several callers may wait; one of them polls. */
static bool may_look(link_t *link) { return link->busy_poll.limit_ns > 0 && !atomic_exchange(&link->looking, true); }

/* True: the event was set. */
static bool look(link_t *link, tide_event_t *event, int64_t deadline_ns) {
  tide_busy_poll_t *poll = &link->busy_poll;
  int64_t now_ns = clock_ns();
  bool set = false;
  if (!may_look(link)) return false;
  tide_busy_poll_start(poll, now_ns);
  while (!set && now_ns < deadline_ns && tide_busy_poll_goes_on(poll, now_ns)) {
    (void)receive_instead(link);
    set = tide_port_platform()->event_wait(tide_port_platform()->context, event, 0) == 1;
    now_ns = clock_ns();
  }
  tide_busy_poll_looked(poll, now_ns, set);
  atomic_store(&link->looking, false);
  return set;
}

static void learn(link_t *link, int64_t since_ns, bool set) {
  const int64_t now_ns = clock_ns();
  if (!may_look(link)) return;
  tide_busy_poll_end(&link->busy_poll, now_ns - since_ns, now_ns, set);
  atomic_store(&link->looking, false);
}

/* True: the event was set. */
static bool sleep_on(link_t *link, tide_event_t *event, int64_t deadline_ns) {
  const tide_platform_t *platform = link->session->daemon.platform;
  const int found = tide_posix_event_wait_or_readable(event, link->descriptor, deadline_ns);
  if (found != TIDE_POSIX_READABLE) return found == 1;
  if (receive_instead(link) >= 0) return false;
  return platform->event_wait(platform->context, event, earlier(deadline_ns, clock_ns() + THREAD_RECEIVES_NS)) == 1;
}

/* From now on the caller does the work for which the thread would be woken. The timer is not stopped each time, because
 * this costs two system calls. If waits are frequent, it is stopped before it expires. */
static bool begin_attending(link_t *link, int64_t now_ns) {
  if (!is_only_user(link, now_ns) || atomic_exchange(&link->attending, true)) return false;
  attended_by_this_thread = link;
  if (now_ns - link->relieved_ns < HEARTBEAT_LEAST_NS / 2) return true;
  link->relieved_ns = now_ns;
  const uintptr_t state = enter(link);
  if (atomic_load(&link->asleep_until_ns) != AWAKE && atomic_exchange(&link->timer_set, false)) {
    set_timer(link, 0);
    atomic_store(&link->asleep_until_ns, atomic_load(&link->own_deadline_ns));
  }
  leave(link, state);
  return true;
}

static void end_attending(link_t *link, int64_t now_ns) {
  attended_by_this_thread = NULL;
  atomic_store(&link->attending, false);
  atomic_store(&link->attended_until_ns, now_ns + link->times.attention_ns);
  ask(link, earlier(now_ns + link->times.attention_ns, atomic_load(&link->asked_ns)));
}

static bool wait_and_receive(link_t *link, tide_event_t *event, int64_t deadline_ns, bool imminent) {
  const int64_t start_ns = clock_ns();
  int64_t now_ns = start_ns;
  const bool attends = begin_attending(link, now_ns);
  bool set = imminent && look(link, event, deadline_ns);
  while (!set && !atomic_load(&link->stop) && now_ns < deadline_ns) {
    if (attends && atomic_load(&link->asked_ns) <= now_ns) {
      flush(link);
      serve(link, true);
    }
    set = sleep_on(link, event, earlier(deadline_ns, attends ? atomic_load(&link->asked_ns) : TIDE_FOREVER));
    now_ns = clock_ns();
  }
  if (imminent) learn(link, start_ns, set);
  if (attends) end_attending(link, now_ns);
  return set;
}

/* The wait function of a tide_link_t. */
static int wait_by_link(void *context, tide_event_t *event, int64_t deadline_ns, tide_wait_t kind) {
  const tide_platform_t *platform = tide_port_platform();
  link_t *link = context;
  bool set = false;
  if (kind == TIDE_WAIT_NOT) {
    const int64_t now_ns = clock_ns();
    /* No acknowledgment has arrived: the publisher is faster than the agent, so the link's thread receives in parallel
     * for a while. */
    if (is_only_user(link, now_ns) && receive_instead(link) <= 0) share_until(link, now_ns + PRESSED_NS);
  } else if (kind != TIDE_WAIT_LANE) {
    set = wait_and_receive(link, event, deadline_ns, kind == TIDE_WAIT_ANSWER);
  } else {
    share_until(link, TIDE_FOREVER);
  }
  let_go(link);
  if (set || event == NULL) return set ? 1 : 0;
  return platform->event_wait(platform->context, event, deadline_ns);
}

/* ---- going down and coming up ---- */

static int attach(link_t *link, int descriptor) {
  const uintptr_t state = enter(link);
  link->descriptor = descriptor;
  link->counters.opens++;
  leave(link, state);
  link->input_bytes = 0u;
  const bool lends = link->kind->append != NULL; /* lets waiting callers receive */
  const bool is_line = link->address.kind == TIDE_LINK_SERIAL;
  const tide_link_t functions = {.context = link,
                                 .start = start_frame,
                                 .wait = lends ? wait_by_link : NULL,
                                 .hold = hold_locked,
                                 .heartbeat_floor_ns = is_line ? TIDE_SERIAL_HEARTBEAT_FLOOR_NS : 0};
  return tide_daemon_attach_link(&link->session->daemon, &functions, link->output.source);
}

/* After tide_daemon_detach_link nobody else begins to wait. */
static void await_holders(link_t *link) {
  (void)pthread_mutex_lock(&links_mutex);
  for (bool any = true; any;) {
    const uintptr_t state = enter(link);
    any = link->holders > 0u;
    leave(link, state);
    if (any) (void)pthread_cond_wait(&link_let_go, &links_mutex);
  }
  (void)pthread_mutex_unlock(&links_mutex);
}

static void detach(link_t *link, bool cut) {
  if (link->descriptor >= 0) {
    tide_daemon_detach_link(&link->session->daemon);
    await_holders(link);
  }
  const uintptr_t state = enter(link);
  const int descriptor = link->descriptor;
  link->descriptor = -1;
  if (link->busy) link->counters.messages_lost++;
  if (cut) link->counters.cuts++;
  link->busy = false;
  link->drained_check_ns = 0;
  link->gather_until_ns = TIDE_FOREVER;
  tide_serial_output_reset(&link->output);
  link->counters.messages_lost += (uint32_t)tide_datagram_output_clear(&link->batch);
  note_output_locked(link);
  leave(link, state);
  if (descriptor < 0) return;
  if (link->address.kind == TIDE_LINK_SERIAL)
    (void)tcflush(descriptor, TCOFLUSH); /* without the flush close may wait for unsent bytes */
  (void)close(descriptor);
}

/* ---- the thread of a link ---- */

/* Whether the thread listens now. Otherwise *until_ns is the time at which it will listen, if nothing changes. */
static bool listens(const link_t *link, int64_t *until_ns) {
  const int64_t now_ns = clock_ns();
  *until_ns = TIDE_FOREVER; /* the attending caller requests this work when it leaves */
  if (now_ns < atomic_load(&link->shared_until_ns) || atomic_load(&link->holders) > 1u) return true;
  if (atomic_load(&link->attending)) return false;
  *until_ns = atomic_load(&link->attended_until_ns);
  return now_ns >= *until_ns;
}

static int64_t deadline_of(link_t *link, short *wanted) {
  bool wants_to_write;
  int64_t listens_ns, deadline_ns = earlier(output_due_ns(link, &wants_to_write), link->poll_ns);
  const bool hears = listens(link, &listens_ns);
  *wanted = (short)((hears ? POLLIN : 0) | (wants_to_write ? POLLOUT : 0));
  if (!hears) deadline_ns = earlier(deadline_ns, listens_ns);
  return link->descriptor < 0 ? earlier(deadline_ns, link->reopen_ns) : deadline_ns;
}

/* Returns the events of the link's descriptor. */
static short sleep_until(link_t *link, int64_t deadline_ns, short wanted) {
  struct pollfd wait[2] = {{.fd = link->descriptor, .events = wanted}, {.fd = link->timer, .events = POLLIN}};
  int64_t pause_ns = deadline_ns - clock_ns();
  if (pause_ns < 0) pause_ns = 0;
  const struct timespec timeout = {.tv_sec = (time_t)(pause_ns / SECOND_NS), .tv_nsec = (long)(pause_ns % SECOND_NS)};
  return ppoll(wait, 2, &timeout, NULL) > 0 ? wait[0].revents : 0;
}

static int receive_locked(link_t *link) {
  (void)pthread_mutex_lock(&link->receiving);
  const int status = link->kind->receive(link);
  (void)pthread_mutex_unlock(&link->receiving);
  return status;
}

static void handle_events(link_t *link, short events) {
  if ((events & POLLOUT) != 0) push_rest(link);
  if ((events & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) == 0) return;
  const int status = receive_locked(link);
  const bool hung_up = (events & (POLLHUP | POLLNVAL)) != 0 && (events & POLLIN) == 0;
  if (link->kind->survives_errors || (status >= 0 && !hung_up)) return;
  detach(link, true);
  link->reopen_ns = clock_ns() + REOPEN_NS;
}

static void pause_for_test(const link_t *link) {
  if (link->times.pause != NULL) link->times.pause();
}

/* True if nobody has requested work before the deadline, so that the thread may sleep until then. */
static bool may_sleep(link_t *link, int64_t deadline_ns) {
  if (atomic_exchange(&link->timer_set, false))
    set_timer(link, 0); /* the work for which the timer was set is done, or included in the deadline */
  pause_for_test(link);
  link->own_deadline_ns = deadline_ns;
  atomic_store(&link->asleep_until_ns, deadline_ns);
  pause_for_test(link);
  if (atomic_load(&link->asked_ns) < deadline_ns) return false;
  const uintptr_t state = enter(link);
  const int64_t session_ns = link->session->deadline_ns;
  leave(link, state);
  return session_ns >= link->poll_ns;
}

static void run(void *argument) {
  link_t *link = argument;
  link_of_this_thread = link;
  be_exact();
  bool more = false;
  while (!atomic_load(&link->stop)) {
    short wanted;
    const int64_t deadline_ns = deadline_of(link, &wanted);
    const bool may = !more && may_sleep(link, deadline_ns);
    const short events = sleep_until(link, may ? deadline_ns : 0, wanted);
    atomic_store(&link->asleep_until_ns, AWAKE);
    pause_for_test(link);
    atomic_store(&link->asked_ns, TIDE_FOREVER);
    handle_events(link, events);
    /* receives now, so that no acknowledgment is requested that has arrived already */
    if ((wanted & POLLIN) == 0 && !atomic_load(&link->attending) && link->descriptor >= 0) (void)receive_locked(link);
    more = report_complete(link);
    const int64_t limit_ns = clock_ns() + link->times.poll_limit_ns;
    link->poll_ns = earlier(tide_session_poll_received(link->session), limit_ns);
    pause_for_test(link);
    flush(link);
    if (link->descriptor >= 0 || clock_ns() < link->reopen_ns) continue;
    const int descriptor = link->kind->open(link);
    link->reopen_ns = clock_ns() + REOPEN_NS;
    if (descriptor >= 0) (void)attach(link, descriptor);
  }
}

/* ---- custom links: a thread runs what a microcontroller's main loop would run ---- */

typedef struct custom {
  struct custom *next;
  tide_custom_link_t link;
  tide_posix_thread_t thread;
  atomic_bool stop;
  tide_link_counters_t scheduling; /* only the members about the thread are used */
  uint8_t storage[];
} custom_t;

static pthread_mutex_t customs_mutex = PTHREAD_MUTEX_INITIALIZER;
static custom_t *customs;

static void run_custom(void *argument) {
  custom_t *custom = argument;
  be_exact();
  while (!atomic_load(&custom->stop)) {
    tide_custom_link_run(&custom->link, custom->link.wakes ? TIDE_FOREVER : clock_ns() + CUSTOM_TURN_NS);
  }
}

static int open_custom(tide_session_t *session, const tide_link_address_t *address) {
  const size_t storage_bytes = TIDE_CUSTOM_LINK_STORAGE_BYTES((size_t)session->config.mtu);
  custom_t *custom = calloc(1u, sizeof *custom + storage_bytes);
  if (custom == NULL) return TIDE_ERROR_LINK;
  int status = tide_custom_link_open(&custom->link, session, address->custom, custom->storage, storage_bytes);
  if (status == TIDE_OK) {
    status = start_thread(&custom->thread, address->thread_priority, run_custom, custom, &custom->scheduling);
  }
  if (status != TIDE_OK) {
    tide_custom_link_close(&custom->link);
    free(custom);
    return status;
  }
  (void)pthread_mutex_lock(&customs_mutex);
  custom->next = customs;
  customs = custom;
  (void)pthread_mutex_unlock(&customs_mutex);
  return TIDE_OK;
}

static custom_t **custom_of(tide_session_t *session) {
  custom_t **link = &customs;
  while (*link != NULL && (*link)->link.session != session) link = &(*link)->next;
  return link;
}

static bool close_custom(tide_session_t *session) {
  (void)pthread_mutex_lock(&customs_mutex);
  custom_t **link = custom_of(session);
  custom_t *custom = *link;
  if (custom != NULL) *link = custom->next;
  (void)pthread_mutex_unlock(&customs_mutex);
  if (custom == NULL) return false;
  atomic_store(&custom->stop, true);
  tide_custom_link_wake(&custom->link);
  tide_posix_thread_join(&custom->thread);
  tide_custom_link_close(&custom->link);
  free(custom);
  return true;
}

static bool count_custom(tide_session_t *session, tide_link_counters_t *counters) {
  (void)pthread_mutex_lock(&customs_mutex);
  const custom_t *custom = *custom_of(session);
  if (custom != NULL) {
    const tide_platform_t *platform = session->daemon.platform;
    const uintptr_t state = platform->critical_enter(platform->context);
    const tide_custom_counters_t *known = &custom->link.counters;
    *counters = (tide_link_counters_t){.opens = 1u,
                                       .messages_sent = known->messages_sent,
                                       .messages_lost = known->messages_lost,
                                       .bytes_received = known->bytes_received,
                                       .thread_priority = custom->scheduling.thread_priority,
                                       .thread_status = custom->scheduling.thread_status};
    platform->critical_exit(platform->context, state);
  }
  (void)pthread_mutex_unlock(&customs_mutex);
  return custom != NULL;
}

/* ---- the port's functions: which links there are, and their memory ---- */

static const kind_t *kind_of(const tide_link_address_t *address) {
  if (address->kind == TIDE_LINK_SERIAL && address->device != NULL && address->baud > 0u) return &serial_kind;
  if (address->host == NULL || address->port == 0u || address->busy_poll_us > TIDE_BUSY_POLL_MAXIMUM_US) return NULL;
  if (address->kind == TIDE_LINK_UDP) return &udp_kind;
  return address->kind == TIDE_LINK_TCP ? &tcp_kind : NULL;
}

/* The session's link, or null. take: removes the link from the list, once no caller holds it. */
static link_t *find(tide_session_t *session, bool take) {
  (void)pthread_mutex_lock(&links_mutex);
  link_t **place = &links;
  while (*place != NULL && (*place)->session != session) place = &(*place)->next;
  link_t *link = *place;
  if (take && link != NULL) {
    *place = link->next;
    atomic_store(&link->stop, true);
    if (link->kind->append != NULL) (void)shutdown(link->descriptor, SHUT_RD); /* ends the sleep of callers */
  }
  (void)pthread_mutex_unlock(&links_mutex);
  return link;
}

static void destroy(link_t *link) {
  if (link->timer >= 0) (void)close(link->timer);
  (void)pthread_mutex_destroy(&link->receiving);
  free(link->datagram_storage);
  free(link->output.frame);
  free(link);
}

static link_t *create(tide_session_t *session, const tide_link_address_t *address, const kind_t *kind) {
  link_t *link = calloc(1u, sizeof *link);
  /* a line's frame, or a batch of datagrams */
  const size_t frame_bytes = TIDE_FRAMING_WORST_BYTES((size_t)session->config.mtu);
  const size_t batch_bytes = (size_t)session->config.mtu + TIDE_DATAGRAM_BATCH_BYTES;
  const size_t output_bytes = frame_bytes > batch_bytes ? frame_bytes : batch_bytes;
  uint8_t *storage = malloc(output_bytes);
  uint8_t *datagrams = address->kind == TIDE_LINK_UDP ? malloc(DATAGRAM_BYTES) : NULL;
  if (link == NULL || storage == NULL || (address->kind == TIDE_LINK_UDP && datagrams == NULL)) {
    free(datagrams);
    free(storage);
    free(link);
    return NULL;
  }
  pthread_mutexattr_t attributes;
  (void)pthread_mutexattr_init(&attributes);
  (void)pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
  (void)pthread_mutex_init(&link->receiving, &attributes);
  (void)pthread_mutexattr_destroy(&attributes);
  const bool serial = address->kind == TIDE_LINK_SERIAL;
  const uint8_t ours = (uint8_t)(address->agent_side ? TIDE_SERIAL_ADDRESS_AGENT : TIDE_SERIAL_ADDRESS_CLIENT);
  const uint8_t theirs = (uint8_t)(address->agent_side ? TIDE_SERIAL_ADDRESS_CLIENT : TIDE_SERIAL_ADDRESS_AGENT);
  tide_serial_output_init(&link->output, storage, output_bytes, serial ? address->baud : 0u, ours, theirs);
  link->datagram_storage = datagrams;
  link->kind = kind;
  link->session = session;
  link->address = *address;
  link->descriptor = -1;
  link->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  link->gather_until_ns = TIDE_FOREVER;
  link->times = tide_posix_link_times;
  atomic_store(&link->asleep_until_ns, TIDE_FOREVER);
  atomic_store(&link->asked_ns, TIDE_FOREVER);
  const int32_t poll_us = address->busy_poll_us == 0 ? TIDE_BUSY_POLL_USUAL_US : address->busy_poll_us;
  tide_busy_poll_init(&link->busy_poll, poll_us < 0 ? 0 : (int64_t)poll_us * 1000);
  return link;
}

int tide_port_open_link(tide_session_t *session, const tide_link_address_t *address) {
  if (session == NULL || address == NULL) return TIDE_ERROR_ARGUMENT;
  tide_link_counters_t counters;
  if (tide_port_link_counters(session, &counters) == TIDE_OK) return TIDE_ERROR_EXISTS;
  if (address->kind == TIDE_LINK_CUSTOM) return open_custom(session, address);
  const kind_t *kind = kind_of(address);
  if (kind == NULL) return TIDE_ERROR_ARGUMENT;
  link_t *link = create(session, address, kind);
  if (link == NULL) return TIDE_ERROR_LINK;
  const int descriptor = link->timer < 0 ? TIDE_ERROR_LINK : kind->open(link);
  int status = descriptor < 0 ? descriptor : attach(link, descriptor);
  if (status == TIDE_OK) status = start_thread(&link->thread, address->thread_priority, run, link, &link->counters);
  if (status != TIDE_OK) {
    if (descriptor >= 0) detach(link, false);
    destroy(link);
    return status;
  }
  (void)pthread_mutex_lock(&links_mutex);
  link->next = links;
  links = link;
  (void)pthread_mutex_unlock(&links_mutex);
  return TIDE_OK;
}

void tide_port_close_link(tide_session_t *session) {
  if (close_custom(session)) return;
  link_t *link = find(session, true);
  if (link == NULL) return;
  atomic_store(&link->stop, true);
  ask(link, 0);
  tide_posix_thread_join(&link->thread);
  detach(link, false);
  destroy(link);
}

void tide_port_wake_link(tide_session_t *session) {
  const tide_platform_t *platform = session->daemon.platform;
  const uintptr_t critical = tide_platform_enter(platform);
  const int64_t due_ns = session->deadline_ns;
  tide_platform_exit(platform, critical);
  (void)pthread_mutex_lock(&links_mutex);
  link_t *link = links;
  while (link != NULL && link->session != session) link = link->next;
  if (link != NULL) ask(link, due_ns);
  (void)pthread_mutex_unlock(&links_mutex);
  if (link != NULL) return;
  (void)pthread_mutex_lock(&customs_mutex);
  custom_t *custom = *custom_of(session);
  if (custom != NULL) tide_custom_link_wake(&custom->link);
  (void)pthread_mutex_unlock(&customs_mutex);
}

const tide_pump_t *tide_port_pump(tide_session_t *session) {
  (void)session;
  return NULL;
}

int tide_port_link_counters(tide_session_t *session, tide_link_counters_t *counters) {
  if (count_custom(session, counters)) return TIDE_OK;
  link_t *link = find(session, false);
  if (link == NULL) return TIDE_ERROR_NOT_FOUND;
  const uintptr_t state = enter(link);
  *counters = link->counters;
  leave(link, state);
  counters->bytes_received = atomic_load_explicit(&link->bytes_received, memory_order_relaxed);
  counters->messages_oversize = atomic_load_explicit(&link->messages_oversize, memory_order_relaxed);
  counters->busy_poll_us = (int32_t)(link->busy_poll.limit_ns / 1000);
  return TIDE_OK;
}
