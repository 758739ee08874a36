/* SPDX-License-Identifier: Apache-2.0 */
/* Executors: which callback runs next, on which lane (tide/executor.h describes the policies).
 *
 * There are two locks. lock_lists() excludes lanes and threads; mask(), the critical section, also excludes interrupts.
 * On most platforms the two are the same. Where they differ (splits), an interrupt changes only the list of arrivals,
 * so work that grows with the number of callbacks needs only lock_lists(). The functions up to "running a callback" are
 * called with the lists locked, unless their comment says otherwise. */
#include "tide/executor.h"

#include <string.h>

#include "exec.h"
#include "tide/chain_watch.h"
#include "tide/invariant.h"
#include "tide/status.h"

/* With a single context the order of stores cannot be observed. */
#define ACQUIRE (TIDE_SINGLE_CONTEXT ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE)
#define RELEASE (TIDE_SINGLE_CONTEXT ? __ATOMIC_RELAXED : __ATOMIC_RELEASE)

#define DEFAULT_SPIN_TIMEOUT_NS INT64_C(1000000000)
/* Most frames that a round processes after its deadline, or before callbacks of the same priority. */
#define DIGESTS_WHEN_LATE 64u
#define FRAMES_A_POLL 64u /* readyset: frames processed at one polling point; a flood continues at the next */
#define SWEEP 16u         /* batch: handles swept in one critical section */
#define STAMP_BITS 47     /* bits of the order of arrival: enough for 4 years at a million callbacks a second */
#define INDEX_BITS 16

_Static_assert(offsetof(tide_callback_t, ready_entry) == 0u, "callback_of casts");
_Static_assert(offsetof(tide_timer_t, callback) == 0u, "timer_of casts");
_Static_assert(STAMP_BITS + 8u * sizeof(tide_priority_t) <= 63u, "priority and order share a positive key");
_Static_assert(sizeof(((tide_callback_t *)0)->index) * 8u == INDEX_BITS, "the key of readyset holds kind and index");
_Static_assert(TIDE_CALLBACK_TIMER < TIDE_CALLBACK_SUBSCRIPTION && TIDE_CALLBACK_SUBSCRIPTION < TIDE_CALLBACK_SERVICE &&
                   TIDE_CALLBACK_SERVICE < TIDE_CALLBACK_CLIENT && TIDE_CALLBACK_CLIENT < TIDE_CALLBACK_GUARD,
               "the order of the kinds is rclcpp's order of execution");
_Static_assert(offsetof(tide_lane_t, settings) + sizeof(tide_lane_settings_t) <= sizeof(tide_lane_t),
               "everything before the settings is the executor's, which clears it");
_Static_assert(TIDE_LEVEL_MAXIMUM <= UINT8_MAX, "a level of a lane has eight bits");

static inline uintptr_t lock_lists(const tide_executor_t *executor) {
#if TIDE_SINGLE_CONTEXT
  (void)executor;
  return 0;
#elif TIDE_STATIC_PLATFORM
  (void)executor;
  return tide_static_lanes_enter();
#else
  return executor->enter(executor->config.platform->context);
#endif
}

static inline void unlock_lists(const tide_executor_t *executor, uintptr_t state) {
#if TIDE_SINGLE_CONTEXT
  (void)executor, (void)state;
#elif TIDE_STATIC_PLATFORM
  (void)executor;
  tide_static_lanes_exit(state);
#else
  executor->exit(executor->config.platform->context, state);
#endif
}

static inline bool splits(const tide_executor_t *executor) {
  return !TIDE_SINGLE_CONTEXT && (TIDE_STATIC_PLATFORM || executor->splits);
}

static inline uintptr_t mask(const tide_executor_t *executor) { return tide_platform_enter(executor->config.platform); }

static inline void unmask(const tide_executor_t *executor, uintptr_t state) {
  tide_platform_exit(executor->config.platform, state);
}

static inline int64_t now(const tide_executor_t *executor) { return tide_platform_now_ns(executor->config.platform); }
static inline int64_t minimum(int64_t left, int64_t right) { return left < right ? left : right; }

/* left + right, limited to TIDE_FOREVER; both are at least 0. */
static inline int64_t after(int64_t left, int64_t right) {
  return left > TIDE_FOREVER - right ? TIDE_FOREVER : left + right;
}

static inline tide_callback_t *callback_of(tide_queue_entry_t *ready_entry) {
  return (tide_callback_t *)(void *)ready_entry; /* first member */
}

static inline tide_timer_t *timer_of(tide_callback_t *callback) {
  TIDE_INVARIANT(callback->kind == TIDE_CALLBACK_TIMER);
  return (tide_timer_t *)(void *)callback; /* first member */
}

static inline bool is_tide(const tide_executor_t *executor) {
  return TIDE_LEAN || executor->config.policy == TIDE_POLICY_TIDE;
}

static inline bool is_readyset(const tide_executor_t *executor) {
  return !TIDE_LEAN && executor->config.policy == TIDE_POLICY_READYSET;
}

static inline size_t lane_count(const tide_executor_t *executor) {
  return TIDE_LANES ? executor->config.lane_count : 1u;
}

static inline bool has_lanes(const tide_executor_t *executor) { return TIDE_LANES && executor->config.lane_count > 1u; }

/* A round has several callbacks only with a trigger, with ALWAYS callbacks or with the batch policy; the lean profile
 * has none of these. */
static inline bool is_in_round(const tide_callback_t *callback) { return !TIDE_LEAN && callback->in_round; }

/* ---- groups: which of the ready callbacks may start ----
 *
 * Invariants of a ready callback outside of rounds (tide policy, several lanes). The callback is in the ready_list of
 * its band exactly when it may start and, in an exclusive group, is the most urgent of its group. A lane that takes the
 * head of a ready_list may therefore run it, and blocked callbacks are never inspected. The other ready callbacks of an
 * exclusive group are in group->waiting. A callback that waits for the end of its own run is in no queue. The key of a
 * callback is set once, when the callback becomes ready, and contains priority and order of arrival, so moving it
 * between queues changes no order. */

/* The lists of the executor and of the group have room for all their callbacks, so a push cannot fail. */
static void push(tide_queue_t *queue, tide_callback_t *callback) {
  TIDE_INVARIANT(callback->executor != NULL && callback->pending > 0u);
  const int status = tide_queue_push(queue, &callback->ready_entry, callback->ready_entry.key);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK);
}

static void show(tide_callback_t *callback) { push(&callback->band->ready_list, callback); }

static void hide(tide_callback_t *callback) { tide_queue_remove(&callback->band->ready_list, &callback->ready_entry); }

/* With one lane no two callbacks overlap, so groups change nothing. */
static inline tide_group_t *group_of(const tide_callback_t *callback) {
  return callback->group != NULL && has_lanes(callback->executor) ? callback->group : NULL;
}

/* The group's offered callback is in the ready_list of its band and precedes all waiting ones. No callback is offered
 * while one of the group runs. */
static bool group_holds(const tide_group_t *group) {
  const tide_callback_t *offered = group->offered;
  const tide_queue_entry_t *next = tide_queue_head(&group->waiting);
  if (offered == NULL) return group->taken_by != NULL || next == NULL;
  return group->taken_by == NULL && offered->group == group && tide_queue_contains(&offered->ready_entry) &&
         group->waiting.count <= group->members && (next == NULL || next->key > offered->ready_entry.key);
}

static void offer_next_of(tide_group_t *group) {
  tide_queue_entry_t *next = tide_queue_pop(&group->waiting);
  group->offered = next == NULL ? NULL : callback_of(next);
  if (group->offered != NULL) show(group->offered);
}

/* Puts a ready callback into the ready_list, where a lane finds it, or makes it wait for its group or for the end of
 * its own run. */
static void offer(tide_callback_t *callback) {
  tide_group_t *group = group_of(callback);
  if (group == NULL) {
    if (callback->running == 0u) show(callback);
    return;
  }
  if (group->kind == TIDE_GROUP_REENTRANT) {
    show(callback);
    return;
  }
  tide_callback_t *offered = group->offered;
  if (group->taken_by != NULL || (offered != NULL && offered->ready_entry.key < callback->ready_entry.key)) {
    push(&group->waiting, callback);
  } else {
    if (offered != NULL) {
      hide(offered);
      push(&group->waiting, offered);
    }
    group->offered = callback;
    show(callback);
  }
  TIDE_INVARIANT(group_holds(group));
}

/* Removes the callback from the queue into which offer put it. */
static void withdraw(tide_callback_t *callback) {
  tide_group_t *group = group_of(callback);
  if (group == NULL || group->kind == TIDE_GROUP_REENTRANT) {
    hide(callback);
    return;
  }
  if (group->offered == callback) {
    hide(callback);
    offer_next_of(group);
  } else {
    tide_queue_remove(&group->waiting, &callback->ready_entry);
  }
  TIDE_INVARIANT(group_holds(group));
}

int tide_group_init(tide_group_t *group, tide_group_kind_t kind, tide_queue_entry_t **waiting_storage,
                    size_t capacity) {
  const bool exclusive = kind == TIDE_GROUP_EXCLUSIVE;
  if (group == NULL || (!exclusive && kind != TIDE_GROUP_REENTRANT) ||
      (exclusive && (waiting_storage == NULL || capacity == 0u))) {
    return TIDE_ERROR_ARGUMENT;
  }
  *group = (tide_group_t){.kind = kind};
  tide_queue_init(&group->waiting, waiting_storage, exclusive ? capacity : 0u);
  return TIDE_OK;
}

/* ---- bands: which lane to wake ----
 *
 * A band with one lane wakes this lane by its sticky event. In a band with several lanes, an idle lane is picked. A
 * lane joins the idle lanes in the same critical section in which it finds no work, so no wake-up is lost. A picked
 * lane leaves the idle ones, so two wake-ups reach two lanes. A lane that takes a callback while more work remains
 * picks another lane for the rest. With patience, only one idle lane wakes at the next expiry and the others a little
 * later, so they find the callbacks made ready by that expiry without being woken. */

/* A lane is in its band's list of idle lanes exactly when the lane's flag `idle` is set. */
static bool is_listed(const tide_lane_t *lane) {
  const tide_lane_t *other = lane->band->idle;
  while (other != NULL && other != lane) other = other->idle_next;
  return (other != NULL) == lane->idle;
}

static void become_idle(tide_lane_t *lane) {
  TIDE_INVARIANT(lane->running == NULL && is_listed(lane));
  if (!TIDE_LANES || lane->band->only != NULL || lane->idle) return;
  lane->idle = true;
  lane->idle_next = lane->band->idle;
  lane->band->idle = lane;
}

static void become_busy(tide_lane_t *lane) {
  if (!TIDE_LANES || !lane->idle) return;
  TIDE_INVARIANT(is_listed(lane) && lane->band->only == NULL);
  tide_lane_t **link = &lane->band->idle;
  while (*link != lane) link = &(*link)->idle_next;
  *link = lane->idle_next;
  lane->idle = false;
}

static int64_t patience_of(const tide_band_t *band) {
#if TIDE_PATIENCE
  return TIDE_LANES && band->idle != NULL ? band->patience_ns : 0;
#else
  (void)band;
  return 0;
#endif
}

