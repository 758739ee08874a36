/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: which callback runs next, and on which lane.
 *
 * TIDE_POLICY_TIDE (PoDS, section 5.1): timer_list is ordered by next expiry, ready_list by priority. A round is: move
 * the timers that are due to ready_list (one look at the head tells whether there is one), take note of newly received
 * frames, digest the most urgent one if nothing more urgent is ready, run the head of ready_list. Collection is O(1)
 * when nothing happened and O(log n) for each callback that became ready; no round looks at all handles.
 *
 * TIDE_POLICY_BATCH (rclc's default executor): a round waits for one received packet or a timer, marks every ready
 * handle, and runs all of them in order of registration; packets first come, first served, one a round.
 *
 * TIDE_POLICY_READYSET (rclcpp's default executors, as modelled by Sobhani, Choi and Kim, RTAS 2023, section III-A; the
 * baseline that the tide policy is compared with): callbacks are taken from a cached set, in the order timers,
 * subscriptions, services, clients, guards, and within a kind in order of registration; priorities do nothing. The set
 * is refreshed at polling points only: when a lane finds nothing in it that may run. Then all frames are digested, and
 * every callback that is ready gets a place, one, however often it is ready. What becomes ready afterwards waits for
 * the next polling point, but for timers, which are added as they expire. A polling point looks at all callbacks within
 * one critical section, as a wait set does: O(n).
 *
 * A lane runs one callback after the other: a thread, a task, or the only loop of a bare-metal program. Callbacks of
 * one lane never overlap. The lanes of an executor are grouped into bands by the levels that they serve
 * (tide_lane_settings_t.least_level); each band has a ready_list and a timer_list of its own, and a callback belongs to
 * the band of its level. So there are these forms, and mixtures of them:
 * - one lane: the cooperative executor of the paper;
 * - a lane for each band, more urgent ones with a higher priority of the system: preemptive. An urgent timer or frame
 *   wakes its own lane, which preempts whatever less urgent callback runs; no less urgent lane ever touches it;
 * - several lanes in a band: the multi-threaded executor; each lane takes the most urgent callback that may run.
 *
 * A callback never overlaps itself, unless it is in a reentrant group; callbacks of a mutually exclusive group never
 * overlap each other, whatever their lanes (tide_group_t). All others do, as soon as there is more than one lane.
 *
 * Who may call what, with any number of lanes: from any thread or interrupt notify, wake, wake_for_frames and stop;
 * from any thread the functions of timers, add, remove, set_priority and tide_callback_is_ready, whatever runs at the
 * time. From a callback, or while nothing spins: set_trigger, set_policy, and, with the batch policy or a trigger other
 * than any, which look at all callbacks, add and remove. The lists are guarded by the platform's
 * critical section, which is never held while the program's code runs; or, where the platform keeps out lanes and
 * interrupts apart (tide_platform_t.lanes_enter), by the one against lanes: then interrupts are kept out for a constant
 * time, whatever the number of callbacks. No memory is allocated; callbacks and timers
 * stay where they are from add to remove. */
#ifndef TIDE_EXECUTOR_H
#define TIDE_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/budget.h"
#include "tide/lane.h"
#include "tide/measure.h"
#include "tide/platform.h"
#include "tide/priority.h"
#include "tide/queue.h"
#if TIDE_TRACE
#include "tide/trace.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_policy { TIDE_POLICY_TIDE, TIDE_POLICY_BATCH, TIDE_POLICY_READYSET } tide_policy_t;

typedef enum tide_callback_kind {
  TIDE_CALLBACK_TIMER,
  TIDE_CALLBACK_SUBSCRIPTION,
  TIDE_CALLBACK_SERVICE,
  TIDE_CALLBACK_CLIENT,
  TIDE_CALLBACK_GUARD
} tide_callback_kind_t;

struct tide_executor;
struct tide_band;
struct tide_group;

typedef struct tide_callback {
  tide_queue_entry_t ready_entry; /* in a ready_list or in its group; first member */
  tide_callback_kind_t kind;
  tide_priority_t priority;
  bool always; /* runs in every triggered round, with or without data (rclc ALWAYS) */
  bool local;  /* subscribed to a local topic (tide/local.h) */
  void (*execute)(struct tide_callback *callback, void *context); /* takes one message (if any) and runs the program's
                                                                     function */
  void *context;
  const void *handle;              /* the program's object: what the `one` trigger and compat compare with */
  struct tide_group *group;        /* null: overlaps all but itself */
  tide_measurement_t *measurement; /* null, or where its execution times go (tide/measure.h); set by the program, while
                                      it does not run */
  bool in_round;    /* has a place in the round that is running; this and what follows is the executor's */
  bool in_set;      /* readyset: has a place in the set */
  bool arriving;    /* in the list of arrivals */
  uint32_t pending; /* times it became ready and has not run; read it with tide_callback_is_ready */
  struct tide_executor *executor; /* set when added */
  struct tide_band *band;         /* that its priority belongs to */
  uint16_t index;                 /* order of registration */
  uint16_t running;               /* lanes that run it */
  struct tide_callback *round_next, *always_next;
  struct tide_callback *arrived_next;
  int64_t arrived_ns; /* latest of these: */
  uint32_t arrived;   /* notifies that no lane has looked at yet, where interrupts only note them */
  uint64_t runs;
  int64_t ready_since_ns;             /* of the run to come: time of the latest notify; of a timer, its expiry */
  int64_t ready_ns, start_ns, end_ns; /* of its latest run */
  int64_t execution_maximum_ns;       /* from start to end, whoever ran in between */
} tide_callback_t;

/* For triggers: lock-free, from any context. */
static inline bool tide_callback_is_ready(const tide_callback_t *callback) {
  return __atomic_load_n(&callback->pending, __ATOMIC_RELAXED) != 0u ||
         __atomic_load_n(&callback->arrived, __ATOMIC_RELAXED) != 0u;
}

/* Expiries that a late timer has not run for: one run answers for all that passed before it starts, or each has one.
 * Either way a timer never runs before its expiry, and expiries stay on the grid of first expiry and period. */
typedef enum tide_overrun {
  TIDE_OVERRUN_SKIP,    /* expiries that passed unseen are skipped, the grid is kept (as rcl) */
  TIDE_OVERRUN_CATCH_UP /* each of them runs, back to back */
} tide_overrun_t;

typedef struct tide_timer {
  tide_callback_t callback;        /* first member */
  tide_queue_entry_t expiry_entry; /* in timer_list */
  int64_t period_ns;
  tide_overrun_t overrun;
  bool canceled;
  int64_t next_ns;      /* next expiry; while the timer is ready, the one that made it so */
  int64_t last_call_ns; /* start of the previous run, or of the timer */
  uint32_t skipped;     /* expiries that were skipped */
  void (*on_expiry)(struct tide_timer *timer, int64_t since_last_call_ns);
} tide_timer_t;

/* Mutually exclusive: at most one of its callbacks runs at a time, on whichever lane; the others wait in the order of
 * urgency without keeping a lane busy, and anything else that is eligible runs meanwhile. Reentrant: its callbacks
 * overlap, and each of them itself, too, when it becomes ready again while it runs.
 *
 * Cost: O(log n) when a callback becomes ready, starts and ends; nothing sweeps. Memory: a pointer for each callback of
 * the group. A group whose callbacks belong to different bands makes the urgent ones wait until the less urgent one
 * that runs has ended, and meanwhile for all that preempts that one; and the most urgent that is ready goes next even
 * while its lane is busy with something else: keep a group within a band if you can. With one
 * lane nothing overlaps anyway, and groups change nothing. */
typedef enum tide_group_kind { TIDE_GROUP_EXCLUSIVE, TIDE_GROUP_REENTRANT } tide_group_kind_t;

typedef struct tide_group {
  tide_group_kind_t kind;
  tide_queue_t waiting;           /* ready, behind the one that is offered or runs */
  tide_callback_t *offered;       /* the most urgent one, in the ready_list of its band */
  struct tide_lane *taken_by;     /* that runs one */
  struct tide_executor *executor; /* of its callbacks */
  size_t members;
} tide_group_t;

/* waiting_storage: capacity places, one for each callback that will be in the group; null for a reentrant one. */
int tide_group_init(tide_group_t *group, tide_group_kind_t kind, tide_queue_entry_t **waiting_storage, size_t capacity);

/* Where received frames come from: the session, seen from the executor. Null functions: no frames. A lane asks for
 * those that it should digest: with a priority from `least` to `most`. */
typedef struct tide_source {
  void *context;
  /* Priority of the most urgent undigested frame of these, or TIDE_PRIORITY_NONE. */
  int32_t (*most_urgent)(void *context, tide_priority_t least, tide_priority_t most);
  /* Digest it; notifies callbacks. From several lanes at the same time, if there are several. */
  int (*process_most_urgent)(void *context, tide_priority_t least, tide_priority_t most);
  int (*process_oldest)(void *context); /* of all; for the policies batch and readyset */
  int64_t (*poll)(void *context);       /* housekeeping; returns its next deadline. Null when a thread does it. */
} tide_source_t;

/* True: the round runs. callbacks: all of them in order of registration; see tide_callback_is_ready. Called by the
 * thread that spins, without a lock: when something is ready and something may have changed, and when the time of a
 * round is over. While it is false nothing is taken and nothing is lost, and the executor sleeps. */
typedef bool (*tide_trigger_t)(tide_callback_t *const *callbacks, size_t count, void *object);
bool tide_trigger_any(tide_callback_t *const *callbacks, size_t count, void *object);
bool tide_trigger_all(tide_callback_t *const *callbacks, size_t count, void *object);
bool tide_trigger_one(tide_callback_t *const *callbacks, size_t count, void *object); /* object: the handle */
bool tide_trigger_always(tide_callback_t *const *callbacks, size_t count, void *object);

/* What lanes of the same least_level share. The executor's own. */
typedef struct tide_band {
  tide_queue_t ready_list, timer_list;
  tide_priority_t least, most; /* priorities of its callbacks and frames */
  struct tide_lane *idle;      /* lanes that have found nothing to do, when it has several lanes */
  struct tide_lane *only;      /* its lane, when it has one */
} tide_band_t;

typedef struct tide_lane { /* all but its settings is the executor's */
  /* Called around its waits; set by the port, in the lane's thread, before it runs. Null functions: no budget. */
  tide_budget_hooks_t budget;
  /* Set by a port without threads before it runs the lane: a spin of it never waits, it takes one round of what is
   * there and returns. Then `over` tells whether the stop has come, and otherwise next_round_ns when the lane wants the
   * next round: 0: at once; a time: then, or at its event; TIDE_FOREVER: at its event. */
  bool returns;
  bool over;
  int64_t next_round_ns;
  tide_band_t *band;
  tide_event_t event;
  bool busy;                 /* within a round */
  bool forgotten;            /* what it runs was removed meanwhile */
  bool idle, left;           /* waits among the idle lanes of its band; has left a spin that ends */
  int64_t sleeps_until_ns;   /* while it is idle */
  int64_t since_last_run_ns; /* of the timer that it runs */
  tide_callback_t *running;  /* null between callbacks */
  tide_group_t *group;       /* exclusive, of the callback that it runs */
  struct tide_lane *idle_next;
  tide_callback_t *round_first, *round_last; /* still to run in this round, when it runs more than one */
  tide_band_t own_band;                      /* of the lanes that share its level, when it is the first of them */
  tide_lane_settings_t settings;             /* set by the program before tide_executor_init */
#if TIDE_TRACE
  tide_trace_ring_t *trace; /* null, or where its records go; set by the program before the lane runs */
#endif
} tide_lane_t;

typedef struct tide_executor_config {
  const tide_platform_t *platform;
  tide_policy_t policy;
  tide_callback_t **callbacks;        /* callback_count places, in order of registration */
  tide_queue_entry_t **ready_storage; /* callback_count places for each band, that is for each different least_level */
  tide_queue_entry_t **timer_storage; /* as many */
  size_t callback_count;
  tide_lane_t *lanes; /* with their settings */
  size_t lane_count;  /* 1 or more. More than one: not with batch, the trigger is any, no callback is always. Readyset:
                         all of one least_level, trigger any, no always */
  tide_source_t source;
  /* batch only. False: samples that are already stored are dispatched at once. True: as the stock rmw_wait does, a
   * round first waits for a new frame, a timer or guard, its deadline or spin_timeout_ns, whichever is first, even
   * when samples were stored outside such a wait (while a publish waited for its acknowledgment, or because a handle
   * takes one sample a round); then all that is stored is dispatched. */
  bool batch_waits_for_new_data;
  int64_t spin_timeout_ns; /* longest wait of a round of spin with a trigger other than any, and of the wait above;
                              0: 1 s, as rclc */
  /* Called around each callback by its lane, for traces and measurements; may be null. */
  void (*on_start)(void *context, tide_callback_t *callback, int64_t now_ns);
  void (*on_end)(void *context, tide_callback_t *callback, int64_t now_ns);
  void *context;
  tide_measure_t *measure; /* of its callbacks' execution times (tide/measure.h); may be null */
} tide_executor_config_t;

typedef struct tide_executor_counters {
  uint64_t rounds, callbacks_run, frames_digested, timers_expired, sleeps, trigger_false;
  /* Updates of the set of ready callbacks: times that a lane asked what had become ready and found something; a wait
   * with what is asked around it is one, as wait_for_work of rclcpp is. With readyset at polling points. With tide for
   * each choice (the ReadySet updates of the multi-threaded executors' paper, section V-C: there they are as many as
   * rounds), but for those that need none: without a source, what is notified is in the set at once, so a choice while
   * no expiry is due takes the head of the set and asks nobody. With several callbacks a round, one. */
  uint64_t set_updates;
} tide_executor_counters_t;

typedef struct tide_executor {
  size_t band_count;
  int64_t next_stamp;  /* order among callbacks of the same priority */
  size_t count;        /* callbacks registered */
  size_t ready_count;  /* callbacks with pending > 0 */
  size_t prompt_count; /* those of them that need no frame: timers and guards */
  uint32_t notifications;
  tide_callback_t *always_list;
  tide_callback_t *arrivals, *arrivals_last; /* notified, and no lane has looked at them yet */
  bool splits;                               /* the platform keeps out lanes and interrupts apart */
  uintptr_t (*enter)(void *context);         /* and threads: the lock of what follows */
  void (*exit)(void *context, uintptr_t state);
  tide_trigger_t trigger;
  void *trigger_object;
  bool stopped;
  bool all_frames_first; /* tide, with another trigger than any: a round begins when the frames that are there are
                            digested, whatever their priority; set between rounds */
  tide_executor_config_t config;
  tide_executor_counters_t counters;
} tide_executor_t;

/* TIDE_ERROR_UNSUPPORTED: lanes that the policy, the options or (two of one band) the platform cannot have. */
int tide_executor_init(tide_executor_t *executor, const tide_executor_config_t *config);
/* Default, and null: any. TIDE_ERROR_UNSUPPORTED: another one with several lanes. With another trigger than any, a
 * round that triggers runs every ready callback once, most urgent first (tide) or in order of registration (batch);
 * what becomes ready meanwhile is for the next round. */
int tide_executor_set_trigger(tide_executor_t *executor, tide_trigger_t trigger, void *object);

/* Change the policy; what is ready stays ready. TIDE_ERROR_STATE within a round, TIDE_ERROR_UNSUPPORTED: see
 * tide_executor_config_t.lane_count. */
int tide_executor_set_policy(tide_executor_t *executor, tide_policy_t policy);

/* A snapshot, from any thread. */
void tide_executor_get_counters(tide_executor_t *executor, tide_executor_counters_t *counters);

/* kind, priority, always, execute, context, handle, group and measurement are set by the caller; the rest is zeroed
 * here. TIDE_ERROR_FULL (the executor or the group), TIDE_ERROR_EXISTS, TIDE_ERROR_UNSUPPORTED (always, with several
 * lanes or readyset). A group belongs to the executor of its first callback. O(lanes). With always callbacks and
 * trigger any, a round of the tide policy runs the most urgent ready callback and all always callbacks, most urgent
 * first. */
int tide_executor_add(tide_executor_t *executor, tide_callback_t *callback);
/* The timer's first expiry is one period from now. period_ns (1 or more), overrun, on_expiry and callback.priority
 * are set, callback.context and callback.handle as wanted; the rest is set here. */
int tide_executor_add_timer(tide_executor_t *executor, tide_timer_t *timer);
/* It does not start any more. Also from a callback, of itself too; its memory is free once its execute has returned,
 * that is when tide_executor_is_running is false (and on_end has been called). O(n). TIDE_ERROR_NOT_FOUND. */
int tide_executor_remove(tide_executor_t *executor, tide_callback_t *callback);
/* The same, but nothing happens while a lane runs it: TIDE_ERROR_STATE. */
int tide_executor_remove_idle(tide_executor_t *executor, tide_callback_t *callback);
/* Whether a lane runs it now. O(lanes). */
bool tide_executor_is_running(tide_executor_t *executor, const tide_callback_t *callback);
/* Moves it to the band of the priority; a run that has begun stays on its lane. O(log n). */
int tide_executor_set_priority(tide_executor_t *executor, tide_callback_t *callback, tide_priority_t priority);

/* O(log n), from callbacks too. Reset, cancel and set_phase also take back an expiry that has not run yet. */
int tide_timer_reset(tide_timer_t *timer); /* next expiry: one period from now; un-cancels */
int tide_timer_cancel(tide_timer_t *timer);
int tide_timer_set_period(tide_timer_t *timer, int64_t period_ns); /* from the next expiry on */
int tide_timer_set_phase(tide_timer_t *timer,
                         int64_t first_expiry_ns); /* absolute time of the next expiry; un-cancels */
/* Negative: overdue by so much. TIDE_FOREVER: canceled. */
int64_t tide_timer_until_next_ns(const tide_timer_t *timer, int64_t now_ns);

/* A callback became ready once more: n times notified, n times run (with batch, once a round). From any thread or
 * interrupt; O(log n), where lanes and interrupts are kept out apart O(1); wakes the lane it belongs to, or one that is
 * idle. Nothing happens when the callback is in no executor. */
void tide_executor_notify(tide_callback_t *callback);
/* Frames have arrived: wake the lanes that they belong to, and no others. */
void tide_executor_wake_for_frames(tide_executor_t *executor);
/* Wake all lanes without making anything ready (state changed). */
void tide_executor_wake(tide_executor_t *executor);

/* One round of an executor with one lane: waits until deadline_ns for something to do, then runs one callback (tide) or
 * one batch (batch). Returns the number of callbacks run, 0 when stopped while idle, TIDE_ERROR_TIMEOUT when the
 * deadline passed first, TIDE_ERROR_STATE from within a callback or another thread's round, TIDE_ERROR_UNSUPPORTED with
 * several lanes. */
int tide_executor_round(tide_executor_t *executor, int64_t deadline_ns);
/* The same of one lane; each lane by one thread at a time. */
int tide_executor_lane_round(tide_executor_t *executor, size_t lane, int64_t deadline_ns);
/* Rounds until tide_executor_stop. TIDE_OK, or an error as above. */
int tide_executor_spin(tide_executor_t *executor);
/* The same of one lane; or one round of it (tide_lane_t.returns). Every lane has to be spun, each by a thread of its
 * own: what belongs to the band of a lane that is not spun waits. A port starts all of them: tide_port_run_lanes. */
int tide_executor_spin_lane(tide_executor_t *executor, size_t lane);
/* From any thread or interrupt. Ends spin after the callback (the batch) that is running, on every lane; one that comes
 * before spin ends the next spin at once. The end of a spin of several lanes is when all have left. */
void tide_executor_stop(tide_executor_t *executor);

/* ---- hosts: programs that have a heap, and do not know beforehand how many callbacks there will be ---- */

/* More places, from any thread, whatever runs: storage as in tide_executor_config_t, for callback_count callbacks. What
 * is there moves over, and the former storage is the caller's again. O(callbacks), within the lock of the lanes.
 * TIDE_ERROR_ARGUMENT: fewer places than before, or more than 65535. */
int tide_executor_grow(tide_executor_t *executor, tide_callback_t **callbacks, tide_queue_entry_t **ready_storage,
                       tide_queue_entry_t **timer_storage, size_t callback_count);
/* The same of a mutually exclusive group of the executor's callbacks, as in tide_group_init. */
int tide_group_grow(tide_executor_t *executor, tide_group_t *group, tide_queue_entry_t **waiting_storage,
                    size_t capacity);
/* Time of the earliest expiry of all bands; TIDE_FOREVER: no timer waits. O(lanes). For a thread that does the rounds
 * of all lanes itself, one after the other. */
int64_t tide_executor_next_expiry_ns(tide_executor_t *executor);
/* Starts that are due at this time: what was notified, and one for each timer whose expiry has come. O(callbacks). */
size_t tide_executor_count_starts(tide_executor_t *executor, int64_t now_ns);

/* ---- chains ---- */

/* Callbacks of this executor in data-dependency order, and the chain's level. */
typedef struct tide_chain {
  const char *name;
  uint8_t level;          /* 1..TIDE_LEVEL_MAXIMUM; larger is more urgent */
  uint16_t length;        /* callbacks assigned so far */
  uint16_t remote_before; /* positions on other machines assigned so far */
  int64_t period_ns, deadline_ns;
} tide_chain_t;

int tide_chain_init(tide_chain_t *chain, const char *name, uint8_t level, int64_t period_ns, int64_t deadline_ns);
/* The chain-aware rule (PiCAS, Choi et al. 2021, Algorithm 1; PoDS, section 4.2): later in a chain is more urgent. A
 * callback that belongs to several chains keeps the highest of its priorities. Returns the position, from 0;
 * TIDE_ERROR_FULL after 256. */
int tide_chain_add(tide_chain_t *chain, tide_callback_t *callback);
/* A callback of the chain that runs on another machine: takes a position, which is returned. */
int tide_chain_add_remote(tide_chain_t *chain);

#ifdef __cplusplus
}
#endif
#endif
