/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a POSIX host that are scheduled before they run. Policy, priority, processor and a resident stack are in
 * force before the thread executes any code of the program or the runtime. So no order of calls leaves a thread with a
 * wrong priority. (The published timer tests of ROS had to set the scheduling before ros::init, or some threads ran
 * without it and the latencies were ruined.) The starting thread's scheduling does not matter, except that Linux lets
 * no SCHED_DEADLINE thread start others. */
#ifndef TIDE_POSIX_THREAD_H
#define TIDE_POSIX_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/posix.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_posix_scheduling {
  int policy;   /* SCHED_OTHER, SCHED_FIFO, SCHED_RR or (Linux) SCHED_DEADLINE of <sched.h> */
  int priority; /* FIFO, RR: within sched_get_priority_min..max; otherwise 0 */
  int cpu;      /* 0-based, or TIDE_POSIX_ANY_CPU; Linux refuses to pin a thread that has SCHED_DEADLINE */
  /* SCHED_DEADLINE only: runtime_ns of processor time within deadline_ns of each activation, at most once a period_ns.
   * 1024 <= runtime_ns <= deadline_ns <= period_ns; Linux takes periods from 100 us (sched_deadline_period_min_us). */
  int64_t runtime_ns, deadline_ns, period_ns;
} tide_posix_scheduling_t;

/* Set the scheduling of the calling thread. TIDE_ERROR_ARGUMENT: no such policy, priority or processor, or a deadline
 * thread that is pinned. TIDE_ERROR_NOT_PERMITTED: the system refuses it (no CAP_SYS_NICE, no rtprio limit, or the
 * deadline threads of the machine have no processor time left); nothing was changed then. TIDE_ERROR_UNSUPPORTED: the
 * system has no such policy. */
int tide_posix_schedule(const tide_posix_scheduling_t *scheduling);
/* Returns the calling thread's policy and priority, without its processor (TIDE_POSIX_ANY_CPU), for starting another
 * thread. */
tide_posix_scheduling_t tide_posix_own_scheduling(void);
typedef struct tide_posix_thread_config {
  tide_posix_scheduling_t scheduling;
  const char *name;         /* up to 15 characters, for ps and traces; null: the program's */
  size_t stack_bytes;       /* 0: the system's default */
  size_t stack_touch_bytes; /* part of the stack that is touched before function runs, leaving at least 64 KiB of the
                               stack; 0: none. tide_posix_lock_memory keeps this part resident. */
  void (*function)(void *context);
  void *context;
} tide_posix_thread_config_t;

/* The caller provides this memory, which must stay valid from start to join. */
typedef struct tide_posix_thread {
  pthread_t thread;
  tide_posix_thread_config_t config;
  pthread_mutex_t mutex;
  pthread_cond_t known;
  int status; /* status of the scheduling, once it is known */
} tide_posix_thread_t;

/* Start a thread; returns when its scheduling is in force. On an error of tide_posix_schedule, function is never called
 * and there is nothing to join. The thread blocks all signals.
 * TIDE_ERROR_FULL: the system has no resources for another thread. Not re-entrant for the same structure. Takes a
 * millisecond at most. */
int tide_posix_thread_start(tide_posix_thread_t *thread, const tide_posix_thread_config_t *config);
/* Wait until function has returned. Call it once, from another thread. */
void tide_posix_thread_join(tide_posix_thread_t *thread);

/* Lock all memory of the process, present and future, so no page fault waits for a disk.
 * TIDE_ERROR_NOT_PERMITTED: needs CAP_IPC_LOCK or a memlock limit (ulimit -l) above the process's memory. */
int tide_posix_lock_memory(void);

/* Keep the processors out of sleep states with an exit latency above latency_us; 0: only the lightest state is allowed.
 * Returns a descriptor; the limit is in force until the descriptor is closed. TIDE_ERROR_NOT_PERMITTED, or
 * TIDE_ERROR_UNSUPPORTED where the system has no /dev/cpu_dma_latency. */
int tide_posix_hold_cpu_latency(int32_t latency_us);

TIDE_EXTERN_C_END
#endif