/* Time at which the first idle lane wakes by itself; TIDE_FOREVER if none does. */
static int64_t first_look_ns(const tide_band_t *band) {
  int64_t first_ns = TIDE_FOREVER;
  for (const tide_lane_t *lane = band->idle; lane != NULL; lane = lane->idle_next) {
    first_ns = minimum(first_ns, lane->sleeps_until_ns);
  }
  return first_ns;
}

/* Time at which a lane that becomes idle wakes by itself. The next expiry is left to the lane that already waits for
 * it, so that timers stay on the lane with warm caches. */
static int64_t idle_until(const tide_band_t *band) {
  const tide_queue_entry_t *expiry = tide_queue_head(&band->timer_list);
  const int64_t next_ns = expiry == NULL ? TIDE_FOREVER : expiry->key;
  if (patience_of(band) == 0) return next_ns;
  const tide_lane_t *lane = band->idle;
  while (lane != NULL && lane->sleeps_until_ns != next_ns) lane = lane->idle_next;
  if (lane == NULL) return next_ns;
  return minimum(tide_queue_second_key(&band->timer_list), after(next_ns, patience_of(band)));
}

/* Returns the lane to wake for work of the band, or NULL. */
static tide_lane_t *pick(tide_band_t *band) {
  tide_lane_t *picked = band->only;
  if (picked != NULL && picked->digesting > 0u) {
    picked->digesting = 2u;
    return NULL;
  }
  if (!TIDE_LANES || picked != NULL || band->idle == NULL) return picked;
  picked = band->idle;
  /* with patience, pick the lane that would wake last by itself, because the others wait for the next expiry */
  for (tide_lane_t *lane = picked; patience_of(band) > 0 && lane != NULL; lane = lane->idle_next) {
    if (lane->sleeps_until_ns > picked->sleeps_until_ns) picked = lane;
  }
  TIDE_INVARIANT(picked->band == band);
  become_busy(picked);
  return picked;
}

/* Returns an idle lane to wake for the work that a lane leaves, if there is any: a callback that may run, or an expiry
 * before that idle lane wakes by itself. */
static tide_lane_t *pick_for_rest(tide_band_t *band) {
  if (!TIDE_LANES || band->idle == NULL) return NULL;
  const tide_queue_entry_t *expiry = tide_queue_head(&band->timer_list);
  const int64_t look_ns = patience_of(band) > 0 ? first_look_ns(band) : band->idle->sleeps_until_ns;
  const bool rest = tide_queue_head(&band->ready_list) != NULL || (expiry != NULL && expiry->key < look_ns);
  return rest ? pick(band) : NULL;
}

/* After a callback of a group was withdrawn, the group's next callback may belong to another lane. Returns the lane to
 * wake, or NULL. */
static tide_lane_t *pick_for_group_of(const tide_callback_t *callback) {
  const tide_group_t *group = group_of(callback);
  return group != NULL && group->offered != NULL ? pick(group->offered->band) : NULL;
}

/* Not locked. */
void tide_exec_wake_lane(const tide_executor_t *executor, tide_lane_t *lane) {
  if (lane != NULL) tide_platform_event_set(executor->config.platform, &lane->event);
}

static tide_band_t *band_of(const tide_executor_t *executor, tide_priority_t priority) {
  const tide_executor_config_t *config = &executor->config;
  tide_band_t *band = config->lanes[0].band;
  for (size_t index = 1;
       TIDE_LANES && index < lane_count(executor) && (priority < band->least || priority > band->most); index++) {
    band = config->lanes[index].band;
  }
  TIDE_INVARIANT(!TIDE_LANES || (priority >= band->least && priority <= band->most));
  return band;
}

/* ---- readiness: which callbacks are ready, for how many runs, and in which order ---- */

static bool needs_no_frame(const tide_callback_t *callback) {
  return callback->kind == TIDE_CALLBACK_TIMER || callback->kind == TIDE_CALLBACK_GUARD || callback->local;
}

/* ready_count is the number of callbacks with pending > 0; prompt_count is the number of those among them that need no
 * frame. O(n). */
static bool counts_hold(const tide_executor_t *executor) {
  size_t ready = 0, prompt = 0;
  for (size_t index = 0; index < executor->count; index++) {
    const tide_callback_t *callback = executor->config.callbacks[index];
    if (callback->pending == 0u) continue;
    ready++;
    prompt += needs_no_frame(callback) ? 1u : 0u;
  }
  return ready == executor->ready_count && prompt == executor->prompt_count;
}

/* Invariant: which callbacks are in a queue. With the tide policy, those that are ready and in no round, except that a
 * running one need not be; with readyset, only callbacks that have in_set; with batch, none. */
static bool queueing_holds(const tide_callback_t *callback) {
  const bool queued = tide_queue_contains(&callback->ready_entry);
  if (is_readyset(callback->executor)) return !queued || callback->in_set;
  if (!is_tide(callback->executor) || callback->pending == 0u || is_in_round(callback)) return !queued;
  return queued || callback->running > 0u;
}

/* Triggers read pending without a lock. */
static void set_pending(tide_callback_t *callback, uint32_t pending) {
  __atomic_store_n(&callback->pending, pending, __ATOMIC_RELAXED);
}

/* The set of the readyset policy consists of the band's ready_list and the callbacks waiting in groups; its members
 * have in_set. A callback leaves the set when it starts, and its further pending runs wait for the next polling point.
 * A timer has at most one pending expiry and joins the set when it expires. A polling point occurs when a lane finds
 * the ready_list empty: the set then contains only callbacks that are blocked by their group or by their own run. */
static void set_admit(tide_callback_t *callback) {
  if (callback->in_set) return;
  TIDE_INVARIANT(callback->index < callback->executor->count);
  callback->in_set = true;
  callback->ready_entry.key = ((int64_t)callback->kind << INDEX_BITS) | callback->index; /* kinds in rclcpp's order */
  offer(callback);
}

static void set_leave(tide_callback_t *callback) {
  withdraw(callback);
  TIDE_INVARIANT(!tide_queue_contains(&callback->ready_entry));
  callback->in_set = false;
}

/* Queues the callback, if the policy uses a ready_list. */
static void enqueue(tide_callback_t *callback) {
  tide_executor_t *executor = callback->executor;
  if (is_readyset(executor)) {
    if (callback->kind == TIDE_CALLBACK_TIMER) set_admit(callback);
  } else if (is_tide(executor) && !tide_queue_contains(&callback->ready_entry)) {
    /* The most urgent callback comes first, and among equals the one that became ready first; see take_turns. */
    TIDE_INVARIANT(executor->next_stamp >> STAMP_BITS == 0);
    callback->ready_entry.key = ((int64_t)(UINT16_MAX - callback->priority) << STAMP_BITS) | executor->next_stamp++;
    offer(callback);
  }
}

static void make_ready(tide_callback_t *callback, int64_t ready_ns) {
  tide_executor_t *executor = callback->executor;
  executor->notifications++;
  if (!TIDE_LEAN) callback->ready_since_ns = ready_ns;
  const bool was_ready = callback->pending > 0u;
  if (callback->pending != UINT32_MAX) set_pending(callback, callback->pending + 1u);
  if (!was_ready) {
    executor->ready_count++;
    executor->prompt_count += needs_no_frame(callback) ? 1u : 0u;
    if (!is_in_round(callback)) enqueue(callback);
  }
  TIDE_INVARIANT(queueing_holds(callback) && executor->ready_count <= executor->count);
}

static void stop_being_ready(tide_callback_t *callback) {
  tide_executor_t *executor = callback->executor;
  TIDE_INVARIANT(executor->ready_count > 0u && (executor->prompt_count > 0u || !needs_no_frame(callback)));
  executor->ready_count--;
  executor->prompt_count -= needs_no_frame(callback) ? 1u : 0u;
}

void tide_exec_mark_local_locked(tide_callback_t *callback) {
  const bool prompt_before = needs_no_frame(callback);
  callback->local = true;
  if (!prompt_before && callback->executor != NULL && callback->pending > 0u) callback->executor->prompt_count++;
}

/* With split locks, an interrupt only lists the callback, in constant time; lanes do the rest of the work later.
 * Masked. */
static void list_arrival(tide_callback_t *callback, int64_t ready_ns) {
  tide_executor_t *executor = callback->executor;
  if (callback->arrived != UINT32_MAX) __atomic_store_n(&callback->arrived, callback->arrived + 1u, __ATOMIC_RELAXED);
  callback->arrived_ns = ready_ns;
  if (callback->arriving) return;
  callback->arriving = true;
  callback->arrived_next = NULL;
  if (executor->arrivals == NULL) {
    __atomic_store_n(&executor->arrivals, callback, __ATOMIC_RELAXED);
  } else {
    TIDE_INVARIANT(executor->arrivals_last != NULL && executor->arrivals_last->arrived_next == NULL);
    executor->arrivals_last->arrived_next = callback;
  }
  executor->arrivals_last = callback;
}

static inline bool has_arrivals(const tide_executor_t *executor) {
  return !TIDE_SINGLE_CONTEXT && __atomic_load_n(&executor->arrivals, __ATOMIC_RELAXED) != NULL;
}

__attribute__((noinline)) static void take_all_arrivals(
    tide_executor_t *executor) { /* not inlined, to save code: one copy serves all callers */
  while (has_arrivals(executor)) {
    const uintptr_t masked = mask(executor);
    tide_callback_t *callback = executor->arrivals;
    const uint32_t times = callback->arrived; /* 0 if the callback was removed or the notification withdrawn */
    const int64_t ready_ns = callback->arrived_ns;
    TIDE_INVARIANT(callback->arriving);
    callback->arriving = false;
    callback->arrived = 0u;
    executor->arrivals = callback->arrived_next;
    unmask(executor, masked);
    if (times == 0u) continue;
    TIDE_INVARIANT(callback->executor == executor);
    make_ready(callback, ready_ns);
    const uint32_t room = UINT32_MAX - callback->pending;
    set_pending(callback, callback->pending + (times - 1u < room ? times - 1u : room));
    executor->notifications += times - 1u;
  }
}

static inline void take_arrivals(tide_executor_t *executor) {
  if (has_arrivals(executor)) take_all_arrivals(executor);
}

/* Withdraws all due runs of the callback. */
static void clear_ready(tide_callback_t *callback) {
  if (splits(callback->executor)) {
    const uintptr_t masked = mask(callback->executor);
    __atomic_store_n(&callback->arrived, 0u, __ATOMIC_RELAXED);
    unmask(callback->executor, masked);
  }
  if (callback->pending != 0u) {
    set_pending(callback, 0u);
    stop_being_ready(callback);
  }
  set_leave(callback);
  TIDE_INVARIANT(!tide_queue_contains(&callback->ready_entry) && counts_hold(callback->executor));
}

