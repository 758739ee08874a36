/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a link. */
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
#define AWAKE INT64_MIN /* the thread: it sees what is asked for before it sleeps */

static _Thread_local const tide_posix_link_t *link_of_this_thread;

int64_t tide_posix_link_now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

bool tide_posix_link_is_own_thread(const tide_posix_link_t *link) { return link_of_this_thread == link; }

/* Later wake-ups are not needed before the thread has taken this one. */
void tide_posix_link_wake(tide_posix_link_t *link) {
  const uint64_t one = 1u;
  if (atomic_exchange(&link->woken, true)) return;
  while (write(link->wake_descriptor, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

/* Either the thread's time to wake is seen here, or what is asked for is seen by the thread before it sleeps. */
void tide_posix_link_ask(tide_posix_link_t *link, int64_t time_ns) {
  if (time_ns == TIDE_FOREVER || tide_posix_link_is_own_thread(link)) return;
  int64_t asked_ns = atomic_load(&link->asked_ns);
  while (time_ns < asked_ns && !atomic_compare_exchange_weak(&link->asked_ns, &asked_ns, time_ns)) {
  }
  if (time_ns < atomic_load(&link->asleep_until_ns)) tide_posix_link_wake(link);
}

/* ---- receiving ---- */

void tide_posix_link_count_received(tide_posix_link_t *link, size_t bytes, bool oversize) {
  (void)atomic_fetch_add_explicit(&link->bytes_received, bytes, memory_order_relaxed);
  if (oversize) (void)atomic_fetch_add_explicit(&link->messages_oversize, 1u, memory_order_relaxed);
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
  const bool is_line = link->address.kind == TIDE_LINK_SERIAL;
  const tide_link_t functions = {.context = link,
                                 .start = tide_posix_link_start,
                                 .wait = lends ? tide_posix_link_wait : NULL,
                                 .heartbeat_floor_ns = is_line ? TIDE_SERIAL_HEARTBEAT_FLOOR_NS : 0};
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
  link->gather_until_ns = TIDE_FOREVER;
  tide_serial_output_reset(&link->output);
  link->counters.messages_lost += (uint32_t)tide_datagram_output_clear(&link->batch);
  tide_posix_link_leave(link);
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
  int64_t deadline_ns = tide_posix_link_output_due_ns(link, wants_to_write);
  const int64_t ask_again_ns = tide_posix_link_ask_again_ns(link, tide_posix_link_now_ns());
  if (ask_again_ns < deadline_ns) deadline_ns = ask_again_ns;
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
  bool received = atomic_load(&link->looking);
  if (!received) {
    received = pthread_mutex_trylock(&link->receiving) != 0;
    if (!received) (void)pthread_mutex_unlock(&link->receiving);
  }
  link->gave_way = received && !link->gave_way;
  return link->gave_way;
}

static void handle_events(tide_posix_link_t *link, short events) {
  if ((events & POLLOUT) != 0) tide_posix_link_push_rest(link);
  if ((events & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) == 0) return;
  (void)pthread_mutex_lock(&link->receiving);
  const int status = link->kind->receive(link);
  (void)pthread_mutex_unlock(&link->receiving);
  const bool hung_up = (events & (POLLHUP | POLLNVAL)) != 0 && (events & POLLIN) == 0;
  if (!link->kind->survives_errors && (status < 0 || hung_up)) go_down(link);
}

static void poll_session(tide_posix_link_t *link) {
  const int64_t now_ns = tide_posix_link_now_ns();
  const int64_t next_ns = tide_session_poll_received(link->session);
  const int64_t limit_ns = now_ns + link->times.poll_limit_ns;
  link->poll_ns = next_ns < limit_ns ? next_ns : limit_ns;
}

static void pause_for_test(const tide_posix_link_t *link) {
  if (link->times.pause != NULL) link->times.pause();
}

/* True: the deadline holds, nobody has asked for something earlier. */
static bool may_sleep(tide_posix_link_t *link, int64_t deadline_ns) {
  const tide_platform_t *platform = link->session->daemon.platform;
  pause_for_test(link);
  atomic_store(&link->asleep_until_ns, deadline_ns);
  pause_for_test(link);
  if (atomic_load(&link->asked_ns) < deadline_ns) return false;
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
    atomic_store(&link->asleep_until_ns, AWAKE);
    pause_for_test(link);
    atomic_store(&link->asked_ns, TIDE_FOREVER);
    handle_events(link, events);
    more = tide_posix_link_report_complete(link);
    poll_session(link);
    pause_for_test(link);
    tide_posix_link_flush(link);
    try_to_reopen(link);
  }
}

/* ---- from outside ---- */

int tide_posix_link_bring_up(tide_posix_link_t *link) {
  const int descriptor = link->wake_descriptor < 0 ? TIDE_ERROR_LINK : link->kind->open(link);
  if (descriptor < 0) return descriptor;
  int status = attach(link, descriptor);
  if (status == TIDE_OK) {
    status = tide_posix_link_start_thread(&link->thread, link->address.thread_priority, run, link, &link->counters);
  }
  if (status != TIDE_OK) detach(link, false);
  return status;
}

void tide_posix_link_take_down(tide_posix_link_t *link) {
  atomic_store(&link->stop, true);
  tide_posix_link_wake(link);
  tide_posix_thread_join(&link->thread);
  detach(link, false);
}
