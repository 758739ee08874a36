/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a link, and what submitters do of it. */
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tide/status.h"

#define SECOND_NS INT64_C(1000000000)
#define REOPEN_NS INT64_C(200000000)
/* The session is polled at least so often, because a program may ask for something that submits nothing. */
#define POLL_LIMIT_NS INT64_C(20000000)
/* Messages sent in a row before the thread looks at what arrived. */
#define MESSAGES_A_TURN 32

static _Thread_local const tide_posix_link_t *link_of_this_thread;

int64_t tide_posix_link_now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* ---- sending ---- */

int tide_posix_link_gather(tide_posix_link_t *link, const tide_frame_parts_t *frame, size_t offset) {
  const size_t length = frame->head_bytes + frame->body_bytes + frame->tail_bytes;
  if (offset + length > link->output.capacity) return TIDE_ERROR_TOO_LARGE;
  uint8_t *place = link->output.frame + offset;
  if (frame->head_bytes > 0u) memcpy(place, frame->head, frame->head_bytes);
  if (frame->body_bytes > 0u) memcpy(place + frame->head_bytes, frame->body, frame->body_bytes);
  if (frame->tail_bytes > 0u) memcpy(place + frame->head_bytes + frame->body_bytes, frame->tail, frame->tail_bytes);
  link->output.length = offset + length;
  link->output.written = 0u;
  return TIDE_OK;
}

int tide_posix_link_push_stream(tide_posix_link_t *link) {
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
    tide_serial_output_wrote(&link->output, (size_t)count, tide_posix_link_now_ns());
    link->counters.bytes_sent += (uint64_t)count;
    rest = tide_serial_output_rest(&link->output, &bytes);
  }
  return TIDE_OK;
}

static bool is_own_thread(const tide_posix_link_t *link) { return link_of_this_thread == link; }