/* True if some lane will find this ready callback without being woken. */
static bool needs_no_lane(const tide_callback_t *callback, const tide_lane_t *from, int64_t now_ns) {
  const tide_band_t *band = callback->band;
  if (!TIDE_PATIENCE) return false;
  if (!TIDE_LANES || !is_tide(callback->executor)) return false;
  /* A band's only lane looks for work before it sleeps, so a callback that it runs need not set the lane's event. */
  const bool own = from != NULL && from->running != NULL && from->band == band;
  if (band->only != NULL) return own;
  /* If the callback waits until a run of its group or its own run ends, the lane of that run will offer it. */
  const tide_group_t *group = group_of(callback);
  const bool first = group == NULL || group->kind == TIDE_GROUP_REENTRANT || group->offered == callback;
  if (!first || !tide_queue_contains(&callback->ready_entry)) return true;
  /* with several lanes, the notifying lane takes the only ready callback when its own ends, or an idle lane that wakes
   * by itself within the patience takes it before that */
  return own && callback->pending == 1u && band->ready_list.count == 1u && patience_of(band) > 0 &&
         first_look_ns(band) <= after(now_ns, patience_of(band));
}

tide_lane_t *tide_exec_notify_masked(tide_callback_t *callback, const tide_lane_t *from, int64_t ready_ns) {
  if (splits(callback->executor)) {
    list_arrival(callback, ready_ns);
    return pick(callback->band);
  }
  make_ready(callback, ready_ns);
  return needs_no_lane(callback, from, ready_ns) ? NULL : pick(callback->band);
}

static tide_executor_t *owner_of(const tide_callback_t *callback) { /* takes no lock, and may overlap add and remove */
  return __atomic_load_n(&callback->executor, ACQUIRE);
}

/* Not locked. */
void tide_executor_notify_from(tide_callback_t *callback, size_t from) {
  tide_executor_t *executor = callback == NULL ? NULL : owner_of(callback);
  if (executor == NULL) return;
  const int64_t now_ns = now(executor);
  tide_lane_t *lane = NULL;
  const uintptr_t masked = mask(executor);
  if (callback->executor == executor) {
    const tide_lane_t *own = from < lane_count(executor) ? &executor->config.lanes[from] : NULL;
    lane = tide_exec_notify_masked(callback, own, now_ns);
  }
  unmask(executor, masked);
  tide_exec_wake_lane(executor, lane);
}

void tide_executor_notify(tide_callback_t *callback) { tide_executor_notify_from(callback, SIZE_MAX); }

/* ---- timers ----
 *
 * A timer that is not canceled is either in timer_list, waiting for next_ns, or ready because next_ns has come. It goes
 * back to timer_list when its callback starts. An expiry therefore costs one move, however long the timer then waits to
 * run, and missed expiries are skipped at the start of the run. */

/* A timer that is not canceled is in timer_list, or ready, or both if the program has notified it. */
static bool is_armed(const tide_timer_t *timer) {
  return tide_queue_contains(&timer->expiry_entry) || timer->callback.pending > 0u;
}

/* Makes the timers that are due ready; returns the time of the next expiry. The lists are unlocked between timers, so
 * that the critical section stays short. */
static int64_t move_due_timers(tide_executor_t *executor, tide_band_t *band, int64_t now_ns, uintptr_t *locked) {
  tide_queue_entry_t *head = tide_queue_head(&band->timer_list);
  while (head != NULL && head->key <= now_ns) {
    tide_timer_t *timer =
        (tide_timer_t *)(void *)((char *)tide_queue_pop(&band->timer_list) - offsetof(tide_timer_t, expiry_entry));
    TIDE_INVARIANT(!timer->canceled && timer->callback.band == band && timer->next_ns <= now_ns);
    make_ready(&timer->callback, timer->next_ns);
    TIDE_COUNT(executor->counters.timers_expired, 1u);
    head = tide_queue_head(&band->timer_list);
    if (head != NULL && head->key <= now_ns) {
      unlock_lists(executor, *locked);
      *locked = lock_lists(executor);
      head = tide_queue_head(&band->timer_list);
    }
  }
  return head == NULL ? TIDE_FOREVER : head->key;
}

static void schedule(tide_timer_t *timer, int64_t next_ns) {
  timer->next_ns = next_ns;
  const int status = tide_queue_push(&timer->callback.band->timer_list, &timer->expiry_entry, next_ns);
  (void)status;
  TIDE_INVARIANT(status == TIDE_OK && is_armed(timer));
}

/* Call this when the timer's callback starts; it returns the time since the previous start. */
static int64_t timer_started(tide_timer_t *timer, int64_t now_ns) {
  const int64_t since_last_run_ns = now_ns - timer->last_call_ns;
  timer->last_call_ns = now_ns;
  if (timer->canceled || tide_queue_contains(&timer->expiry_entry)) return since_last_run_ns; /* only notified */
  int64_t next_ns = timer->next_ns;
  if (now_ns - next_ns >= timer->period_ns) {
    const int64_t missed = (int64_t)((uint64_t)(now_ns - next_ns) / (uint64_t)timer->period_ns);
    timer->skipped += (uint32_t)minimum(missed, (int64_t)(UINT32_MAX - timer->skipped));
    next_ns += missed * timer->period_ns;
  }
  TIDE_INVARIANT(next_ns >= timer->next_ns && (next_ns - timer->next_ns) % timer->period_ns == 0);
  schedule(timer, after(next_ns, timer->period_ns));
  return since_last_run_ns;
}

/* Locks the lists of the timer's executor; returns false if the timer is in none. */
static bool begin_change(const tide_timer_t *timer, tide_executor_t **executor, uintptr_t *locked) {
  *executor = owner_of(&timer->callback);
  if (*executor == NULL) return false;
  *locked = lock_lists(*executor);
  if (timer->callback.executor == *executor) {
    take_arrivals(*executor);
    return true;
  }
  unlock_lists(*executor, *locked);
  return false;
}

/* Arms the timer for first_expiry_ns, for one period from now (TIDE_FOREVER), or not at all (-1). */
static int rearm(tide_timer_t *timer, int64_t first_expiry_ns) {
  tide_executor_t *executor;
  uintptr_t locked;
  if (timer == NULL) return TIDE_ERROR_ARGUMENT;
  if (!begin_change(timer, &executor, &locked)) return TIDE_ERROR_STATE;
  clear_ready(&timer->callback);
  tide_queue_remove(&timer->callback.band->timer_list, &timer->expiry_entry);
  TIDE_INVARIANT(!is_armed(timer));
  timer->canceled = first_expiry_ns < 0;
  if (!timer->canceled) {
    schedule(timer, first_expiry_ns == TIDE_FOREVER ? after(now(executor), timer->period_ns) : first_expiry_ns);
  }
  tide_lane_t *lane =
      pick(timer->callback.band); /* woken even for a canceled timer, because a trigger may depend on it */
  tide_lane_t *next = pick_for_group_of(&timer->callback);
  unlock_lists(executor, locked);
  tide_exec_wake_lane(executor, lane);
  tide_exec_wake_lane(executor, next);
  return TIDE_OK;
}

int tide_timer_reset(tide_timer_t *timer) { return rearm(timer, TIDE_FOREVER); }
int tide_timer_cancel(tide_timer_t *timer) { return rearm(timer, -1); }

int tide_timer_set_phase(tide_timer_t *timer, int64_t first_expiry_ns) {
  return first_expiry_ns < 0 || first_expiry_ns == TIDE_FOREVER ? TIDE_ERROR_ARGUMENT : rearm(timer, first_expiry_ns);
}

