/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "busy_poll.h"

#include <sched.h>
#include <string.h>

/* Initial polling time. */
#define BUSY_POLL_FIRST_NS INT64_C(10000)
/* Polls are a microsecond apart. A longer gap than this means that another thread had the processor, since no interrupt
 * is that long. */
#define BUSY_POLL_TAKEN_AWAY_NS INT64_C(200000)
#define BUSY_POLL_REST_NS INT64_C(5000000)
#define BUSY_POLL_REST_MAXIMUM_NS INT64_C(1280000000)
/* Each successful poll adds one to the confidence; at zero the thread sleeps. */
#define CONFIDENCE_MAXIMUM 8
#define LOST_BY_A_LONG_WAIT 4
/* The polling time of a real-time thread is at most the elapsed time divided by this number. */
#define BUSY_POLL_REAL_TIME_PARTS 4
#define POLICY_DEADLINE 6 /* SCHED_DEADLINE, which not every C library names */

static int64_t smaller(int64_t left_ns, int64_t right_ns) { return left_ns < right_ns ? left_ns : right_ns; }

static bool has_processors(void) {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
#else
  return false;
#endif
}

void tide_busy_poll_init(tide_busy_poll_t *poll, int64_t limit_ns) {
  memset(poll, 0, sizeof *poll);
  poll->limit_ns = limit_ns > 0 && has_processors() ? limit_ns : 0;
}

static bool is_real_time(void) {
  const int policy = sched_getscheduler(0);
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == POLICY_DEADLINE;
}

static int64_t credit_ns(tide_busy_poll_t *poll, int64_t now_ns) {
  const int64_t earned_ns = (now_ns - poll->credited_ns) / BUSY_POLL_REAL_TIME_PARTS;
  poll->credit_ns = smaller(poll->credit_ns + earned_ns, poll->limit_ns);
  poll->credited_ns = now_ns;
  return poll->credit_ns;
}

void tide_busy_poll_start(tide_busy_poll_t *poll, int64_t now_ns) {
  poll->start_ns = poll->looked_ns = poll->until_ns = now_ns;
  if (poll->window_ns == 0) return;
  poll->real_time = is_real_time();
  poll->until_ns = now_ns + (poll->real_time ? smaller(poll->window_ns, credit_ns(poll, now_ns)) : poll->window_ns);
}

static void rest(tide_busy_poll_t *poll, int64_t now_ns, int64_t rest_ns) {
  poll->window_ns = 0;
  poll->rest_ns = now_ns + rest_ns;
}

/* Another thread took the processor: suspends polling, each time for longer. */
static void rest_longer(tide_busy_poll_t *poll, int64_t now_ns) {
  const bool again = poll->taken_rest_ns > 0 && now_ns - poll->taken_ns < 2 * BUSY_POLL_REST_MAXIMUM_NS;
  poll->taken_rest_ns = again ? smaller(2 * poll->taken_rest_ns, BUSY_POLL_REST_MAXIMUM_NS) : BUSY_POLL_REST_NS;
  poll->taken_ns = now_ns;
  rest(poll, now_ns, poll->taken_rest_ns);
}

bool tide_busy_poll_goes_on(tide_busy_poll_t *poll, int64_t now_ns) {
  if (poll->until_ns == poll->start_ns) return false;
  if (now_ns - poll->looked_ns > BUSY_POLL_TAKEN_AWAY_NS) {
    poll->confidence = 0;
    rest_longer(poll, now_ns);
    return false;
  }
  poll->looked_ns = now_ns;
  return now_ns < poll->until_ns;
}

void tide_busy_poll_looked(tide_busy_poll_t *poll, int64_t now_ns, bool found) {
  if (poll->until_ns == poll->start_ns) return;
  const int64_t looked_ns = now_ns - poll->start_ns;
  poll->polled_ns += (uint64_t)looked_ns;
  if (poll->real_time) poll->credit_ns -= smaller(looked_ns, poll->credit_ns);
  if (found && poll->confidence < CONFIDENCE_MAXIMUM) poll->confidence++;
  if (found) poll->hits++;
  if (!found) poll->misses++;
}

/* One long wait does not cancel many successful ones. */
static void lose_confidence(tide_busy_poll_t *poll, int64_t now_ns) {
  if (poll->confidence > LOST_BY_A_LONG_WAIT) {
    poll->confidence -= LOST_BY_A_LONG_WAIT;
    return;
  }
  if (poll->window_ns > 0 && poll->confidence == 0) rest(poll, now_ns, BUSY_POLL_REST_NS);
  poll->confidence = 0;
  poll->window_ns = 0;
}

void tide_busy_poll_end(tide_busy_poll_t *poll, int64_t waited_ns, int64_t now_ns, bool found) {
  if (waited_ns > poll->limit_ns) {
    lose_confidence(poll, now_ns);
  } else if (found && waited_ns > poll->window_ns && now_ns >= poll->rest_ns) {
    poll->window_ns = poll->window_ns == 0 ? BUSY_POLL_FIRST_NS : 2 * poll->window_ns;
    poll->window_ns = smaller(poll->window_ns, poll->limit_ns);
  }
}
