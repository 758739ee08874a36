/* SPDX-License-Identifier: Apache-2.0 */
/* The chains of a plan on the runtime's executors: the same program on threads of this machine and in the simulator.
 * Each chain's response time is measured from the expiry of its timer to the end of its last callback. */
#ifndef HOST_CHAINS_PROGRAM_H
#define HOST_CHAINS_PROGRAM_H

#include "plan.h"
#include "tide/executor.h"
#include "tide/local.h"
#include "tide/lock.h"
#include "tide/platform.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct program_world {
  const tide_platform_t *platform;
  const tide_lock_port_t *locks;                    /* may be null in a plan without locks */
  void (*work)(void *context, int64_t duration_ns); /* uses this much time of the calling processor */
  /* Called by the lane in a callback's own code, before and after its work; may be null. release_ns: release of the
   * chain's instance. */
  void (*on_begin)(void *context, size_t callback, int64_t release_ns);
  void (*on_end)(void *context, size_t callback, int64_t release_ns);
  void *context;
} program_world_t;

typedef struct program program_t;

typedef struct program_callback {
  tide_timer_t timer; /* a subscription uses only timer.callback */
  program_t *program;
  size_t index;
  tide_local_topic_t topic; /* its messages: the release of the chain's instance, an int64_t */
  tide_local_subscription_t subscription;
  tide_local_message_t *queue[PLAN_DEPTH];
  tide_local_topic_t joined; /* for a callback with several inputs: the instances published by all of them */
  struct {
    int64_t release_ns;
    uint32_t arrived; /* a bit for each input; 0: free */
  } arrivals[PLAN_DEPTH];
  size_t next_arrival;
  int64_t grid_ns; /* a timer's expiries are whole periods after it */
  uint64_t random;
} program_callback_t;

typedef struct program_chain {
  int64_t *responses_ns; /* completed instances, in order of completion */
  size_t capacity, completed;
} program_chain_t;

struct program {
  const plan_t *plan;
  program_world_t world;
  tide_executor_t executors[PLAN_EXECUTORS];
  tide_lane_t lanes[PLAN_EXECUTORS][PLAN_LANES];
  tide_callback_t *registered[PLAN_EXECUTORS][PLAN_CALLBACKS];
  tide_queue_entry_t *ready[PLAN_EXECUTORS][PLAN_CALLBACKS], *timers[PLAN_EXECUTORS][PLAN_CALLBACKS];
  tide_group_t groups[PLAN_GROUPS];
  tide_queue_entry_t *waiting[PLAN_GROUPS][PLAN_CALLBACKS];
  tide_lock_set_t lock_set;
  tide_lock_t locks[PLAN_LOCKS];
  unsigned inside[PLAN_LOCKS]; /* number of holders */
  uint64_t lock_errors;        /* refused takes, and locks held twice */
  tide_local_pool_t pool;
  void *messages;
  program_callback_t callbacks[PLAN_CALLBACKS];
  program_chain_t chains[PLAN_CHAINS];
  int64_t start_ns;
  uint64_t released[PLAN_CALLBACKS]; /* runs of a timer within the plan's duration */
};

/* Set the lanes' settings before; all memory is allocated here. TIDE_ERROR_FULL: no memory. plan and program must not
 * move. */
int program_init(program_t *program, const plan_t *plan, const program_world_t *world);
/* The first expiry of each timer is at its offset or, without one, a period after start_ns and its share of the spread;
 * the last is before start_ns and the plan's duration. */
void program_start(program_t *program, int64_t start_ns);
/* True if no timer will start an instance and no callback waits or runs. Callable from any thread. */
bool program_is_quiet(const program_t *program);
void program_stop(program_t *program);
/* JSON on standard output. violations: broken rules, a line each, or null. */
void program_print(const program_t *program, const char *on, const char *const *violations, size_t violation_count);
void program_free(program_t *program);

#ifdef __cplusplus
}
#endif
#endif