int tide_timer_set_period(tide_timer_t *timer, int64_t period_ns) {
  tide_executor_t *executor;
  uintptr_t locked;
  if (timer == NULL) return TIDE_ERROR_ARGUMENT;
  if (!begin_change(timer, &executor, &locked)) return TIDE_ERROR_STATE;
  if (period_ns >= 1) timer->period_ns = period_ns;
  unlock_lists(executor, locked);
  return period_ns >= 1 ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

int64_t tide_timer_until_next_ns(const tide_timer_t *timer, int64_t now_ns) {
  tide_executor_t *executor;
  uintptr_t locked;
  if (timer == NULL || !begin_change(timer, &executor, &locked)) return TIDE_FOREVER;
  const int64_t until_ns = timer->canceled ? TIDE_FOREVER : timer->next_ns - now_ns;
  unlock_lists(executor, locked);
  return until_ns;
}

/* ---- running a callback (not locked, unless the comment says so) ---- */

/* A lane begins a run: it takes one pending start. Returns false if there is nothing left to run, because a timer of
 * the round was canceled meanwhile. Locked. */
static bool begin(tide_lane_t *lane, tide_callback_t *callback, int64_t now_ns) {
  tide_group_t *group = group_of(callback);
  TIDE_INVARIANT(callback->executor != NULL && !tide_queue_contains(&callback->ready_entry));
  callback->in_round = callback->in_set = false;
  if (callback->pending == 0u && (TIDE_LEAN || !callback->always)) return false;

  TIDE_INVARIANT(lane->running == NULL && callback->running < lane_count(callback->executor));
  TIDE_INVARIANT(callback->running == 0u || (group != NULL && group->kind == TIDE_GROUP_REENTRANT));
  lane->running = callback;
  lane->forgotten = false;
  callback->running++;
  if (TIDE_LANES) {
    lane->group = NULL;
    if (group != NULL && group->kind == TIDE_GROUP_EXCLUSIVE) {
      TIDE_INVARIANT(group->taken_by == NULL && group->offered == callback);
      lane->group = group;
      group->offered = NULL;
      group->taken_by = lane;
    }
  }

  if (!TIDE_LEAN) callback->start_ns = now_ns;
  if (callback->pending == 0u) return true; /* an ALWAYS callback without data */
  set_pending(callback, callback->pending - 1u);
  if (callback->pending == 0u) stop_being_ready(callback);
  if (!TIDE_LEAN) callback->ready_ns = callback->ready_since_ns;
  if (callback->kind == TIDE_CALLBACK_TIMER) lane->since_last_run_ns = timer_started(timer_of(callback), now_ns);
  if (callback->pending > 0u) enqueue(callback);
  return true;
}

static void end(tide_executor_t *executor, tide_lane_t *lane, int64_t start_ns, int64_t end_ns) {
  const tide_executor_config_t *config = &executor->config;
  uintptr_t locked = lock_lists(executor);
  TIDE_COUNT(executor->counters.callbacks_run, 1u);
  if (!TIDE_LEAN && !lane->forgotten) {
    lane->running->end_ns = end_ns;
    lane->running->runs++;
    if (end_ns - start_ns > lane->running->execution_maximum_ns) {
      lane->running->execution_maximum_ns = end_ns - start_ns;
    }
  }
  if (!TIDE_LEAN && config->on_end != NULL) {
    unlock_lists(executor, locked);
    config->on_end(config->context, lane->running, end_ns);
    locked = lock_lists(executor);
  }

  TIDE_INVARIANT(lane->running != NULL);
  tide_callback_t *callback = lane->forgotten ? NULL : lane->running; /* NULL: the callback was removed while it ran */
  tide_group_t *group = TIDE_LANES ? lane->group : NULL;
  lane->running = NULL;
  if (group != NULL) {
    TIDE_INVARIANT(group->taken_by == lane && group->offered == NULL);
    group->taken_by = NULL;
    offer_next_of(group);
    TIDE_INVARIANT(group_holds(group));
    lane->group = NULL;
  }
  if (callback != NULL) {
    TIDE_INVARIANT(callback->running > 0u && callback->executor == executor);
    callback->running--;
    const bool stays = is_tide(executor) ? callback->pending > 0u && !is_in_round(callback) : callback->in_set;
    if (stays && group_of(callback) == NULL && !tide_queue_contains(&callback->ready_entry)) show(callback);
    const bool again = !TIDE_LEAN && is_tide(executor) && tide_callback_is_ready(callback) && !is_in_round(callback);
    if (!TIDE_LEAN) lane->again = again ? (uint16_t)(callback->index + 1u) : 0u;
  }

  /* the end of the run may unblock a callback in another band: another one of the group, or this one if its priority
   * has changed */
  tide_lane_t *wanted = NULL;
  const tide_callback_t *next = group != NULL ? group->offered : callback;
  if (TIDE_LANES && next != NULL && next->band != lane->band && tide_queue_contains(&next->ready_entry)) {
    wanted = pick(next->band);
  }
  unlock_lists(executor, locked);
  tide_exec_wake_lane(executor, wanted);
}

#if TIDE_TRACE
/* Returns the priority at the start for trace_end, because another thread may change it while the callback runs. */
static tide_priority_t trace_start(const tide_executor_t *executor, const tide_lane_t *lane,
                                   const tide_callback_t *callback, int64_t now_ns) {
  if (lane->trace == NULL) return 0;
  /* With one lane for each band and a common stack, a lane that starts while another lane is in a callback has
   * preempted that callback. */
  const tide_callback_t *preempted = NULL;
  const uintptr_t locked = lock_lists(executor);
  for (size_t index = 0; splits(executor) && index < lane_count(executor); index++) {
    const tide_lane_t *other = &executor->config.lanes[index];
    const tide_callback_t *running = other->forgotten ? NULL : other->running;
    if (other != lane && running != NULL && (preempted == NULL || running->priority > preempted->priority)) {
      preempted = running;
    }
  }
  if (preempted != NULL) {
    (void)tide_trace_put(lane->trace, TIDE_TRACE_PREEMPTION, preempted->priority,
                         tide_trace_instance(lane->trace, preempted->priority), 0u, now_ns);
  }
  const tide_priority_t priority = callback->priority;
  const uint32_t instance = (uint32_t)callback->runs;
  const int64_t ready_ns = callback->ready_ns;
  unlock_lists(executor, locked);
  const tide_trace_kind_t kind = callback->kind == TIDE_CALLBACK_TIMER ? TIDE_TRACE_RELEASE : TIDE_TRACE_READY;
  tide_trace_set_instance(lane->trace, priority, instance);
  (void)tide_trace_put(lane->trace, kind, priority, instance, 0u, ready_ns);
  (void)tide_trace_put(lane->trace, TIDE_TRACE_START, priority, instance, (uint8_t)callback->kind, now_ns);
  return priority;
}

static void trace_end(const tide_lane_t *lane, tide_priority_t priority, int64_t now_ns) {
  if (lane->trace == NULL) return;
  (void)tide_trace_put(lane->trace, TIDE_TRACE_END, priority, tide_trace_instance(lane->trace, priority), 0u, now_ns);
}

/* Searches all lanes for the one that runs the callback, which is acceptable because only late and missing instances
 * are recorded. */
void tide_exec_trace_deadline(const tide_callback_t *runs, tide_priority_t priority, tide_violation_t violation,
                              int64_t now_ns) {
  tide_executor_t *executor = runs->executor;
  if (executor == NULL) return;
  const uintptr_t locked = lock_lists(executor);
  tide_trace_ring_t *ring = NULL;
  for (size_t index = 0; index < lane_count(executor); index++) {
    if (executor->config.lanes[index].running == runs) ring = executor->config.lanes[index].trace;
  }
  unlock_lists(executor, locked);
  if (ring == NULL) return;
  const bool late = violation == TIDE_VIOLATION_LATE;
  const uint32_t instance = late ? tide_trace_instance(ring, priority) : (uint32_t)runs->runs - 1u;
  (void)tide_trace_put(ring, TIDE_TRACE_DEADLINE, priority, instance, (uint8_t)violation, now_ns);
}
#else
#define trace_start(executor, lane, callback, now_ns) ((tide_priority_t)0)
#define trace_end(lane, priority, now_ns) ((void)(priority))
#endif

static void execute(const tide_lane_t *lane, tide_callback_t *callback) {
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    timer_of(callback)->on_expiry(timer_of(callback), lane->since_last_run_ns);
  } else {
    callback->execute(callback, callback->context);
  }
}

/* Measured runs nest like calls: a run that preempts another begins and ends within it. */
static void execute_measured(const tide_executor_t *executor, const tide_lane_t *lane, tide_callback_t *callback,
                             tide_measurement_t *measurement) {
  tide_measure_t *measure = executor->config.measure;
  uintptr_t locked = lock_lists(executor);
  const uint64_t started = measure->clock.now(measure->clock.context), around = measure->inner;
  measure->inner = 0u;
  unlock_lists(executor, locked);
  execute(lane, callback);
  locked = lock_lists(executor);
  const uint64_t whole = (measure->clock.now(measure->clock.context) - started) & measure->clock.mask;
  const uint64_t own = measure->clock.of_thread ? whole : whole - measure->inner;
  measure->inner = around + whole;
  if (measurement->count == 0u || own < measurement->minimum) measurement->minimum = own;
  if (own > measurement->maximum) measurement->maximum = own;
  measurement->sum += own;
  measurement->count++;
  unlock_lists(executor, locked);
}

static void run(tide_executor_t *executor, tide_lane_t *lane, tide_callback_t *callback, int64_t start_ns) {
  const tide_executor_config_t *config = &executor->config;
  /* read before the run, during which the callback may be removed */
  tide_measurement_t *measurement = !TIDE_LEAN && config->measure != NULL ? callback->measurement : NULL;
  tide_chain_watch_t *ends = TIDE_LEAN ? NULL : callback->ends;
  const tide_priority_t priority = trace_start(executor, lane, callback, start_ns);
  if (!TIDE_LEAN && config->on_start != NULL) config->on_start(config->context, callback, start_ns);
  if (!TIDE_LEAN && callback->begins != NULL) callback->begins->begin(callback->begins, callback);
  if (measurement != NULL) {
    execute_measured(executor, lane, callback, measurement);
  } else {
    execute(lane, callback);
  }
  const int64_t end_ns = TIDE_LEAN ? 0 : now(executor);
  if (ends != NULL) ends->end(ends, end_ns);
  trace_end(lane, priority, end_ns);
  end(executor, lane, start_ns, end_ns);
}

/* ---- rounds: functions shared by the policies ---- */

static bool is_to_stop(const tide_executor_t *executor) { return __atomic_load_n(&executor->stopped, ACQUIRE); }
static int idle_result(const tide_executor_t *executor) { return is_to_stop(executor) ? 0 : TIDE_ERROR_TIMEOUT; }

/* Locks even with one lane, because other threads read the counters, and 32-bit processors write them in two halves. */
static void count(const tide_executor_t *executor, uint64_t *counter) {
  if (TIDE_LEAN) return;
  const uintptr_t locked = lock_lists(executor);
  ++*counter;
  unlock_lists(executor, locked);
}

static int64_t poll_source(const tide_executor_t *executor) {
  const tide_source_t *source = &executor->config.source;
  return source->poll == NULL ? TIDE_FOREVER : source->poll(source->context);
}

static int32_t most_urgent_frame(const tide_executor_t *executor, const tide_band_t *band) {
  const tide_source_t *source = &executor->config.source;
  return source->most_urgent == NULL ? TIDE_PRIORITY_NONE
                                     : source->most_urgent(source->context, band->least, band->most);
}

static bool has_frame(const tide_executor_t *executor, const tide_lane_t *lane) {
  return most_urgent_frame(executor, lane->band) != TIDE_PRIORITY_NONE;
}

static void wake_band(const tide_executor_t *executor, tide_band_t *band) {
  const uintptr_t locked = lock_lists(executor);
  tide_lane_t *lane = pick(band);
  unlock_lists(executor, locked);
  tide_exec_wake_lane(executor, lane);
}

/* Wakes the lanes of all bands that have frames, except those of one band. */
static void wake_for_frames(const tide_executor_t *executor, const tide_band_t *except) {
  for (size_t index = 0; TIDE_LANES && index < lane_count(executor); index++) {
    const tide_lane_t *lane = &executor->config.lanes[index];
    const bool first = lane->band == &lane->own_band;
    if (first && lane->band != except && has_frame(executor, lane)) wake_band(executor, lane->band);
  }
}

void tide_executor_wake_for_frames(tide_executor_t *executor) { wake_for_frames(executor, NULL); }

void tide_executor_wake(tide_executor_t *executor) {
  for (size_t index = 0; index < lane_count(executor); index++) {
    tide_exec_wake_lane(executor, &executor->config.lanes[index]);
  }
}

/* Result of one collection; all members are read in one critical section. */
typedef struct view {
  int32_t head; /* priority of the head of the band's ready_list, or TIDE_PRIORITY_NONE */
  size_t ready_count, prompt_count;
  uint32_t notifications;
  int64_t next_expiry_ns;
} view_t;

static view_t collect(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns) {
  tide_band_t *band = lane->band;
  uintptr_t locked = lock_lists(executor);
  lane->digesting = 0u;
  become_busy(lane);
  take_arrivals(executor);
  const int64_t next_expiry_ns = move_due_timers(executor, band, now_ns, &locked);
  tide_queue_entry_t *head = tide_queue_head(&band->ready_list);
  if (is_readyset(executor) && head == NULL) { /* a polling point */
    for (size_t index = 0; index < executor->count; index++) {
      if (executor->config.callbacks[index]->pending > 0u) set_admit(executor->config.callbacks[index]);
    }
    head = tide_queue_head(&band->ready_list);
    TIDE_COUNT(executor->counters.set_updates, head != NULL ? 1u : 0u);
  }
  const view_t view = {.head = head == NULL ? TIDE_PRIORITY_NONE : callback_of(head)->priority,
                       .ready_count = executor->ready_count,
                       .prompt_count = executor->prompt_count,
                       .notifications = executor->notifications,
                       .next_expiry_ns = next_expiry_ns};
  if (TIDE_LANES && head == NULL && band->only == NULL) {
    lane->sleeps_until_ns = next_expiry_ns;
    become_idle(lane);
  }
  unlock_lists(executor, locked);
  return view;
}

static bool triggers(tide_executor_t *executor, const view_t *view) {
  if (TIDE_LEAN || executor->trigger == tide_trigger_any) return view->ready_count > 0u;
  /* Locked, because another thread may remove a callback meanwhile; but the program's own trigger must not run under
   * the lock. */
  const uintptr_t locked = executor->trigger_is_ours ? lock_lists(executor) : 0u;
  const bool triggered = executor->trigger(executor->config.callbacks, executor->count, executor->trigger_object);
  if (executor->trigger_is_ours) unlock_lists(executor, locked);
  if (!triggered) count(executor, &executor->counters.trigger_false);
  return triggered;
}

