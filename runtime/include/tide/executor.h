/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: which callback runs next, and on which lane.
 *
 * TIDE_POLICY_TIDE (PoDS, section 5.1). timer_list is ordered by next expiry, ready_list by priority. A round first
 * moves expired timers from timer_list to ready_list (the head of timer_list shows whether one has expired). Then it
 * processes every received frame that is more urgent than the head of ready_list, and at least one frame of the same
 * priority; this makes the frames' callbacks ready. Finally it runs the head of ready_list. Finding that callback costs
 * O(1) when nothing has become ready, and O(log n) for each callback that has. Only a round with a trigger other than
 * `any` inspects all callbacks.
 *
 * TIDE_POLICY_BATCH (rclc's default executor). A round waits until a received frame, a timer or a guard condition makes
 * a callback ready. It then marks every ready callback, and runs all of them in order of registration. Frames are
 * processed in order of arrival, until one of them makes a callback ready.
 *
 * TIDE_POLICY_READYSET (rclcpp's default executors, as modelled by Sobhani, Choi and Kim, RTAS 2023, section III-A).
 * This policy is the baseline that the tide policy is compared with. Callbacks are taken from a cached set, in the
 * order timers, subscriptions, services, clients, guards, and within a kind in order of registration; priorities have
 * no effect. The set is refreshed at polling points only, that is when a lane finds no callback in it that may run.
 * Then the received frames are processed (at most 64), and every ready callback enters the set once, however often it
 * was notified. A callback that becomes ready afterwards waits for the next polling point; timers are the exception and
 * are added as they expire. A polling point inspects all callbacks within one critical section, like a wait set: O(n).
 *
 * Lanes. A lane runs one callback after the other: a lane is a thread, a task, an interrupt level of a bare Cortex-M,
 * or the only loop of a bare-metal program. Callbacks of one lane never overlap. The lanes of an executor are grouped
 * into bands by the levels that they serve (tide_lane_settings_t.least_level). Each band has its own ready_list and
 * timer_list, and a callback belongs to the band of its level. This gives the following forms, and mixtures of them:
 *
 * - one lane: the cooperative executor of PoDS;
 * - a lane for each band, the more urgent ones with a higher system priority: preemptive. An urgent timer or frame
 *   wakes its own lane, which preempts the callbacks of less urgent bands. The lanes of those bands never handle this
 *   timer or frame;
 * - several lanes in a band: the multi-threaded executor; each lane takes the most urgent callback that may run.
 *
 * Overlap. A callback never overlaps itself, unless it is in a reentrant group. Callbacks of a mutually exclusive
 * group never overlap each other, whatever their lanes (tide_group_t). All other callbacks may overlap as soon as there
 * is more than one lane.
 *
 * Who may call what, with any number of lanes. Any thread or interrupt may call notify, wake, wake_for_frames and stop.
 * Any thread may at any time call the functions of timers, add, remove, set_priority and tide_callback_is_ready.
 * set_trigger may be called from a callback, or while no lane spins; set_policy only while no lane is in a round. With
 * the batch policy, or with a trigger other than `any`, a round inspects all callbacks, so that add and remove, too,
 * may be called only from a callback or while no lane spins.
 *
 * Locks. The platform's critical section guards the lists; it is never held while the program's code runs, except for
 * the visitor of tide_executor_each. On a platform that excludes lanes and interrupts separately
 * (tide_platform_t.lanes_enter), the lists are guarded against lanes only, and interrupts are disabled for a constant
 * time, whatever the number of callbacks. No memory is allocated; callbacks and timers must not move in memory between
 * add and remove. */
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

TIDE_EXTERN_C_BEGIN

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
struct tide_watched_chain;

typedef struct tide_callback {
  tide_queue_entry_t ready_entry; /* in a ready_list or in the queue of its group; must be the first member */
  tide_callback_kind_t kind;
  tide_priority_t priority;
  bool always; /* runs in every triggered round, with or without data (rclc ALWAYS) */
  bool local;  /* subscribed to a local topic (tide/local.h) */
  void (*execute)(struct tide_callback *callback, void *context); /* takes a message, if there is one, and calls the
                                                                     program's function */
  void *context;
  const void *handle;              /* the program's object; the `one` trigger compares with it */
  struct tide_group *group;        /* null: the callback may overlap all others, but not itself */
  tide_measurement_t *measurement; /* null, or the record of the callback's execution times (tide/measure.h); set by the
                                      program while the callback does not run */
  struct tide_watched_chain *begins, *ends; /* the watched chain that the callback begins or ends, or null
                                               (tide/chain_watch.h) */
  bool in_round;                  /* will run in the current round; set by the executor, as are all members below */
  bool in_set;                    /* belongs to the cached set (readyset policy) */
  bool arriving;                  /* is in the list of arrivals */
  uint32_t pending;               /* number of runs that are due; read it with tide_callback_is_ready */
  struct tide_executor *executor; /* set when added */
  struct tide_band *band;         /* the band of its priority */
  uint16_t index;                 /* order of registration */
  uint16_t running;               /* number of lanes that run the callback now */
  struct tide_callback *round_next, *always_next;
  struct tide_callback *arrived_next;
  int64_t arrived_ns; /* time of the latest notification that `arrived` counts */
  uint32_t arrived;   /* notifications that no lane has handled yet, on platforms where interrupts only record them */
  uint64_t runs;
  int64_t ready_since_ns; /* time at which the next run became due: the latest notification, or the timer's expiry */
  int64_t ready_ns, start_ns, end_ns; /* times of the latest run */
  int64_t execution_maximum_ns;       /* longest time from start to end, preemption included */
} tide_callback_t;

/* True when a run is due. It takes no lock, so triggers may call it, and so may any context. */
static inline bool tide_callback_is_ready(const tide_callback_t *callback) {
  return __atomic_load_n(&callback->pending, __ATOMIC_RELAXED) != 0u ||
         __atomic_load_n(&callback->arrived, __ATOMIC_RELAXED) != 0u;
}

/* A timer never runs before its expiry. A late timer runs once for all missed expiries (as in rcl), and expiries stay
 * on the grid that the first expiry and the period define. */
typedef struct tide_timer {
  tide_callback_t callback;        /* first member */
  tide_queue_entry_t expiry_entry; /* in timer_list */
  int64_t period_ns;
  bool canceled;
  int64_t next_ns;      /* next expiry; while the timer is ready, the expiry that made it ready */
  int64_t last_call_ns; /* start of the latest run; before the first run, the time at which the timer was added */
  uint32_t skipped;     /* expiries that were skipped */
  void (*on_expiry)(struct tide_timer *timer, int64_t since_last_call_ns);
} tide_timer_t;

/* Mutually exclusive: at most one callback of the group runs at a time, on any lane. Other callbacks of the group wait
 * in priority order without occupying a lane, and callbacks outside the group run meanwhile. Reentrant: callbacks of
 * the group may overlap, and each may overlap itself when it becomes ready again while it runs.
 *
 * Keep a group within one band if possible. In a group across bands an urgent callback waits until the running, less
 * urgent callback has ended. It also waits for everything that preempts the running callback. The group's most urgent
 * ready callback goes next even while its own lane is busy; the group then waits for that lane. With one lane callbacks
 * never overlap, so groups have no effect.
 *
 * Cost: O(log n) when a callback becomes ready, starts and ends. Memory: a pointer for each callback of the group. */
typedef enum tide_group_kind { TIDE_GROUP_EXCLUSIVE, TIDE_GROUP_REENTRANT } tide_group_kind_t;

typedef struct tide_group {
  tide_group_kind_t kind;
  tide_queue_t waiting;           /* the other ready callbacks of the group, after the offered or running one */
  tide_callback_t *offered;       /* the most urgent ready callback of the group, in the ready_list of its band */
  struct tide_lane *taken_by;     /* the lane that runs a callback of the group, or null */
  struct tide_executor *executor; /* the executor of the group's callbacks */
  size_t members;
} tide_group_t;

/* waiting_storage: an array of `capacity` elements, one for each callback that will be in the group; null for a
 * reentrant group. */
int tide_group_init(tide_group_t *group, tide_group_kind_t kind, tide_queue_entry_t **waiting_storage, size_t capacity);

/* Where received frames come from: the executor's interface to the session. Null functions: no frames. A lane processes
 * only frames with a priority from `least` to `most`. */
typedef struct tide_source {
  void *context;
  /* Priority of the most urgent frame in this range, or TIDE_PRIORITY_NONE. */
  int32_t (*most_urgent)(void *context, tide_priority_t least, tide_priority_t most);
  /* Process the most urgent frame in the range and notify its callback. Several lanes may call it at the same time. */
  int (*process_most_urgent)(void *context, tide_priority_t least, tide_priority_t most);
  int (*process_oldest)(void *context); /* process the oldest of all frames; for the policies batch and readyset */
  int64_t (*poll)(void *context);       /* periodic work; returns the time of the next call. Null: a thread does it. */
  /* Whether the most urgent frame is processed before a callback of the same priority, in addition to the one frame at
   * the start of each round. True while the frame's reader has room, or stores only outdated samples. Null: never. */
  bool (*is_welcome)(void *context, tide_priority_t least, tide_priority_t most);
  /* Sleeps like event_wait of the platform, and may receive frames meanwhile. Null: event_wait is used. */
  int (*wait)(void *context, tide_event_t *event, int64_t deadline_ns);
} tide_source_t;

/* Decides whether the round runs. callbacks: all callbacks of the executor in order of registration; see
 * tide_callback_is_ready. The spinning thread calls it when a callback is ready and readiness may have changed, and
 * when a round times out. The triggers `all` and `one` are called with the callbacks locked, a trigger of the program
 * without a lock. If other threads remove callbacks meanwhile, the program's trigger must use tide_executor_each
 * instead of `callbacks`. While the trigger returns false, the executor sleeps; no message is taken and none is
 * lost. */
typedef bool (*tide_trigger_t)(tide_callback_t *const *callbacks, size_t count, void *object);
bool tide_trigger_any(tide_callback_t *const *callbacks, size_t count, void *object);
bool tide_trigger_all(tide_callback_t *const *callbacks, size_t count, void *object);
bool tide_trigger_one(tide_callback_t *const *callbacks, size_t count, void *object); /* object: the handle */

/* Shared by lanes of the same least_level. Internal to the executor. */
typedef struct tide_band {
  tide_queue_t ready_list, timer_list;
  tide_priority_t least, most; /* priorities of the band's callbacks and frames */
  struct tide_lane *idle;      /* lanes without work, when the band has several */
  struct tide_lane *only;      /* the band's lane, when it has only one */
#if TIDE_PATIENCE
  int64_t patience_ns; /* patience_ns of the executor's configuration */
#endif
} tide_band_t;

typedef struct tide_lane { /* internal to the executor, except members that a port or program sets */
  /* Budget hooks, called before and after each wait of the lane. The port sets the hooks in the lane's thread before
   * the lane runs. Null functions: no budget.
   */
  tide_budget_hooks_t budget;
  /* Set by a port without threads before it runs the lane. A spin then runs one round and returns instead of waiting.
   * `over` says whether the executor was stopped. If it was not stopped, the next round is due when the lane's event is
   * set, or at the time next_round_ns; 0: at once. TIDE_FOREVER: only when the event is set. */
  bool returns;
  bool over;
  uint8_t digesting; /* 1: the lane processes a frame, and looks for work before it sleeps; 2: a wake-up was omitted
                        meanwhile */
  int64_t next_round_ns;
  tide_band_t *band;
  tide_event_t event;
  bool busy;                 /* within a round */
  bool forgotten;            /* the callback that the lane runs was removed meanwhile */
  bool idle, left;           /* idle: waiting in the idle list of its band; left: has left a spin that is ending */
  uint16_t again;            /* 1 + index of the callback that the lane ran last, if that callback is still ready; 0:
                                none */
  int64_t sleeps_until_ns;   /* wake-up time while the lane is idle */
  int64_t since_last_run_ns; /* time since the previous run of the timer that the lane runs */
  tide_callback_t *running;  /* null between callbacks */
  tide_group_t *group;       /* exclusive group of the running callback */
  struct tide_lane *idle_next;
  tide_callback_t *round_first, *round_last; /* callbacks still to run in this round */
  tide_band_t own_band;                      /* used by the first lane of each least_level */
  tide_lane_settings_t settings;             /* set by the program before tide_executor_init */
#if TIDE_TRACE
  tide_trace_ring_t *trace; /* null, or the ring for the lane's records; set by the program before the lane runs */
#endif
} tide_lane_t;

typedef struct tide_executor_config {
  const tide_platform_t *platform;
  tide_policy_t policy;
  tide_callback_t **callbacks;        /* array of callback_count, in order of registration */
  tide_queue_entry_t **ready_storage; /* callback_count elements for each band (each distinct least_level) */
  tide_queue_entry_t **timer_storage; /* as many elements as ready_storage */
  size_t callback_count;
  tide_lane_t *lanes; /* array of lane_count lanes; their settings are set */
  size_t lane_count;  /* 1 or more. Several lanes require the trigger `any`, no callback that is `always`, and a policy
                         other than batch. The readyset policy requires the trigger `any`, no callback that is `always`,
                         and the same least_level for all lanes */
  tide_source_t source;
  /* Only with the batch policy. False: stored samples are dispatched at once. True: as in the stock rmw_wait, a round
   * first waits for a new frame, a timer or guard, its deadline or spin_timeout_ns. It waits even when samples are
   * already stored: samples that were received while a publish waited for its acknowledgment, or that are left because
   * a handle takes one sample in each round. After the wait all stored samples are dispatched. */
  bool batch_waits_for_new_data;
  int64_t spin_timeout_ns; /* longest wait of a round of spin with a trigger other than `any`, and longest wait of
                              batch_waits_for_new_data; 0: 1 s, as in rclc */
  /* Called by the lane around each callback, for traces and measurements; may be null. */
  void (*on_start)(void *context, tide_callback_t *callback, int64_t now_ns);
  void (*on_end)(void *context, tide_callback_t *callback, int64_t now_ns);
  void *context;
  tide_measure_t *measure; /* clock for the execution times of the callbacks (tide/measure.h); may be null */
#if TIDE_PATIENCE
  /* Has an effect only with several lanes in one band, the tide policy and no source of frames. A callback made ready
   * by tide_executor_notify_from may wait this long for a lane that becomes free by itself. Usually the notifying lane
   * is the first to be free, so no lane has to be woken. One idle lane then wakes at the next expiry of a timer, and
   * the others patience_ns later. 0: all wake at each expiry, and a notification always wakes an idle lane. */
  int64_t patience_ns;
#endif
} tide_executor_config_t;

typedef struct tide_executor_counters {
  uint64_t rounds, callbacks_run, frames_digested, timers_expired, sleeps, trigger_false;
  /* Number of updates of the set of ready callbacks: how often a lane looked for newly ready callbacks and found one. A
   * wait counts as one update, as wait_for_work of rclcpp does. The readyset policy updates the set at polling points.
   * The tide policy updates it at each choice, as in section V-C of Sobhani, Choi and Kim (RTAS 2023), unless no update
   * is needed. Without a source, a notified callback is in the set at once, so a lane takes the head of the set while
   * no timer is due. A round of several callbacks counts as one update. */
  uint64_t set_updates;
} tide_executor_counters_t;

typedef struct tide_executor {
  size_t band_count;
  int64_t next_stamp;  /* order among callbacks of the same priority */
  size_t count;        /* callbacks registered */
  size_t ready_count;  /* callbacks with pending > 0 */
  size_t prompt_count; /* ready callbacks that need no frame: timers, guard conditions and subscriptions to local
                        * topics */
  uint32_t notifications;
  tide_callback_t *always_list;
  tide_callback_t *arrivals, *arrivals_last; /* the callbacks that were notified and that no lane has handled yet */
  bool splits;                               /* the platform excludes lanes and interrupts separately */
  uintptr_t (*enter)(void *context);         /* locks the lists against lanes and threads */
  void (*exit)(void *context, uintptr_t state);
  tide_trigger_t trigger;
  void *trigger_object;
  bool stopped;
  bool trigger_is_ours;  /* the trigger is `all` or `one`, which are called with the callbacks locked */
  bool all_frames_first; /* with the tide policy and a trigger other than `any`: all received frames are processed
                            before a round begins, whatever their priority; set between rounds */
  tide_executor_config_t config;
  tide_executor_counters_t counters;
} tide_executor_t;

/* TIDE_ERROR_UNSUPPORTED: the policy or the build options do not allow these lanes, or two of them share a band on a
 * platform that has lanes_enter. */
int tide_executor_init(tide_executor_t *executor, const tide_executor_config_t *config);
/* Set the trigger; null selects tide_trigger_any, the default. With another trigger, a round whose trigger returns true
 * runs every ready callback once, most urgent first (tide) or in order of registration (batch). Callbacks that become
 * ready meanwhile wait for the next round. TIDE_ERROR_UNSUPPORTED: a trigger other than `any`, and the executor has
 * several lanes or the readyset policy, or the runtime is lean. */
int tide_executor_set_trigger(tide_executor_t *executor, tide_trigger_t trigger, void *object);

/* Change the policy; ready callbacks stay ready. TIDE_ERROR_STATE: a lane is in a round, as during every callback.
 * TIDE_ERROR_UNSUPPORTED: see tide_executor_config_t.lane_count. */
int tide_executor_set_policy(tide_executor_t *executor, tide_policy_t policy);

/* Take a snapshot of the counters. Any thread may call it. */
void tide_executor_get_counters(tide_executor_t *executor, tide_executor_counters_t *counters);
/* Take a snapshot of the measurement (tide/measure.h) of the callback with this index (from 0). Any thread may call it.
 * Returns 1 if the callback has a measurement, else 0. TIDE_ERROR_NOT_FOUND: no callback has this index. */
int tide_executor_get_measurement(tide_executor_t *executor, size_t place, tide_measurement_t *measurement);
/* Take a snapshot of the number of runs and of the longest run of one of the executor's callbacks, preemption included.
 * Both are 0 in a lean runtime. Any thread may call it. */
void tide_executor_get_execution(tide_executor_t *executor, const tide_callback_t *callback, uint64_t *runs,
                                 int64_t *longest_ns);

/* Add a callback. The caller sets kind, priority, always, execute, context, handle, group and measurement, and zeroes
 * the rest. A group belongs to the executor of its first callback. If the trigger is `any` and some callbacks are
 * `always`, a round of the tide policy runs the most urgent ready callback and all always callbacks, most urgent first.
 * O(lanes). TIDE_ERROR_FULL: the executor or the group is full. TIDE_ERROR_EXISTS: added already. TIDE_ERROR_ARGUMENT:
 * the group belongs to another executor. TIDE_ERROR_UNSUPPORTED: the callback is `always`, and the executor has several
 * lanes or the readyset policy, or the runtime is lean. */
int tide_executor_add(tide_executor_t *executor, tide_callback_t *callback);
/* Add a timer; its first expiry is one period from now. The caller sets period_ns (1 or more), on_expiry and
 * callback.priority, and optionally callback.context and callback.handle; this call sets the rest. */
int tide_executor_add_timer(tide_executor_t *executor, tide_timer_t *timer);
/* Remove a callback: it does not start any more. A callback may remove itself. Its memory may be reused when its
 * execute has returned: tide_executor_is_running is then false, and on_end has been called. O(n). TIDE_ERROR_NOT_FOUND:
 * the callback is not in this executor. */
int tide_executor_remove(tide_executor_t *executor, tide_callback_t *callback);
/* Like tide_executor_remove, but refused while a lane runs the callback (TIDE_ERROR_STATE). */
int tide_executor_remove_idle(tide_executor_t *executor, tide_callback_t *callback);
/* Calls visit for each callback, in order of registration, with the callbacks locked. Keep visit short, and do not call
 * the executor from it. O(callbacks). */
void tide_executor_each(tide_executor_t *executor, void (*visit)(tide_callback_t *callback, void *context),
                        void *context);
/* The callback with this index (from 0), or null. Indices follow the order of registration: a removal moves later
 * callbacks down. O(1). */
tide_callback_t *tide_executor_callback_at(tide_executor_t *executor, size_t index);
/* True while a lane runs the callback. O(lanes). */
bool tide_executor_is_running(tide_executor_t *executor, const tide_callback_t *callback);
/* Set a callback's priority and move it to that priority's band. A run that has begun stays on its lane. O(log n).
 * TIDE_ERROR_NOT_FOUND: the callback is not in this executor. */
int tide_executor_set_priority(tide_executor_t *executor, tide_callback_t *callback, tide_priority_t priority);

/* Functions of timers. Any thread may call them, also within a callback; O(log n). Reset, cancel and set_phase also
 * withdraw an expiry whose callback has not run yet. TIDE_ERROR_STATE: the timer is in no executor. */
int tide_timer_reset(tide_timer_t *timer); /* next expiry one period from now; ends a cancellation */
int tide_timer_cancel(tide_timer_t *timer);
int tide_timer_set_period(tide_timer_t *timer, int64_t period_ns); /* applies from the next expiry on */
int tide_timer_set_phase(tide_timer_t *timer,
                         int64_t first_expiry_ns); /* absolute time of the next expiry; ends a cancellation */
/* Time to the next expiry. Negative: overdue by that much. TIDE_FOREVER: canceled, or in no executor. */
int64_t tide_timer_until_next_ns(const tide_timer_t *timer, int64_t now_ns);

/* Make a callback ready once more: n notifications give n runs (with batch, one per round). Wakes its lane, or an idle
 * lane of its band. Any thread or interrupt may call it. O(log n), or O(1) on platforms that exclude lanes and
 * interrupts separately. It has no effect when the callback is in no executor. */
void tide_executor_notify(tide_callback_t *callback);
/* Like tide_executor_notify, but called from a callback, in the thread of the lane that runs it. With TIDE_PATIENCE
 * (tide/options.h) and the tide policy, the only lane of a band is not woken for callbacks that its own callback makes
 * ready, because the lane looks for work before it sleeps. For several lanes see patience_ns. */
void tide_executor_notify_from(tide_callback_t *callback, size_t lane);
/* Wake a lane of each band for which frames have been received. */
void tide_executor_wake_for_frames(tide_executor_t *executor);
/* Wake all lanes without making a callback ready. */
void tide_executor_wake(tide_executor_t *executor);

/* Run one round of an executor with one lane: wait until deadline_ns for a ready callback, then run one callback (tide
 * policy) or one batch (batch policy). Returns the number of callbacks run; 0: stopped while idle. TIDE_ERROR_TIMEOUT:
 * the deadline passed first. TIDE_ERROR_STATE: called within a callback, or while another thread runs a round.
 * TIDE_ERROR_UNSUPPORTED: several lanes. */
int tide_executor_round(tide_executor_t *executor, int64_t deadline_ns);
/* Like tide_executor_round, for one of several lanes; only one thread at a time may run a lane. */
int tide_executor_lane_round(tide_executor_t *executor, size_t lane, int64_t deadline_ns);
/* Run rounds until tide_executor_stop. Returns TIDE_OK, or an error of tide_executor_round. */
int tide_executor_spin(tide_executor_t *executor);
/* Like tide_executor_spin, for one of several lanes; with tide_lane_t.returns, one round only. Each lane needs its own
 * thread that spins it: callbacks of a band without a spinning lane wait. tide_port_run_lanes starts all lanes. */
int tide_executor_spin_lane(tide_executor_t *executor, size_t lane);
/* End spin on every lane, after the running callback (or batch). A stop before spin ends the next spin at once. A spin
 * of several lanes has ended when all lanes have left. Any thread or interrupt may call it. */
void tide_executor_stop(tide_executor_t *executor);

/* ---- hosts: programs with a heap and an unknown number of callbacks ---- */

/* Replace the storage by larger storage, laid out as in tide_executor_config_t, for callback_count callbacks. The
 * contents are moved, and the old storage belongs to the caller again. Any thread may call it at any time.
 * O(callbacks), with the lists locked. TIDE_ERROR_ARGUMENT: smaller than before, or more than 65535. */
int tide_executor_grow(tide_executor_t *executor, tide_callback_t **callbacks, tide_queue_entry_t **ready_storage,
                       tide_queue_entry_t **timer_storage, size_t callback_count);
/* Like tide_executor_grow, for a mutually exclusive group of the executor's callbacks; storage as in tide_group_init.
 */
int tide_group_grow(tide_executor_t *executor, tide_group_t *group, tide_queue_entry_t **waiting_storage,
                    size_t capacity);
/* Time of the earliest expiry of all bands; TIDE_FOREVER: there is none. O(lanes). It is meant for a thread that runs
 * the rounds of all lanes itself. */
int64_t tide_executor_next_expiry_ns(tide_executor_t *executor);
/* Number of runs that are due now: one for each notification, and one for each expired timer. O(callbacks). */
size_t tide_executor_count_starts(tide_executor_t *executor, int64_t now_ns);

/* ---- chains ---- */

/* A chain: its level and the number of its callbacks, which are added in the order of the data flow. Period and
 * deadline have an effect only with tide_chain_watch (tide/chain_watch.h), which counts late and missing instances. */
typedef struct tide_chain {
  const char *name;
  uint8_t level;          /* 1..TIDE_LEVEL_MAXIMUM; larger is more urgent */
  uint16_t length;        /* callbacks assigned so far */
  uint16_t remote_before; /* positions taken by callbacks on other machines so far */
  int64_t period_ns, deadline_ns;
} tide_chain_t;

int tide_chain_init(tide_chain_t *chain, const char *name, uint8_t level, int64_t period_ns, int64_t deadline_ns);
/* Add the next callback of the chain and set its priority by the chain-aware rule (PiCAS, Choi et al. 2021, Algorithm
 * 1; PoDS, section 4.2): callbacks later in a chain are more urgent. A callback in several chains keeps the highest of
 * its priorities. Returns the position, from 0. TIDE_ERROR_FULL: the chain has 256 callbacks already. */
int tide_chain_add(tide_chain_t *chain, tide_callback_t *callback);
/* Add a callback that runs on another machine. Returns its position in the chain. */
int tide_chain_add_remote(tide_chain_t *chain);

TIDE_EXTERN_C_END
#endif
