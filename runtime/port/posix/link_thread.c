/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that play the interrupt side. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>

#include "link.h"
#include "tide/status.h"

/* A thread with SCHED_DEADLINE passes on neither its scheduling nor a part of its bandwidth. */
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

int tide_posix_link_start_thread(tide_posix_thread_t *thread, int priority, void (*function)(void *context),
                                 void *context, tide_link_counters_t *counters) {
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

void tide_posix_link_be_exact(void) { (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }
