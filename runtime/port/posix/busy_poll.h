/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive busy polling: whoever waits for something that will come soon looks for it again and again for a bounded
 * time before it sleeps, because a thread that sleeps on an idle processor is woken late (on a virtual one by 25 us and
 * more). Client and agent use it on UDP. As the halt polling of hypervisors it learns from each wait how long to look
 * in the next:
 *
 *   ended while looking           the time stays as it is: it paid
 *   ended later, within the limit the time is doubled: looking longer would have paid
 *   lasted longer than the limit  the time is 0 from now on, unless it has paid several times since the last like this
 *
 * So whoever is served every millisecond or less often sleeps at once. It never looks longer than the limit in a wait,
 * and never where its thread may use only one processor. On a busy machine the other side may wait for the very
 * processor on which this one looks: when the time came back to 0 without having paid once, or somebody else took the
 * processor meanwhile, it does not try again for BUSY_POLL_REST_NS (busy_poll.c). Each time that the processor is taken
 * this rest is twice as long, up to BUSY_POLL_REST_MAXIMUM_NS, because the system lets those who used their share wait
 * when they have something to do; after the longest rest without that it is short again. A thread with a real-time
 * policy keeps all others from its processor while it looks, so it may do so for at most a quarter of the time.
 *
 * Not thread-safe: the owner serialises. Nothing allocates. Cost of a turn: some ten instructions. */
#ifndef TIDE_PORT_POSIX_BUSY_POLL_H
#define TIDE_PORT_POSIX_BUSY_POLL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_busy_poll {
  int64_t limit_ns;                      /* of one wait; 0: never look */
  int64_t window_ns;                     /* of the next wait: 0 to limit_ns */
  int64_t start_ns, until_ns, looked_ns; /* of this wait: its start, when to sleep, the last look */
  int64_t rest_ns;                       /* no growth before this time */
  int64_t taken_ns, taken_rest_ns;       /* when the processor was taken last, and the rest after that */
  int64_t credit_ns, credited_ns;        /* of a real-time thread: what it may look; when this was reckoned */
  bool real_time;                        /* the thread of this wait */
  int confidence;                        /* grows with each time that looking paid */
  uint64_t hits, misses, polled_ns;      /* waits that ended while looking, and that did not; time spent looking */
} tide_busy_poll_t;

/* limit_ns 0: never. Whether there is more than one processor is asked for here, for the calling thread. */
void tide_busy_poll_init(tide_busy_poll_t *poll, int64_t limit_ns);
/* A wait starts now. */
void tide_busy_poll_start(tide_busy_poll_t *poll, int64_t now_ns);
/* Look (once more)? False: sleep. */
bool tide_busy_poll_goes_on(tide_busy_poll_t *poll, int64_t now_ns);
/* Looking is over, because something was found or it is time to sleep. Start, this and what is between them belong
 * together; waits of several threads may overlap apart from that. */
void tide_busy_poll_looked(tide_busy_poll_t *poll, int64_t now_ns, bool found);
/* A wait is over, after looking or after sleeping; it took so long. found: what was waited for came; else its deadline
 * did. */
void tide_busy_poll_end(tide_busy_poll_t *poll, int64_t waited_ns, int64_t now_ns, bool found);

#ifdef __cplusplus
}
#endif
#endif