static void wait_until(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  TIDE_INVARIANT(lane->running == NULL && lane->busy && (!is_tide(executor) || lane->round_first == NULL));
  count(executor, &executor->counters.sleeps);
  if (TIDE_LANES && lane->budget.block != NULL) lane->budget.block(lane->budget.context);
  const tide_source_t *source = &executor->config.source;
  if (!TIDE_STATIC_PLATFORM && source->wait != NULL) {
    (void)source->wait(source->context, &lane->event, deadline_ns);
  } else {
    (void)tide_platform_event_wait(executor->config.platform, &lane->event, deadline_ns);
  }
  if (TIDE_LANES && lane->budget.ready != NULL) lane->budget.ready(lane->budget.context);
}

/* Called before a choice: if the callback that the lane ran last is still ready, it is queued behind all callbacks of
 * its priority that have become ready meanwhile, including those whose frames arrived during its run. Each callback
 * therefore waits at most for the running callback and for one run of each other callback of its priority, besides more
 * urgent ones. Locked. */
static void take_turns(tide_executor_t *executor, tide_lane_t *lane) {
  if (TIDE_LEAN || lane->again == 0u) return;
  tide_callback_t *again = executor->config.callbacks[lane->again - 1u];
  lane->again = 0u;
  const bool is_alone = group_of(again) == NULL && lane->band->ready_list.count < 2u;
  if (is_alone || again->band != lane->band || !tide_queue_contains(&again->ready_entry)) return;
  withdraw(again);
  enqueue(again);
}

/* Called with the lists locked; unlocks them. Returns 1 if the head of the ready_list has run, else 0. */
static int run_head_locked(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns, bool updated,
                           uintptr_t locked) {
  tide_band_t *band = lane->band;
  take_turns(executor, lane);
  tide_queue_entry_t *head = tide_queue_pop(&band->ready_list);
  TIDE_INVARIANT(head == NULL || (callback_of(head)->pending > 0u && callback_of(head)->band == band));
  TIDE_INVARIANT(lane->busy && !lane->idle);
  const bool runs = head != NULL && begin(lane, callback_of(head), now_ns);
  TIDE_COUNT(executor->counters.rounds, runs ? 1u : 0u);
  TIDE_COUNT(executor->counters.set_updates, runs && updated ? 1u : 0u);
  tide_lane_t *help = pick_for_rest(band);
  unlock_lists(executor, locked);
  if (TIDE_LANES) {
    /* a lane that takes a callback leaves the remaining callbacks and the frames to an idle lane */
    if (runs && help == NULL && band->only == NULL && has_frame(executor, lane)) {
      wake_band(executor, band);
    } else {
      tide_exec_wake_lane(executor, help);
    }
  }
  if (runs) run(executor, lane, callback_of(head), now_ns);
  return runs ? 1 : 0;
}

static int run_head(tide_executor_t *executor, tide_lane_t *lane, bool updated) {
  const int64_t now_ns = now(executor);
  return run_head_locked(executor, lane, now_ns, updated, lock_lists(executor));
}

/* A round of several callbacks is kept as a list in the lane. The tide policy runs it in order of urgency, batch in
 * order of registration. Locked. */
static void round_add(tide_lane_t *lane, tide_callback_t *callback) {
  if (callback->in_round) return;
  withdraw(callback);
  callback->in_round = true;
  tide_callback_t **link = &lane->round_first;
  const bool tide = is_tide(callback->executor);
#define RUNS_AFTER(other) (tide ? callback->priority <= (other)->priority : callback->index > (other)->index)
  if (lane->round_last != NULL && RUNS_AFTER(lane->round_last)) link = &lane->round_last->round_next;
  while (*link != NULL && RUNS_AFTER(*link)) link = &(*link)->round_next;
#undef RUNS_AFTER
  callback->round_next = *link;
  *link = callback;
  if (callback->round_next == NULL) lane->round_last = callback;
  TIDE_INVARIANT(lane->round_first != NULL && lane->round_last != NULL && lane->round_last->round_next == NULL);
  TIDE_INVARIANT(queueing_holds(callback));
}

/* Locked. */
static void round_forget(tide_callback_t *callback) {
  if (!is_in_round(callback)) return;
  TIDE_INVARIANT(!tide_queue_contains(&callback->ready_entry));
  for (size_t index = 0; index < lane_count(callback->executor); index++) {
    tide_lane_t *lane = &callback->executor->config.lanes[index];
    tide_callback_t *previous = NULL, *other = lane->round_first;
    while (other != NULL && other != callback) {
      previous = other;
      other = other->round_next;
    }
    if (other == NULL) continue;
    *(previous == NULL ? &lane->round_first : &previous->round_next) = callback->round_next;
    if (lane->round_last == callback) lane->round_last = previous;
    break;
  }
  callback->in_round = false;
}

static int run_round(tide_executor_t *executor, tide_lane_t *lane) {
  int ran = 0;
  for (;;) {
    const int64_t now_ns = now(executor);
    const uintptr_t locked = lock_lists(executor);
    take_arrivals(executor);
    tide_callback_t *callback = lane->round_first;
    bool runs = false;
    if (callback != NULL) {
      TIDE_INVARIANT(callback->in_round);
      lane->round_first = callback->round_next;
      if (lane->round_first == NULL) lane->round_last = NULL;
      callback->round_next = NULL;
      runs = begin(lane, callback, now_ns);
    } else if (ran > 0) {
      TIDE_COUNT(executor->counters.rounds, 1u);
      TIDE_COUNT(executor->counters.set_updates, 1u);
    }
    unlock_lists(executor, locked);
    if (callback == NULL) return ran;
    if (runs) {
      run(executor, lane, callback, now_ns);
      ran++;
    }
  }
}

/* ---- the tide policy: each collection is followed by one callback, the most urgent ---- */

/* A callback that is more urgent than the frame goes first. At equal priority one frame goes first in each round, so
 * that slots do not fill up behind a busy priority. Further frames go first while they are welcome, that is, while the
 * reader has room or stores only outdated samples, so that a slow callback gets the latest sample, not the oldest. */
static bool frame_goes_first(const tide_executor_t *executor, const tide_lane_t *lane, int32_t head, size_t digested) {
  const tide_source_t *source = &executor->config.source;
  const int32_t frame = most_urgent_frame(executor, lane->band);
  if (frame == TIDE_PRIORITY_NONE) return false;
  if (frame != head || digested == 0u) return frame >= head;
  return source->is_welcome != NULL && digested < DIGESTS_WHEN_LATE &&
         source->is_welcome(source->context, lane->band->least, lane->band->most);
}

static bool digest_most_urgent(tide_executor_t *executor, tide_lane_t *lane) {
  const tide_source_t *source = &executor->config.source;
  if (!TIDE_LEAN) {
    const uintptr_t locked = lock_lists(executor);
    executor->counters.frames_digested++;
    lane->digesting = (uint8_t)(splits(executor) ? 0u : 1u);
    unlock_lists(executor, locked);
  }
  const int result = source->process_most_urgent(source->context, lane->band->least, lane->band->most);
  if (!TIDE_LEAN && result < 0) { /* no frame was left, so the lane may sleep and needs wake-ups again */
    const uintptr_t locked = lock_lists(executor);
    const bool missed = lane->digesting == 2u;
    lane->digesting = 0u;
    unlock_lists(executor, locked);
    tide_exec_wake_lane(executor, missed ? lane : NULL);
  }
  /* a frame of another band may have been waiting behind this frame in its stream */
  if (executor->band_count > 1u) wake_for_frames(executor, lane->band);
  return result >= 0;
}

static bool has_always(const tide_executor_t *executor) {
  return !TIDE_LEAN && __atomic_load_n(&executor->always_list, __ATOMIC_RELAXED) != NULL;
}

/* Runs the head of the ready_list and, in the same round, all ALWAYS callbacks. */
static int run_most_urgent(tide_executor_t *executor, tide_lane_t *lane) {
  if (!has_always(executor)) return run_head(executor, lane, true);
  const uintptr_t locked = lock_lists(executor);
  take_turns(executor, lane);
  tide_queue_entry_t *head = tide_queue_head(&lane->band->ready_list);
  if (head != NULL) {
    round_add(lane, callback_of(head));
    for (tide_callback_t *callback = executor->always_list; callback != NULL; callback = callback->always_next) {
      round_add(lane, callback);
    }
  }
  unlock_lists(executor, locked);
  return run_round(executor, lane);
}

/* Runs the most urgent callback of an executor without a source, in one critical section. A notification queues its
 * callback at once, so the set needs an update only if a timer may have expired. Returns 1 if a callback has run;
 * otherwise returns 0, and the lane is idle until *look_again_ns. */
static int choose(tide_executor_t *executor, tide_lane_t *lane, int64_t now_ns, bool waited, int64_t *look_again_ns) {
  uintptr_t locked = lock_lists(executor);
  const tide_queue_entry_t *expiry = tide_queue_head(&lane->band->timer_list);
  const bool updates = has_arrivals(executor) || (expiry != NULL && expiry->key <= now_ns);
  become_busy(lane);
  if (updates) {
    take_arrivals(executor);
    (void)move_due_timers(executor, lane->band, now_ns, &locked);
  }
  if (tide_queue_head(&lane->band->ready_list) != NULL) {
    return run_head_locked(executor, lane, now_ns, updates || waited, locked);
  }
  *look_again_ns = lane->sleeps_until_ns = idle_until(lane->band);
  become_idle(lane);
  unlock_lists(executor, locked);
  return 0;
}

static int round_any(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  const tide_source_t *source = &executor->config.source;
  const bool has_source = source->most_urgent != NULL || source->poll != NULL;
  for (bool waited = false; TIDE_LANES && !has_source && !has_always(executor); waited = true) {
    const int64_t now_ns = now(executor);
    int64_t look_again_ns = now_ns;
    if (choose(executor, lane, now_ns, waited, &look_again_ns) > 0) return 1;
    if (now_ns >= deadline_ns || is_to_stop(executor)) return idle_result(executor);
    wait_until(executor, lane, minimum(deadline_ns, look_again_ns));
  }
  for (size_t digested = 0;;) {
    const int64_t source_ns = poll_source(executor);
    const int64_t now_ns = now(executor);
    const view_t view = collect(executor, lane, now_ns);
    const bool late = now_ns >= deadline_ns || is_to_stop(executor);
    const bool digests = !late || digested < DIGESTS_WHEN_LATE;
    if (digests && frame_goes_first(executor, lane, view.head, digested) && digest_most_urgent(executor, lane)) {
      digested++;
    } else if (view.head != TIDE_PRIORITY_NONE) {
      const int ran = run_most_urgent(executor, lane);
      if (ran > 0) return ran;
    } else if (late) {
      return idle_result(executor);
    } else {
      wait_until(executor, lane, minimum(minimum(deadline_ns, source_ns), view.next_expiry_ns));
      digested = 0;
    }
  }
}

/* Adds every ready callback and all ALWAYS callbacks to the round, each in a critical section of its own. */
static void open_round_with_all(tide_executor_t *executor, tide_lane_t *lane) {
  for (bool more = true; more;) {
    const uintptr_t locked = lock_lists(executor);
    tide_queue_entry_t *head = tide_queue_head(&lane->band->ready_list);
    if (head != NULL) round_add(lane, callback_of(head));
    unlock_lists(executor, locked);
    more = head != NULL;
  }
  for (tide_callback_t *callback = executor->always_list; callback != NULL; callback = callback->always_next) {
    const uintptr_t locked = lock_lists(executor);
    round_add(lane, callback);
    unlock_lists(executor, locked);
  }
}

