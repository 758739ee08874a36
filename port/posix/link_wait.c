/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that wait for something receive it themselves when they are the first to see it. */
#include "event.h"
#include "link.h"
#include "tide/status.h"

/* A link that is closed waits for those who wait by way of it, so they look up so often. */
#define LOOK_UP_NS INT64_C(20000000)
/* The link's thread receives just now: it will set the event, or leave something to be received. */
#define THREAD_RECEIVES_NS INT64_C(500000)

static int64_t earlier(int64_t left_ns, int64_t right_ns) { return left_ns < right_ns ? left_ns : right_ns; }

/* False: the thread does it. What arrived may move what has to be done in time, which is the thread's. */
static bool receive_instead(tide_posix_link_t *link) {
  if (pthread_mutex_trylock(&link->receiving) != 0) return false;
  (void)link->kind->receive(link);
  (void)pthread_mutex_unlock(&link->receiving);
  tide_posix_link_ask(link, tide_session_poll(link->session));
  return true;
}

static bool wait_on(tide_posix_link_t *link, tide_event_t *event, int64_t deadline_ns) {
  const tide_platform_t *platform = link->session->daemon.platform;
  const int64_t now_ns = tide_posix_link_now_ns();
  const int found =
      tide_posix_event_wait_or_readable(event, link->descriptor, earlier(deadline_ns, now_ns + LOOK_UP_NS));
  if (found != TIDE_POSIX_READABLE) return found == 1;
  if (receive_instead(link)) return false;
  return platform->event_wait(platform->context, event, earlier(deadline_ns, now_ns + THREAD_RECEIVES_NS)) == 1;
}

int tide_posix_link_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  const tide_platform_t *platform = tide_port_platform();
  tide_posix_link_t *link = tide_posix_link_hold(context);
  if (link == NULL) return platform->event_wait(platform->context, event, deadline_ns);
  bool set = false;
  do {
    set = wait_on(link, event, deadline_ns);
  } while (!set && !atomic_load(&link->stop) && tide_posix_link_now_ns() < deadline_ns);
  tide_posix_link_let_go(link);
  return set ? 1 : platform->event_wait(platform->context, event, deadline_ns);
}