/* Later wake-ups are not needed before the thread has taken this one. */
static void wake(tide_posix_link_t *link) {
  const uint64_t one = 1u;
  if (atomic_exchange(&link->woken, true)) return;
  while (write(link->wake_descriptor, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void tide_posix_link_ask(tide_posix_link_t *link, int64_t time_ns) {
  if (!is_own_thread(link) && time_ns < atomic_load(&link->asleep_until_ns)) wake(link);
}

static void flush_batch_locked(tide_posix_link_t *link) {
  if (link->batch.count == 0u) return;
  const uint64_t lost = link->batch.lost, bytes_sent = link->batch.bytes_sent;
  if (!tide_datagram_output_flush(&link->batch)) link->counters.writes_partial++;
  link->counters.messages_lost += (uint32_t)(link->batch.lost - lost); /* no route, too long: as if lost on the way */
  link->counters.bytes_sent += link->batch.bytes_sent - bytes_sent;
}

/* A submitter's message leaves at once, unless the thread is about to send a batch that was chosen before it: then it
 * is the next in it, because numbers in a stream have to rise. A batch that is full is sent by the thread: here the
 * critical section is held. */
static int append_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  const int status = link->kind->append(link, frame);
  if (status != TIDE_OK) return status;
  tide_serial_output_wrote(&link->output, 0u, tide_posix_link_now_ns());
  if (!is_own_thread(link) && link->batch.count == 1u) flush_batch_locked(link);
  return TIDE_OK;
}

static int load_and_push_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  const int status = link->kind->load(link, frame);
  return status == TIDE_OK ? link->kind->push(link) : status;
}

static int start_locked(tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  if (link->descriptor < 0) return TIDE_ERROR_LINK;
  if (link->busy) return TIDE_ERROR_STATE;
  const int status = link->kind->append != NULL ? append_locked(link, frame) : load_and_push_locked(link, frame);
  link->busy = status == TIDE_OK;
  if (!link->busy) {
    link->counters.messages_lost++;
    tide_serial_output_reset(&link->output);
  }
  return status;
}

/* A submitter's datagram that the system has taken, and after which the thread has nothing to do: a control message,
 * such as a question that its sender waits for. Data is left to the thread, which sends it in batches when it comes in
 * quick succession, and does the work of its end. */
static bool is_gone_locked(const tide_posix_link_t *link, const tide_frame_parts_t *frame) {
  return link->kind->append != NULL && !is_own_thread(link) && link->batch.count == 0u && frame->body_bytes == 0u &&
         !frame->awaited;
}

static int start(void *context, const tide_frame_parts_t *frame) {
  tide_posix_link_t *link = context;
  (void)pthread_mutex_lock(&link->mutex);
  const int status = start_locked(link, frame);
  const bool gone = status == TIDE_OK && is_gone_locked(link, frame);
  if (gone) {
    link->busy = false;
    link->counters.messages_sent++;
  }
  (void)pthread_mutex_unlock(&link->mutex);
  if (gone) {
    tide_daemon_on_transmit_complete(&link->session->daemon);
  } else if (status == TIDE_OK && !is_own_thread(link)) {
    wake(link);
  }
  return status;
}

/* When the message that is under way will have left; TIDE_FOREVER: nothing is, or the system has not taken it all, or
 * it filled a batch that has to leave first. */
static int64_t complete_ns_locked(const tide_posix_link_t *link) {
  if (!link->busy || link->batch.blocked || tide_datagram_output_is_full(&link->batch)) return TIDE_FOREVER;
  const int64_t complete_ns = tide_serial_output_complete_ns(&link->output);
  return complete_ns < link->drained_check_ns ? link->drained_check_ns : complete_ns;
}

/* True when the message has left: then it is no longer under way. */
static bool take_complete(tide_posix_link_t *link, int64_t now_ns) {
  (void)pthread_mutex_lock(&link->mutex);
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
  (void)pthread_mutex_unlock(&link->mutex);
  return complete;
}

/* The end of one message lets the daemon start the next. True when there may be more to do at once. */
static bool report_complete(tide_posix_link_t *link) {
  for (int count = 0; count < MESSAGES_A_TURN; count++) {
    if (!take_complete(link, tide_posix_link_now_ns())) return false;
    tide_daemon_on_transmit_complete(&link->session->daemon);
  }
  return true;
}

static void flush_batch(tide_posix_link_t *link) {
  (void)pthread_mutex_lock(&link->mutex);
  flush_batch_locked(link);
  (void)pthread_mutex_unlock(&link->mutex);
}

static void push_rest(tide_posix_link_t *link) {
  (void)pthread_mutex_lock(&link->mutex);
  if (link->busy && link->output.written < link->output.length && link->kind->push(link) != TIDE_OK) {
    tide_serial_output_reset(&link->output); /* its end is reported next; the descriptor tells what is wrong with it */
    link->counters.messages_lost++;
  }
  (void)pthread_mutex_unlock(&link->mutex);
}

/* ---- receiving ---- */

void tide_posix_link_count_received(tide_posix_link_t *link, size_t bytes, bool oversize) {
  (void)pthread_mutex_lock(&link->mutex);
  link->counters.bytes_received += bytes;
  if (oversize) link->counters.messages_oversize++;
  (void)pthread_mutex_unlock(&link->mutex);
}

int tide_posix_link_read(tide_posix_link_t *link) {
  ssize_t count;
  do {
    count = read(link->descriptor, link->input + link->input_bytes, sizeof link->input - link->input_bytes);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
  if (count <= 0) return TIDE_ERROR_LINK;
  link->input_bytes += (size_t)count;
  return (int)count;
}

/* ---- going down and coming up ---- */

static int attach(tide_posix_link_t *link, int descriptor) {
  (void)pthread_mutex_lock(&link->mutex);
  link->descriptor = descriptor;
  link->counters.opens++;
  (void)pthread_mutex_unlock(&link->mutex);
  link->input_bytes = 0u;
  const bool lends = link->kind->append != NULL; /* what it receives, to callers that wait */
  const tide_link_t functions = {.context = link, .start = start, .wait = lends ? tide_posix_link_wait : NULL};
  return tide_daemon_attach_link(&link->session->daemon, &functions, link->output.source);
}

static void detach(tide_posix_link_t *link, bool cut) {
  (void)pthread_mutex_lock(&link->mutex);
  const int descriptor = link->descriptor;
  link->descriptor = -1;
  if (link->busy) link->counters.messages_lost++;
  if (cut) link->counters.cuts++;
  link->busy = false;
  link->drained_check_ns = 0;
  tide_serial_output_reset(&link->output);
  link->counters.messages_lost += (uint32_t)tide_datagram_output_clear(&link->batch);
  (void)pthread_mutex_unlock(&link->mutex);
  if (descriptor < 0) return;
  tide_daemon_detach_link(&link->session->daemon);
  if (link->address.kind == TIDE_LINK_SERIAL) (void)tcflush(descriptor, TCOFLUSH); /* else close may wait for it */
  (void)close(descriptor);
}

static void go_down(tide_posix_link_t *link) {
  detach(link, true);
  link->reopen_ns = tide_posix_link_now_ns() + REOPEN_NS;
}

static void try_to_reopen(tide_posix_link_t *link) {
  if (link->descriptor >= 0 || tide_posix_link_now_ns() < link->reopen_ns) return;
  const int descriptor = link->kind->open(link);
  if (descriptor >= 0) {
    (void)attach(link, descriptor);
  } else {
    link->reopen_ns = tide_posix_link_now_ns() + REOPEN_NS;
  }
}

/* ---- the thread ---- */

static int64_t deadline_of(tide_posix_link_t *link, bool *wants_to_write) {
  (void)pthread_mutex_lock(&link->mutex);
  int64_t deadline_ns = complete_ns_locked(link);
  *wants_to_write = link->batch.blocked || (link->busy && link->output.written < link->output.length);
  (void)pthread_mutex_unlock(&link->mutex);
  if (link->poll_ns < deadline_ns) deadline_ns = link->poll_ns;
  if (link->descriptor < 0 && link->reopen_ns < deadline_ns) deadline_ns = link->reopen_ns;
  return deadline_ns;
}

/* Returns the events of the link's descriptor. asked: somebody woke the thread. */
static short sleep_until(tide_posix_link_t *link, int64_t deadline_ns, bool wants_to_write, bool *asked) {
  struct pollfd wait[2] = {{.fd = link->descriptor, .events = (short)(wants_to_write ? POLLIN | POLLOUT : POLLIN)},
                           {.fd = link->wake_descriptor, .events = POLLIN}};
  int64_t pause_ns = deadline_ns - tide_posix_link_now_ns();
  if (pause_ns < 0) pause_ns = 0;
  const struct timespec timeout = {.tv_sec = (time_t)(pause_ns / SECOND_NS), .tv_nsec = (long)(pause_ns % SECOND_NS)};
  *asked = false;
  if (ppoll(wait, 2, &timeout, NULL) <= 0) return 0;
  *asked = wait[1].revents != 0;
  if (*asked) {
    uint64_t count;
    (void)!read(link->wake_descriptor, &count, sizeof count);
    atomic_store(&link->woken, false); /* after the reading: a wake-up between the two is seen by what follows */
  }
  return wait[0].revents;
}

/* Whoever waits may have it in hand already, on another processor. Not twice in a row: he may be less urgent, and be
 * preempted. */
static bool gives_way(tide_posix_link_t *link) {
  const bool received = pthread_mutex_trylock(&link->receiving) != 0;
  if (!received) (void)pthread_mutex_unlock(&link->receiving);
  link->gave_way = received && !link->gave_way;
  return link->gave_way;
}

static void handle_events(tide_posix_link_t *link, short events) {
  if ((events & POLLOUT) != 0) push_rest(link);
  if ((events & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) == 0) return;
  (void)pthread_mutex_lock(&link->receiving);
  const int status = link->kind->receive(link);
  (void)pthread_mutex_unlock(&link->receiving);
  const bool hung_up = (events & (POLLHUP | POLLNVAL)) != 0 && (events & POLLIN) == 0;
  if (!link->kind->survives_errors && (status < 0 || hung_up)) go_down(link);
}

static void poll_session(tide_posix_link_t *link) {
  const int64_t now_ns = tide_posix_link_now_ns();
  const int64_t next_ns = tide_session_poll(link->session);
  link->poll_ns = next_ns < now_ns + POLL_LIMIT_NS ? next_ns : now_ns + POLL_LIMIT_NS;
}

/* True: the deadline holds. Whoever asks for something earlier either sees until when the thread will sleep, or is seen
 * here. */
static bool may_sleep(tide_posix_link_t *link, int64_t deadline_ns) {
  const tide_platform_t *platform = link->session->daemon.platform;
  atomic_store(&link->asleep_until_ns, deadline_ns);
  const uintptr_t critical = tide_platform_enter(platform);
  const int64_t session_ns = link->session->deadline_ns;
  tide_platform_exit(platform, critical);
  return session_ns >= link->poll_ns;
}

static void run(void *argument) {
  tide_posix_link_t *link = argument;
  link_of_this_thread = link;
  tide_posix_link_be_exact();
  bool more = false;
  while (!atomic_load(&link->stop)) {
    bool wants_to_write, asked;
    const int64_t deadline_ns = deadline_of(link, &wants_to_write);
    const bool may = !more && may_sleep(link, deadline_ns);
    const short events = sleep_until(link, may ? deadline_ns : 0, wants_to_write, &asked);
    if (events == POLLIN && may && !asked && gives_way(link)) continue;
    atomic_store(&link->asleep_until_ns, TIDE_FOREVER);
    handle_events(link, events);
    more = report_complete(link);
    poll_session(link);
    flush_batch(link);
    try_to_reopen(link);
  }
}

/* ---- from outside ---- */

/* A thread above those who submit runs after each of their datagrams, so that every batch is of one: at 100 B an eighth
 * of the messages a second. */
static int priority_of(const tide_posix_link_t *link) {
  const int asked = link->address.thread_priority;
  return asked == 0 && link->kind->append != NULL ? TIDE_LINK_PRIORITY_INHERIT : asked;
}

int tide_posix_link_bring_up(tide_posix_link_t *link) {
  const int descriptor = link->wake_descriptor < 0 ? TIDE_ERROR_LINK : link->kind->open(link);
  if (descriptor < 0) return descriptor;
  int status = attach(link, descriptor);
  if (status == TIDE_OK) {
    status = tide_posix_link_start_thread(&link->thread, priority_of(link), run, link, &link->counters);
  }
  if (status != TIDE_OK) detach(link, false);
  return status;
}

void tide_posix_link_take_down(tide_posix_link_t *link) {
  atomic_store(&link->stop, true);
  wake(link);
  tide_posix_thread_join(&link->thread);
  detach(link, false);
}