/* While the trigger is false, every frame is processed, in order of urgency, because any of them may be the one that
 * the trigger waits for. */
static int round_triggered(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  for (size_t digested = 0;;) {
    const int64_t source_ns = poll_source(executor);
    const int64_t now_ns = now(executor);
    const view_t view = collect(executor, lane, now_ns);
    const bool late = now_ns >= deadline_ns || is_to_stop(executor);
    const bool digests = !late || digested < DIGESTS_WHEN_LATE;
    const bool all_first = executor->all_frames_first && digested < DIGESTS_WHEN_LATE && has_frame(executor, lane);
    if (digests && (all_first || frame_goes_first(executor, lane, view.head, digested)) &&
        digest_most_urgent(executor, lane)) {
      digested++;
      continue;
    }
    if ((view.ready_count > 0u || late) && triggers(executor, &view)) {
      open_round_with_all(executor, lane);
      const int ran = run_round(executor, lane);
      if (ran > 0) return ran;
    }
    if (digests && has_frame(executor, lane) && digest_most_urgent(executor, lane)) {
      digested++;
    } else if (late) {
      return idle_result(executor);
    } else {
      wait_until(executor, lane, minimum(minimum(deadline_ns, source_ns), view.next_expiry_ns));
      digested = 0;
    }
  }
}

static int round_tide(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  return TIDE_LEAN || executor->trigger == tide_trigger_any ? round_any(executor, lane, deadline_ns)
                                                            : round_triggered(executor, lane, deadline_ns);
}

/* ---- the batch policy: rclc's default executor on rmw_microxrcedds, a baseline for comparison ---- */

/* Sweeps all handles, as the wait set does, and runs the ready ones. */
static int run_batch(tide_executor_t *executor, tide_lane_t *lane) {
  bool more = true;
  for (size_t index = 0; more;) {
    const uintptr_t locked =
        lock_lists(executor); /* another thread may remove callbacks between two parts of a sweep */
    for (size_t swept = 0; swept < SWEEP && index < executor->count; swept++, index++) {
      tide_callback_t *callback = executor->config.callbacks[index];
      if (callback->pending > 0u || callback->always) round_add(lane, callback);
    }
    more = index < executor->count;
    unlock_lists(executor, locked);
  }
  return run_round(executor, lane);
}

static int round_batch(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  const tide_executor_config_t *config = &executor->config;
  const bool waits = config->batch_waits_for_new_data;
  int64_t limit_ns = waits ? minimum(deadline_ns, after(now(executor), config->spin_timeout_ns)) : deadline_ns;
  uint32_t seen = 0;
  bool fresh = false; /* true when a frame of this wait has made a callback ready */
  for (size_t digested = 0;;) {
    const int64_t source_ns = poll_source(executor);
    const int64_t now_ns = now(executor);
    const view_t view = collect(executor, lane, now_ns);
    const bool late = now_ns >= deadline_ns || is_to_stop(executor);
    const bool limit_passed = late || now_ns >= limit_ns;
    fresh = fresh || (digested > 0u && view.notifications != seen);
    seen = view.notifications;
    if (!fresh && (!late || digested < DIGESTS_WHEN_LATE) && has_frame(executor, lane)) {
      count(executor, &executor->counters.frames_digested);
      if (config->source.process_oldest(config->source.context) >= 0) {
        digested++;
        continue;
      }
    }
    const bool wait_is_over = limit_passed || ((!waits || fresh || view.prompt_count > 0u) && view.ready_count > 0u);
    if (wait_is_over && triggers(executor, &view)) {
      const int ran = run_batch(executor, lane);
      if (ran > 0) return ran;
    }
    if (late) return idle_result(executor);
    if (limit_passed) limit_ns = waits ? minimum(deadline_ns, after(now_ns, config->spin_timeout_ns)) : deadline_ns;
    if (!fresh) wait_until(executor, lane, minimum(minimum(limit_ns, source_ns), view.next_expiry_ns));
    fresh = false;
    digested = 0;
  }
}

/* ---- the readyset policy: rclcpp's default executors as the literature models them, also a baseline ---- */

/* True if the set contains a callback that may run when the lane chooses, timers included. */
static bool has_eligible(tide_executor_t *executor, const tide_lane_t *lane, bool waited) {
  uintptr_t locked = lock_lists(executor);
  const int64_t now_ns = now(executor);
  const tide_queue_entry_t *expiry = tide_queue_head(&lane->band->timer_list);
  TIDE_COUNT(executor->counters.set_updates, waited && expiry != NULL && expiry->key <= now_ns ? 1u : 0u);
  take_arrivals(executor);
  (void)move_due_timers(executor, lane->band, now_ns, &locked);
  const bool any = tide_queue_head(&lane->band->ready_list) != NULL;
  unlock_lists(executor, locked);
  return any;
}

static int round_readyset(tide_executor_t *executor, tide_lane_t *lane, int64_t deadline_ns) {
  const tide_source_t *source = &executor->config.source;
  for (bool waited = false;; waited = true) {
    const int64_t source_ns = poll_source(executor);
    if (!has_eligible(executor, lane, waited)) {
      for (size_t digested = 0; digested < FRAMES_A_POLL && has_frame(executor, lane); digested++) {
        count(executor, &executor->counters.frames_digested);
        if (source->process_oldest(source->context) < 0) break;
      }
    }
    const int64_t now_ns = now(executor);
    const view_t view = collect(executor, lane, now_ns); /* refreshes the set when nothing is eligible */
    if (view.head != TIDE_PRIORITY_NONE) {
      const int ran = run_head(executor, lane, false); /* set updates were counted at the polling point */
      if (ran > 0) return ran;
    } else if (now_ns >= deadline_ns || is_to_stop(executor)) {
      return idle_result(executor);
    } else {
      wait_until(executor, lane, minimum(minimum(deadline_ns, source_ns), view.next_expiry_ns));
    }
  }
}

/* ---- one round of a lane, and spinning ---- */

static bool exchange(bool *flag, bool value) {
  if (!TIDE_SINGLE_CONTEXT) return __atomic_exchange_n(flag, value, __ATOMIC_ACQUIRE);
  const bool before = *flag;
  *flag = value;
  return before;
}

int tide_executor_lane_round(tide_executor_t *executor, size_t index, int64_t deadline_ns) {
  if (executor == NULL || executor->config.lanes == NULL || index >= executor->config.lane_count) {
    return TIDE_ERROR_ARGUMENT;
  }
  tide_lane_t *lane = &executor->config.lanes[index];
  if (exchange(&lane->busy, true)) return TIDE_ERROR_STATE;
  const int result = is_tide(executor)       ? round_tide(executor, lane, deadline_ns)
                     : is_readyset(executor) ? round_readyset(executor, lane, deadline_ns)
                                             : round_batch(executor, lane, deadline_ns);
  if (TIDE_LANES && result <= 0 && lane->band->only == NULL) {
    /* A lane that leaves is not idle any more, so another lane must do the work for which this one was picked. */
    const uintptr_t locked = lock_lists(executor);
    become_busy(lane);
    tide_lane_t *help = pick_for_rest(lane->band);
    unlock_lists(executor, locked);
    tide_exec_wake_lane(executor, help);
  }
  TIDE_INVARIANT(lane->running == NULL && lane->round_first == NULL && lane->group == NULL);
  __atomic_store_n(&lane->busy, false, RELEASE);
  return result;
}

int tide_executor_round(tide_executor_t *executor, int64_t deadline_ns) {
  return executor != NULL && has_lanes(executor) ? TIDE_ERROR_UNSUPPORTED
                                                 : tide_executor_lane_round(executor, 0, deadline_ns);
}

/* True if this lane's spin has ended. The stop is cleared when the last lane has left. */
static bool leaves(tide_executor_t *executor, tide_lane_t *lane) {
  if (!TIDE_LANES) return exchange(&executor->stopped, false);
  if (!is_to_stop(executor)) return false;
  bool all = true;
  const uintptr_t locked = lock_lists(executor);
  lane->left = true;
  for (size_t index = 0; index < lane_count(executor); index++) all = all && executor->config.lanes[index].left;
  if (all) {
    for (size_t index = 0; index < lane_count(executor); index++) executor->config.lanes[index].left = false;
    __atomic_store_n(&executor->stopped, false, RELEASE);
  }
  unlock_lists(executor, locked);
  return true;
}

/* Time of the next round of a lane that never waits. */
static int64_t next_round_ns(tide_executor_t *executor, const tide_lane_t *lane) {
  if (has_frame(executor, lane)) return 0;
  const int64_t source_ns = poll_source(executor);
  const uintptr_t locked = lock_lists(executor);
  const tide_queue_entry_t *expiry = tide_queue_head(&lane->band->timer_list);
  const int64_t next_ns = tide_queue_head(&lane->band->ready_list) != NULL ? 0
                          : expiry == NULL                                 ? TIDE_FOREVER
                                                                           : expiry->key;
  unlock_lists(executor, locked);
  return minimum(next_ns, source_ns);
}

int tide_executor_spin_lane(tide_executor_t *executor, size_t index) {
  if (executor == NULL || executor->config.lanes == NULL || index >= executor->config.lane_count) {
    return TIDE_ERROR_ARGUMENT;
  }
  tide_lane_t *lane = &executor->config.lanes[index];
  /* A nested spin is refused before it could consume the stop that is meant for the outer spin. */
  if (__atomic_load_n(&lane->busy, ACQUIRE)) return TIDE_ERROR_STATE;
  if (TIDE_LANES && lane->returns) {
    /* On a shared stack a lane must not wait. */
    lane->over = leaves(executor, lane);
    if (lane->over) return TIDE_OK;
    const int result = tide_executor_lane_round(executor, index, 0);
    TIDE_INVARIANT(lane->running == NULL);
    lane->next_round_ns = result > 0 ? 0 : next_round_ns(executor, lane);
    return result >= 0 || result == TIDE_ERROR_TIMEOUT ? TIDE_OK : result;
  }
  while (!leaves(executor, lane)) {
    const bool any = TIDE_LEAN || executor->trigger == tide_trigger_any;
    const int64_t deadline_ns = any ? TIDE_FOREVER : after(now(executor), executor->config.spin_timeout_ns);
    const int result = tide_executor_lane_round(executor, index, deadline_ns);
    if (result < 0 && result != TIDE_ERROR_TIMEOUT) return result;
  }
  return TIDE_OK;
}

int tide_executor_spin(tide_executor_t *executor) {
  return executor != NULL && has_lanes(executor) ? TIDE_ERROR_UNSUPPORTED : tide_executor_spin_lane(executor, 0);
}

void tide_executor_stop(tide_executor_t *executor) {
  __atomic_store_n(&executor->stopped, true, RELEASE);
  tide_executor_wake(executor);
}

/* ---- configuration ---- */

/* Lets the lane join the band of the first lane of the same level, or creates a band with the priorities from this
 * level up to the next. */
