/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that wait for something receive it themselves when they are the first to see it. They look for it a while
 * before they sleep, where that pays (busy_poll.h). */
#include "event.h"
#include "link.h"
#include "tide/status.h"

/* A link that is closed waits for those who wait by way of it, so they look up so often. */
#define LOOK_UP_NS INT64_C(20000000)
/* The link's thread receives just now: it will set the event, or leave something to be received. */
#define THREAD_RECEIVES_NS INT64_C(500000)

static int64_t earlier(int64_t left_ns, int64_t right_ns) { return left_ns < right_ns ? left_ns : right_ns; }

/* Negative: the thread does it; 0: nothing was there. What arrived may move what has to be done in time, which is the
 * thread's. */
static int receive_instead(tide_posix_link_t *link) {
  if (pthread_mutex_trylock(&link->receiving) != 0) return -1;
  const int received = link->kind->receive(link);
  (void)pthread_mutex_unlock(&link->receiving);
  if (received != 0) tide_posix_link_ask(link, tide_session_poll_received(link->session));
  return received != 0;
}

static bool take(tide_event_t *event) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->event_wait(platform->context, event, 0) == 1;
}

/* Several callers may wait; one of them looks. */
static bool may_look(tide_posix_link_t *link) {
  return link->busy_poll.limit_ns > 0 && !atomic_exchange(&link->looking, true);
}

/* True: the event was set. */
static bool look(tide_posix_link_t *link, tide_event_t *event, int64_t deadline_ns) {
  tide_busy_poll_t *poll = &link->busy_poll;
  int64_t now_ns = tide_posix_link_now_ns();
  bool set = false;
  if (!may_look(link)) return false;
  tide_busy_poll_start(poll, now_ns);
  while (!set && now_ns < deadline_ns && tide_busy_poll_goes_on(poll, now_ns)) {
    (void)receive_instead(link);
    set = take(event);
    now_ns = tide_posix_link_now_ns();
  }
  tide_busy_poll_looked(poll, now_ns, set);
  atomic_store(&link->looking, false);
  return set;
}

static void learn(tide_posix_link_t *link, int64_t since_ns, bool set) {
  const int64_t now_ns = tide_posix_link_now_ns();
  if (!may_look(link)) return;
  tide_busy_poll_end(&link->busy_poll, now_ns - since_ns, now_ns, set);
  atomic_store(&link->looking, false);
}

/* True: the event was set. */
static bool sleep_on(tide_posix_link_t *link, tide_event_t *event, int64_t deadline_ns) {
  const tide_platform_t *platform = link->session->daemon.platform;
  const int64_t now_ns = tide_posix_link_now_ns();
  const int found =
      tide_posix_event_wait_or_readable(event, link->descriptor, earlier(deadline_ns, now_ns + LOOK_UP_NS));
  if (found != TIDE_POSIX_READABLE) return found == 1;
  if (receive_instead(link) >= 0) return false;
  return platform->event_wait(platform->context, event, earlier(deadline_ns, now_ns + THREAD_RECEIVES_NS)) == 1;
}

int tide_posix_link_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  const tide_platform_t *platform = tide_port_platform();
  tide_posix_link_t *link = tide_posix_link_hold(context);
  if (link == NULL) return platform->event_wait(platform->context, event, deadline_ns);
  const int64_t start_ns = tide_posix_link_now_ns();
  bool set = look(link, event, deadline_ns);
  while (!set && !atomic_load(&link->stop) && tide_posix_link_now_ns() < deadline_ns) {
    set = sleep_on(link, event, deadline_ns);
  }
  learn(link, start_ns, set);
  tide_posix_link_let_go(link);
  return set ? 1 : platform->event_wait(platform->context, event, deadline_ns);
}