static void join_band(tide_executor_t *executor, size_t index) {
  const tide_executor_config_t *config = &executor->config;
  tide_lane_t *lane = &config->lanes[index];
  const uint8_t level = lane->settings.least_level;
  bool lowest = true;
  unsigned above = UINT16_MAX + 1u;
  for (size_t other = 0; TIDE_LANES && other < config->lane_count; other++) {
    const uint8_t others = config->lanes[other].settings.least_level;
    if (others == level && other < index) {
      lane->band = config->lanes[other].band;
      lane->band->only = NULL;
      return;
    }
    lowest = lowest && others >= level;
    if (others > level && TIDE_PRIORITY(others, 0) < above) above = TIDE_PRIORITY(others, 0);
  }
  tide_band_t *band = lane->band = &lane->own_band;
  band->only = lane;
  band->least = lowest ? 0u : TIDE_PRIORITY(level, 0);
  band->most = (tide_priority_t)(above - 1u);
  TIDE_INVARIANT(band->least <= band->most);
  const size_t first = executor->band_count++ * config->callback_count;
  tide_queue_init(&band->ready_list, config->ready_storage + first, config->callback_count);
  tide_queue_init(&band->timer_list, config->timer_storage + first, config->callback_count);
#if TIDE_PATIENCE
  band->patience_ns = config->patience_ns;
#endif
}

static bool is_valid(const tide_executor_config_t *config) {
  const tide_platform_t *platform = config->platform;
  const tide_source_t *source = &config->source;
  const bool complete =
      TIDE_STATIC_PLATFORM || (platform != NULL && platform->now_ns != NULL && platform->critical_enter != NULL &&
                               platform->critical_exit != NULL && platform->event_init != NULL &&
                               platform->event_set != NULL && platform->event_wait != NULL);
  const bool consistent = source->most_urgent == NULL ||
                          (source->process_most_urgent != NULL && (TIDE_LEAN || source->process_oldest != NULL));
  const bool has_storage = config->callbacks != NULL && config->ready_storage != NULL &&
                           config->timer_storage != NULL && config->callback_count > 0u &&
                           config->callback_count <= UINT16_MAX && config->lanes != NULL && config->lane_count > 0u;
#if TIDE_PATIENCE
  if (config->patience_ns < 0) return false;
#endif
  for (size_t index = 0; has_storage && index < config->lane_count; index++) {
    const tide_lane_settings_t *settings = &config->lanes[index].settings;
    if (settings->least_level > TIDE_LEVEL_MAXIMUM || settings->scheduling > TIDE_SCHEDULING_SPORADIC) return false;
  }
  return complete && consistent && has_storage && config->spin_timeout_ns >= 0 &&
         (unsigned)config->policy <= (unsigned)TIDE_POLICY_READYSET;
}

/* True if the policy is compatible with the lanes, the trigger and the callbacks. */
static bool is_possible(const tide_executor_t *executor, tide_policy_t policy) {
  switch (policy) {
    case TIDE_POLICY_TIDE: return true;
    case TIDE_POLICY_BATCH: return !TIDE_LEAN && executor->config.lane_count == 1u;
    case TIDE_POLICY_READYSET:
      return !TIDE_LEAN && executor->band_count == 1u && executor->trigger == tide_trigger_any &&
             executor->always_list == NULL;
  }
  return false;
}

int tide_executor_init(tide_executor_t *executor, const tide_executor_config_t *config) {
  if (!TIDE_LEAN && (executor == NULL || config == NULL || !is_valid(config))) return TIDE_ERROR_ARGUMENT;
  if (config->lane_count > 1u && !TIDE_LANES) return TIDE_ERROR_UNSUPPORTED;
  memset(executor, 0, sizeof *executor);
  executor->config = *config;
  executor->trigger = TIDE_LEAN ? NULL : tide_trigger_any;
  if (!TIDE_STATIC_PLATFORM) {
    const tide_platform_t *platform = config->platform;
    executor->splits = platform->lanes_enter != NULL;
    executor->enter = executor->splits ? platform->lanes_enter : platform->critical_enter;
    executor->exit = executor->splits ? platform->lanes_exit : platform->critical_exit;
  }
  if (config->spin_timeout_ns == 0) executor->config.spin_timeout_ns = DEFAULT_SPIN_TIMEOUT_NS;
  for (size_t index = 0; index < lane_count(executor); index++) {
    tide_lane_t *lane = &config->lanes[index];
    memset(lane, 0, offsetof(tide_lane_t, settings));
    tide_platform_event_init(config->platform, &lane->event);
    join_band(executor, index);
  }
  if (splits(executor) && executor->band_count < config->lane_count) return TIDE_ERROR_UNSUPPORTED;
  return is_possible(executor, config->policy) ? TIDE_OK : TIDE_ERROR_UNSUPPORTED;
}

int tide_executor_set_trigger(tide_executor_t *executor, tide_trigger_t trigger, void *object) {
  if (executor == NULL) return TIDE_ERROR_ARGUMENT;
  const bool any_only = TIDE_LEAN || has_lanes(executor) || is_readyset(executor);
  if (any_only && trigger != NULL && trigger != tide_trigger_any) return TIDE_ERROR_UNSUPPORTED;
  executor->trigger = !TIDE_LEAN && trigger == NULL ? tide_trigger_any : trigger;
  executor->trigger_is_ours = !TIDE_LEAN && (trigger == tide_trigger_all || trigger == tide_trigger_one);
  executor->trigger_object = object;
  tide_executor_wake(executor);
  return TIDE_OK;
}

bool tide_trigger_any(tide_callback_t *const *callbacks, size_t count, void *object) {
  (void)object;
  for (size_t index = 0; index < count; index++)
    if (tide_callback_is_ready(callbacks[index])) return true;
  return false;
}

bool tide_trigger_all(tide_callback_t *const *callbacks, size_t count, void *object) {
  (void)object;
  for (size_t index = 0; index < count; index++)
    if (!tide_callback_is_ready(callbacks[index])) return false;
  return count > 0u;
}

bool tide_trigger_one(tide_callback_t *const *callbacks, size_t count, void *object) {
  for (size_t index = 0; index < count; index++) {
    if (callbacks[index]->handle == object && tide_callback_is_ready(callbacks[index])) return true;
  }
  return false;
}

int tide_executor_set_policy(tide_executor_t *executor, tide_policy_t policy) {
  if (executor == NULL || (unsigned)policy > (unsigned)TIDE_POLICY_READYSET) return TIDE_ERROR_ARGUMENT;
  for (size_t index = 0; index < lane_count(executor); index++) {
    if (__atomic_load_n(&executor->config.lanes[index].busy, ACQUIRE)) return TIDE_ERROR_STATE;
  }
  if (!is_possible(executor, policy)) return TIDE_ERROR_UNSUPPORTED;
  tide_callback_t **callbacks = executor->config.callbacks;
  const uintptr_t locked = lock_lists(executor);
  for (size_t index = 0; index < executor->count; index++) set_leave(callbacks[index]);
  executor->config.policy = policy;
  for (size_t index = 0; index < executor->count; index++) {
    if (callbacks[index]->pending > 0u) enqueue(callbacks[index]);
  }
  unlock_lists(executor, locked);
  return TIDE_OK;
}

void tide_executor_get_counters(tide_executor_t *executor, tide_executor_counters_t *counters) {
  const uintptr_t locked = lock_lists(executor);
  *counters = executor->counters;
  unlock_lists(executor, locked);
}

int tide_executor_get_measurement(tide_executor_t *executor, size_t index, tide_measurement_t *measurement) {
  const uintptr_t locked = lock_lists(executor);
  const bool exists = index < executor->count;
  const tide_measurement_t *found = exists ? executor->config.callbacks[index]->measurement : NULL;
  if (found != NULL) *measurement = *found;
  unlock_lists(executor, locked);
  if (!exists) return TIDE_ERROR_NOT_FOUND;
  return found != NULL;
}

void tide_executor_get_execution(tide_executor_t *executor, const tide_callback_t *callback, uint64_t *runs,
                                 int64_t *longest_ns) {
  const uintptr_t locked = lock_lists(executor);
  *runs = callback->runs;
  *longest_ns = callback->execution_maximum_ns;
  unlock_lists(executor, locked);
}

int tide_executor_get_watch(tide_executor_t *executor, size_t index, const char **name,
                            tide_chain_watch_counters_t *counters) {
  const uintptr_t locked = lock_lists(executor);
  const bool exists = index < executor->count;
  const tide_chain_watch_t *found = exists ? executor->config.callbacks[index]->ends : NULL;
  if (found != NULL) {
    *name = found->name;
    *counters = tide_chain_watch_counters(found);
  }
  unlock_lists(executor, locked);
  if (!exists) return TIDE_ERROR_NOT_FOUND;
  return found != NULL;
}

/* ---- adding and removing callbacks, even while lanes run these callbacks ---- */

/* The stored index is arbitrary if the callback was never added, so it is checked here. Called with the lists locked,
 * as are the following functions up to tide_executor_add. */
static bool is_registered(const tide_executor_t *executor, const tide_callback_t *callback) {
  return callback->index < executor->count && executor->config.callbacks[callback->index] == callback;
}

/* The table agrees with the index and the executor stored in each callback. O(n). */
static bool table_holds(const tide_executor_t *executor) {
  for (size_t index = 0; index < executor->count; index++) {
    const tide_callback_t *callback = executor->config.callbacks[index];
    if (callback->index != index || callback->executor != executor) return false;
  }
  return executor->count <= executor->config.callback_count && executor->ready_count <= executor->count;
}

static int check_addition(const tide_executor_t *executor, const tide_callback_t *callback) {
  const tide_group_t *group = TIDE_LANES ? callback->group : NULL;
  if (group != NULL && group->members > 0u && group->executor != executor) return TIDE_ERROR_ARGUMENT;
  if (is_registered(executor, callback)) return TIDE_ERROR_EXISTS;
  if (callback->always && (TIDE_LEAN || has_lanes(executor) || is_readyset(executor))) {
    return TIDE_ERROR_UNSUPPORTED;
  }
  const bool group_full =
      group != NULL && group->kind == TIDE_GROUP_EXCLUSIVE && group->members == group->waiting.capacity;
  return executor->count == executor->config.callback_count || group_full ? TIDE_ERROR_FULL : TIDE_OK;
}

static void insert(tide_executor_t *executor, tide_callback_t *callback) {
  /* Sets the executor's members. The member `executor` is stored last, because a concurrent notification reads it
   * without the lock. */
  const size_t rest = offsetof(tide_callback_t, band);
  callback->in_round = callback->in_set = callback->arriving = false;
  set_pending(callback, 0u);
  memset((uint8_t *)callback + rest, 0, sizeof *callback - rest);
  callback->ready_entry = (tide_queue_entry_t){0};
  callback->band = band_of(executor, callback->priority);
  callback->index = (uint16_t)executor->count;
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    tide_timer_t *timer = timer_of(callback);
    timer->expiry_entry = (tide_queue_entry_t){0};
    timer->skipped = 0;
    timer->last_call_ns = now(executor);
  }
  /* If a callback is added again while a lane still runs it, that run continues as if the callback had not been
   * removed. */
  for (size_t index = 0; index < lane_count(executor); index++) {
    tide_lane_t *lane = &executor->config.lanes[index];
    if (lane->running == callback) {
      lane->forgotten = false;
      callback->running++;
    }
  }
  executor->config.callbacks[executor->count++] = callback;
  if (TIDE_LANES && callback->group != NULL) {
    callback->group->members++;
    callback->group->executor = executor;
  }
  if (!TIDE_LEAN && callback->always) {
    callback->always_next = executor->always_list;
    __atomic_store_n(&executor->always_list, callback, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&callback->executor, executor, RELEASE);
  TIDE_INVARIANT(table_holds(executor));
}

int tide_executor_add(tide_executor_t *executor, tide_callback_t *callback) {
  if (executor == NULL || callback == NULL || callback->execute == NULL) return TIDE_ERROR_ARGUMENT;
  const uintptr_t locked = lock_lists(executor);
  const int status = check_addition(executor, callback);
  if (status == TIDE_OK) insert(executor, callback);
  unlock_lists(executor, locked);
  return status;
}

/* Never called, because for a timer the lane calls on_expiry, with the time since the previous run. */
static void execute_timer(tide_callback_t *callback, void *context) { (void)callback, (void)context; }

int tide_executor_add_timer(tide_executor_t *executor, tide_timer_t *timer) {
  if (executor == NULL || timer == NULL || timer->on_expiry == NULL || timer->period_ns < 1) return TIDE_ERROR_ARGUMENT;
  timer->callback.kind = TIDE_CALLBACK_TIMER;
  timer->callback.always = false;
  timer->callback.execute = execute_timer;
  const int status = tide_executor_add(executor, &timer->callback);
  return status != TIDE_OK ? status : tide_timer_reset(timer);
}

/* Called with the lists locked, when the callback is no longer ready. */
static void take_out(tide_executor_t *executor, tide_callback_t *callback) {
  TIDE_INVARIANT(callback->pending == 0u && callback->executor == executor);
  if (callback->kind == TIDE_CALLBACK_TIMER) {
    tide_queue_remove(&callback->band->timer_list, &timer_of(callback)->expiry_entry);
  }
  round_forget(callback);
  tide_callback_t **link = &executor->always_list;
  while (*link != NULL && *link != callback) link = &(*link)->always_next;
  if (*link != NULL) __atomic_store_n(link, callback->always_next, __ATOMIC_RELAXED);
  for (size_t index = 0; index < lane_count(executor); index++) {
    tide_lane_t *lane = &executor->config.lanes[index];
    lane->forgotten = lane->forgotten || lane->running == callback;
    if (!TIDE_LEAN) lane->again = 0u; /* because the indexes change */
  }
  if (TIDE_LANES && callback->group != NULL) {
    TIDE_INVARIANT(callback->group->members > 0u && callback->group->offered != callback);
    callback->group->members--;
  }
  /* From here on, notifications find the callback in no executor; earlier ones have no effect. */
  if (splits(executor)) {
    const uintptr_t masked = mask(executor);
    callback->arrived = 0u;
    __atomic_store_n(&callback->executor, NULL, RELEASE);
    unmask(executor, masked);
    take_arrivals(executor); /* empties the list of arrivals, which may contain the callback */
  } else {
    __atomic_store_n(&callback->executor, NULL, RELEASE);
  }
  executor->count--;
  for (size_t later = callback->index; later < executor->count; later++) {
    tide_callback_t *moved = executor->config.callbacks[later] = executor->config.callbacks[later + 1u];
    moved->index = (uint16_t)later;
  }
  for (size_t index = 0; is_readyset(executor) && index < executor->count; index++) {
    tide_callback_t *other = executor->config.callbacks[index];
    if (other->in_set) { /* the key in the set contains the index, which has changed */
      set_leave(other);
      set_admit(other);
    }
  }
  TIDE_INVARIANT(table_holds(executor) && !is_registered(executor, callback));
}

static int remove_callback(tide_executor_t *executor, tide_callback_t *callback, bool idle_only) {
  if (executor == NULL || callback == NULL) return TIDE_ERROR_ARGUMENT;
  int status = TIDE_OK;
  tide_lane_t *next = NULL;
  const uintptr_t locked = lock_lists(executor);
  if (!is_registered(executor, callback)) {
    status = TIDE_ERROR_NOT_FOUND;
  } else if (idle_only && callback->running > 0u) {
    status = TIDE_ERROR_STATE;
  } else {
    clear_ready(callback);
    next = pick_for_group_of(callback);
    take_out(executor, callback);
  }
  unlock_lists(executor, locked);
  tide_exec_wake_lane(executor, next);
  return status;
}

int tide_executor_remove(tide_executor_t *executor, tide_callback_t *callback) {
  return remove_callback(executor, callback, false);
}

int tide_executor_remove_idle(tide_executor_t *executor, tide_callback_t *callback) {
  return remove_callback(executor, callback, true);
}

bool tide_executor_is_running(tide_executor_t *executor, const tide_callback_t *callback) {
  if (executor == NULL || callback == NULL) return false;
  bool running = false;
  const uintptr_t locked = lock_lists(executor);
  for (size_t index = 0; index < lane_count(executor); index++) {
    running = running || executor->config.lanes[index].running == callback;
  }
  unlock_lists(executor, locked);
  return running;
}

void tide_executor_each(tide_executor_t *executor, void (*visit)(tide_callback_t *callback, void *context),
                        void *context) {
  const uintptr_t locked = lock_lists(executor);
  for (size_t index = 0; index < executor->count; index++) visit(executor->config.callbacks[index], context);
  unlock_lists(executor, locked);
}

tide_callback_t *tide_executor_callback_at(tide_executor_t *executor, size_t index) {
  const uintptr_t locked = lock_lists(executor);
  tide_callback_t *callback = index < executor->count ? executor->config.callbacks[index] : NULL;
  unlock_lists(executor, locked);
  return callback;
}

/* Locked. */
static void change_priority(tide_callback_t *callback, tide_priority_t priority) {
  if (is_readyset(callback->executor)) {
    callback->priority = priority; /* only stored, because this policy has one band and ignores priorities */
    return;
  }
  const bool waits = callback->pending > 0u && !is_in_round(callback);
  tide_band_t *band = band_of(callback->executor, priority);
  withdraw(callback);
  callback->priority = priority;
  if (band != callback->band) {
    tide_queue_entry_t *expiry = callback->kind == TIDE_CALLBACK_TIMER ? &timer_of(callback)->expiry_entry : NULL;
    if (expiry != NULL && tide_queue_contains(expiry)) {
      tide_queue_remove(&callback->band->timer_list, expiry);
      const int status = tide_queue_push(&band->timer_list, expiry, expiry->key);
      (void)status;
      TIDE_INVARIANT(status == TIDE_OK);
    }
    callback->band = band;
  }
  if (waits) enqueue(callback);
  TIDE_INVARIANT(queueing_holds(callback));
  TIDE_INVARIANT(priority >= callback->band->least && priority <= callback->band->most);
}

int tide_executor_set_priority(tide_executor_t *executor, tide_callback_t *callback, tide_priority_t priority) {
  if (executor == NULL || callback == NULL) return TIDE_ERROR_ARGUMENT;
  int status = TIDE_ERROR_NOT_FOUND;
  tide_lane_t *lane = NULL, *next = NULL;
  const uintptr_t locked = lock_lists(executor);
  if (callback->executor == executor) {
    take_arrivals(executor);
    const tide_band_t *before = callback->band;
    change_priority(callback, priority);
    lane = callback->band == before ? NULL : pick(callback->band);
    next = pick_for_group_of(callback);
    status = TIDE_OK;
  }
  unlock_lists(executor, locked);
  tide_exec_wake_lane(executor, lane);
  tide_exec_wake_lane(executor, next);
  return status;
}

/* ---- hosts: any number of callbacks, and one thread that runs the rounds of all lanes ---- */

static void move_queue(tide_queue_t *queue, tide_queue_entry_t **storage, size_t capacity) {
  TIDE_INVARIANT(queue->count <= capacity);
  if (queue->count > 0u) memcpy(storage, queue->entries, queue->count * sizeof(tide_queue_entry_t *));
  queue->entries = storage;
  queue->capacity = capacity;
}

int tide_executor_grow(tide_executor_t *executor, tide_callback_t **callbacks, tide_queue_entry_t **ready_storage,
                       tide_queue_entry_t **timer_storage, size_t callback_count) {
  if (executor == NULL || callbacks == NULL || ready_storage == NULL || timer_storage == NULL ||
      callback_count > UINT16_MAX) {
    return TIDE_ERROR_ARGUMENT;
  }
  int status = TIDE_ERROR_ARGUMENT;
  const uintptr_t locked = lock_lists(executor);
  tide_executor_config_t *config = &executor->config;
  if (callback_count >= config->callback_count) {
    memcpy(callbacks, config->callbacks, executor->count * sizeof(tide_callback_t *));
    size_t first = 0; /* bands get their parts of the storage in the order of their first lanes, as in join_band */
    for (size_t index = 0; index < lane_count(executor); index++) {
      const tide_lane_t *lane = &config->lanes[index];
      if (lane->band != &lane->own_band) continue;
      move_queue(&lane->band->ready_list, ready_storage + first, callback_count);
      move_queue(&lane->band->timer_list, timer_storage + first, callback_count);
      first += callback_count;
    }
    config->callbacks = callbacks;
    config->ready_storage = ready_storage;
    config->timer_storage = timer_storage;
    config->callback_count = callback_count;
    status = TIDE_OK;
  }
  unlock_lists(executor, locked);
  return status;
}

int tide_group_grow(tide_executor_t *executor, tide_group_t *group, tide_queue_entry_t **waiting_storage,
                    size_t capacity) {
  if (executor == NULL || group == NULL || waiting_storage == NULL || group->kind != TIDE_GROUP_EXCLUSIVE) {
    return TIDE_ERROR_ARGUMENT;
  }
  int status = TIDE_ERROR_ARGUMENT;
  const uintptr_t locked = lock_lists(executor);
  if (capacity >= group->waiting.capacity) {
    move_queue(&group->waiting, waiting_storage, capacity);
    status = TIDE_OK;
  }
  unlock_lists(executor, locked);
  return status;
}

int64_t tide_executor_next_expiry_ns(tide_executor_t *executor) {
  int64_t next_ns = TIDE_FOREVER;
  const uintptr_t locked = lock_lists(executor);
  for (size_t index = 0; index < lane_count(executor); index++) {
    const tide_queue_entry_t *expiry = tide_queue_head(&executor->config.lanes[index].band->timer_list);
    if (expiry != NULL) next_ns = minimum(next_ns, expiry->key);
  }
  unlock_lists(executor, locked);
  return next_ns;
}

size_t tide_executor_count_starts(tide_executor_t *executor, int64_t now_ns) {
  size_t starts = 0;
  const uintptr_t locked = lock_lists(executor);
  take_arrivals(executor);
  for (size_t index = 0; index < executor->count; index++) {
    tide_callback_t *callback = executor->config.callbacks[index];
    starts += callback->pending;
    if (callback->pending == 0u && callback->kind == TIDE_CALLBACK_TIMER) {
      const tide_timer_t *timer = timer_of(callback);
      starts += tide_queue_contains(&timer->expiry_entry) && timer->next_ns <= now_ns ? 1u : 0u;
    }
  }
  unlock_lists(executor, locked);
  return starts;
}
