/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include "platform.h"
#include "software.h"
#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"

#if !TIDE_LANES || TIDE_SINGLE_CONTEXT

/* Without preemption: one lane, run in the caller's loop. */
int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || run == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > 1u || lanes[0].settings.scheduling != TIDE_SCHEDULING_INHERIT) {
    if (refused != NULL) *refused = count > 1u ? 1u : 0u;
    return TIDE_ERROR_UNSUPPORTED;
  }
  run(context, 0u);
  return TIDE_OK;
}

#else

#define LANES_MAXIMUM TIDE_SOFTWARE_LINK
#define NOBODY SIZE_MAX
#define INHERITED_PRIORITY INT32_MIN

static struct {
  tide_lane_t *lanes; /* null: no lanes run */
  size_t count, over;
  void (*run)(void *context, size_t index);
  void *context;
  size_t below[LANES_MAXIMUM]; /* index of the lane that this lane has preempted */
  size_t on_top;               /* the lane that runs, preempted by nothing but interrupts */
  int64_t since_ns;            /* time up to which the running lane has been charged */
  tide_event_t ended;
} all = {.on_top = NOBODY};

static uintptr_t enter(void) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->critical_enter(platform->context);
}

static void leave(uintptr_t state) {
  const tide_platform_t *platform = tide_port_platform();
  platform->critical_exit(platform->context, state);
}

static int64_t now_ns(void) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->now_ns(platform->context);
}

/* ---- budgets; all in the critical section ---- */

static size_t budget_count(void) { return &tide_lane_budgets != NULL ? tide_lane_budgets.count : 0u; }

static tide_lane_budget_t *budget_of(size_t lane) {
  for (size_t index = 0; index < budget_count(); index++) {
    if (tide_lane_budgets.budgets[index].lane == lane) return &tide_lane_budgets.budgets[index];
  }
  return NULL;
}

const tide_budget_t *tide_port_lane_budget(size_t lane) {
  const tide_lane_budget_t *budget = budget_of(lane);
  return budget == NULL ? NULL : &budget->budget;
}

/* Sets the lane's hardware priority after an event of its budget, whose priorities are negated hardware priorities. */
static void apply(tide_lane_budget_t *budget) {
  NVIC_PRIORITY[tide_software_number(budget->lane)] = (uint8_t)-tide_budget_priority(&budget->budget);
  budget->look_ns = tide_budget_deadline_ns(&budget->budget);
  tide_software_look_by(budget->look_ns);
}

/* Time that the lane on top has used since the last charge. */
static int64_t used_ns(int64_t time_ns) {
  const int64_t used = time_ns - all.since_ns;
  all.since_ns = time_ns;
  return used;
}

/* True if the callback of `budget` has preempted this lane, even before the lane's handler began or after it ended.
 * Only the state of the interrupts shows lanes outside of their handlers. */
static bool is_below_on_stack(size_t lane, const tide_lane_budget_t *budget) {
  const uint32_t number = tide_software_number(lane);
  const bool active = (NVIC_ACTIVE[number / 32u] & 1u << (number % 32u)) != 0u;
  const bool less_urgent = NVIC_PRIORITY[number] > (uint8_t)-budget->budget.config.priority;
  bool below = active && less_urgent && lane != budget->lane;
  for (size_t next = all.below[budget->lane]; next != NOBODY && !below; next = all.below[next]) below = next == lane;
  return below;
}

/* The budget is exhausted within a callback, and lanes that the callback has preempted cannot continue before it
 * returns. If a preempted lane is now more urgent, the exhausted lane inherits that priority. The time until its
 * callback returns is deducted from the exhausted lane's next portions. */
static bool borrows(tide_lane_budget_t *budget, int64_t used) {
  const uint8_t low = (uint8_t)-budget->budget.config.low_priority;
  uint8_t priority = low;
  if (!budget->budget.high || used < tide_budget_available_ns(&budget->budget)) return false;
  for (size_t lane = 0; lane < all.count; lane++) {
    const uint8_t other = NVIC_PRIORITY[tide_software_number(lane)];
    if (other < priority && is_below_on_stack(lane, budget)) priority = other;
  }
  if (priority == low) return false;
  budget->borrowing = true;
  budget->borrowed_ns = used;
  budget->look_ns = TIDE_FOREVER;
  NVIC_PRIORITY[tide_software_number(budget->lane)] = priority;
  return true;
}

static void look_at_budget(tide_lane_budget_t *budget, int64_t time_ns) {
  const int64_t used = budget->lane == all.on_top ? used_ns(time_ns) : 0;
  if (borrows(budget, used)) return;
  tide_budget_account(&budget->budget, used, time_ns);
  apply(budget);
}

/* Call when another lane preempts the lane on top. */
static void stop_on_top(int64_t time_ns) {
  tide_lane_budget_t *budget = all.on_top == NOBODY ? NULL : budget_of(all.on_top);
  const int64_t used = used_ns(time_ns);
  if (budget == NULL) return;
  if (budget->borrowing) {
    budget->borrowed_ns += used;
    return;
  }
  if (borrows(budget, used)) return;
  tide_budget_preempt(&budget->budget, used, time_ns);
  apply(budget);
}

static void run_on_top(size_t lane, int64_t time_ns) {
  all.on_top = lane;
  tide_lane_budget_t *budget = lane == NOBODY ? NULL : budget_of(lane);
  if (budget == NULL || budget->borrowing) return;
  tide_budget_ready(&budget->budget, time_ns);
  tide_budget_run(&budget->budget, time_ns);
  apply(budget);
}

/* Call when the lane on top returns; `more`: this lane has more work. */
static void finish_on_top(bool more, int64_t time_ns) {
  tide_lane_budget_t *budget = budget_of(all.on_top);
  int64_t used = used_ns(time_ns);
  if (budget == NULL) return;
  used += budget->borrowed_ns;
  budget->borrowed_ns = 0;
  budget->borrowing = false;
  if (more) {
    tide_budget_preempt(&budget->budget, used, time_ns);
  } else {
    tide_budget_block(&budget->budget, used, time_ns);
  }
  apply(budget);
}

static int64_t look_at_budgets(int64_t time_ns) {
  int64_t next_ns = TIDE_FOREVER;
  for (size_t index = 0; index < budget_count(); index++) {
    tide_lane_budget_t *budget = &tide_lane_budgets.budgets[index];
    if (budget->look_ns <= time_ns) look_at_budget(budget, time_ns);
    if (budget->look_ns < next_ns) next_ns = budget->look_ns;
  }
  return next_ns;
}

/* ---- the handlers ---- */

static void begin(size_t index) {
  const uintptr_t state = enter();
  const int64_t time_ns = now_ns();
  all.below[index] = all.on_top;
  stop_on_top(time_ns);
  run_on_top(index, time_ns);
  leave(state);
}

static void end(size_t index) {
  const tide_lane_t *lane = &all.lanes[index];
  const uintptr_t state = enter();
  const int64_t time_ns = now_ns();
  const bool more = !lane->over && lane->next_round_ns == 0;
  finish_on_top(more, time_ns);
  if (more) tide_cortex_m_pend(tide_software_number(index));
  tide_software_wake_at(index, more || lane->over ? TIDE_FOREVER : lane->next_round_ns);
  run_on_top(all.below[index], time_ns);
  leave(state);
}

static void run_lane(size_t index) {
  const tide_platform_t *platform = tide_port_platform();
  if (index >= all.count || all.lanes[index].over) return;
  begin(index);
  all.run(all.context, index);
  end(index);
  if (all.lanes[index].over && ++all.over == all.count) platform->event_set(platform->context, &all.ended);
}

/* ---- set-up ---- */

typedef struct rank {
  int32_t priority;
  uint8_t level;
} rank_t;

static rank_t rank_of(const tide_lane_settings_t *settings, bool low) {
  const int32_t priority = low ? settings->low_priority : settings->priority;
  const bool inherits = settings->scheduling == TIDE_SCHEDULING_INHERIT;
  return (rank_t){inherits ? INHERITED_PRIORITY : priority, settings->least_level};
}

static bool is_below(rank_t left, rank_t right) {
  return left.priority != right.priority ? left.priority < right.priority : left.level < right.level;
}

/* Hardware priority: as many steps above the least urgent priority as there are lower ranks. All hardware priorities
 * differ, because among interrupts of equal priority the hardware always prefers the same one. */
static uint32_t priority_of(const tide_lane_t *lanes, size_t count, rank_t rank) {
  uint32_t priority = TIDE_LANE_PRIORITY_LEAST;
  for (size_t index = 0; index < count; index++) {
    const tide_lane_settings_t *settings = &lanes[index].settings;
    const bool has_low = settings->scheduling == TIDE_SCHEDULING_SPORADIC;
    if (is_below(rank_of(settings, false), rank)) priority -= TIDE_LANE_PRIORITY_STEP;
    if (has_low && is_below(rank_of(settings, true), rank)) priority -= TIDE_LANE_PRIORITY_STEP;
  }
  return priority;
}

static int check(const tide_lane_t *lanes, size_t index) {
  const tide_lane_settings_t *settings = &lanes[index].settings;
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_INHERIT:
    case TIDE_SCHEDULING_FIFO:
    case TIDE_SCHEDULING_SPORADIC: break;
    default: return TIDE_ERROR_UNSUPPORTED;
  }
  if (settings->processor > 1u) return TIDE_ERROR_ARGUMENT;
  for (size_t other = 0; other < index; other++) {
    if (lanes[other].settings.least_level == settings->least_level) return TIDE_ERROR_UNSUPPORTED;
  }
  return index < LANES_MAXIMUM ? TIDE_OK : TIDE_ERROR_FULL;
}

static int give_budget(const tide_lane_t *lanes, size_t count, size_t index) {
  const tide_lane_settings_t *settings = &lanes[index].settings;
  tide_lane_budget_t *budget = budget_of(NOBODY);
  if (budget == NULL) return TIDE_ERROR_FULL;
  const uint16_t each = tide_lane_budgets.each, wanted = settings->maximum_replenishments;
  const size_t first = (size_t)(budget - tide_lane_budgets.budgets) * each;
  const uint32_t high = priority_of(lanes, count, rank_of(settings, false));
  const uint32_t low = priority_of(lanes, count, rank_of(settings, true));
  const tide_budget_config_t config = {.priority = -(int32_t)high,
                                       .low_priority = -(int32_t)low,
                                       .budget_ns = settings->runtime_ns,
                                       .period_ns = settings->period_ns,
                                       .replenishments = tide_lane_budgets.replenishments + first,
                                       .maximum_replenishments = wanted == 0u || wanted > each ? each : wanted};
  const int status = tide_budget_init(&budget->budget, &config, now_ns());
  if (status != TIDE_OK) return status;
  budget->lane = index;
  return TIDE_OK;
}

static int prepare(tide_lane_t *lanes, size_t count, size_t index) {
  const tide_lane_settings_t *settings = &lanes[index].settings;
  const int status = check(lanes, index);
  if (status != TIDE_OK) return status;
  if (priority_of(lanes, count, rank_of(settings, false)) < TIDE_LANE_PRIORITY_MOST) return TIDE_ERROR_FULL;
  return settings->scheduling == TIDE_SCHEDULING_SPORADIC ? give_budget(lanes, count, index) : TIDE_OK;
}

static int prepare_all(tide_lane_t *lanes, size_t count, size_t *refused) {
  for (size_t index = 0; index < budget_count(); index++) {
    tide_lane_budgets.budgets[index] = (tide_lane_budget_t){.lane = NOBODY, .look_ns = TIDE_FOREVER};
  }
  for (size_t index = 0; index < count; index++) {
    const int status = prepare(lanes, count, index);
    if (status == TIDE_OK) continue;
    if (refused != NULL) *refused = index;
    return status;
  }
  return TIDE_OK;
}

static void start(void) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t state = enter();
  platform->event_init(platform->context, &all.ended);
  all.over = 0;
  for (size_t index = 0; index < all.count; index++) {
    tide_lane_t *lane = &all.lanes[index];
    lane->returns = true;
    lane->over = false;
    lane->event.port = (void *)(uintptr_t)tide_software_number(index);
    tide_software_start(index, priority_of(all.lanes, all.count, rank_of(&lane->settings, false)), run_lane);
    tide_cortex_m_pend(tide_software_number(index));
  }
  for (size_t index = 0; index < budget_count(); index++) {
    if (tide_lane_budgets.budgets[index].lane != NOBODY) apply(&tide_lane_budgets.budgets[index]);
  }
  tide_software_look(look_at_budgets);
  leave(state);
}

static void stop(void) {
  tide_software_look(NULL);
  for (size_t index = 0; index < all.count; index++) {
    tide_software_stop(index);
    all.lanes[index].returns = false;
    all.lanes[index].event.port = NULL;
  }
  all.lanes = NULL;
}

/* Starts the interrupts of all lanes; the main program sleeps until they have ended. */
int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*run)(void *context, size_t index), void *context,
                        size_t *refused) {
  const tide_platform_t *platform = tide_port_platform();
  if (lanes == NULL || count == 0u || run == NULL) return TIDE_ERROR_ARGUMENT;
  if (all.lanes != NULL) return TIDE_ERROR_STATE;
  const int status = prepare_all(lanes, count, refused);
  if (status != TIDE_OK) return status;
  all.lanes = lanes;
  all.count = count;
  all.run = run;
  all.context = context;
  start();
  while (platform->event_wait(platform->context, &all.ended, TIDE_FOREVER) == 0) {}
  stop();
  return TIDE_OK;
}

#endif

/* ---- locks: BASEPRI masks the lanes up to the lock's ceiling, but not the link and more urgent lanes. The main
 * program, which has no lane, is below all of them ---- */

#define EXCEPTIONS 16u /* before the first interrupt */

static const void *lock_current(void *context) {
  static const char main_program, lanes[TIDE_SOFTWARE_LINK];
  uint32_t number;
  (void)context;
  __asm volatile("mrs %0, ipsr" : "=r"(number));
  if (number == 0u) return &main_program;
  const uint32_t lane = number - EXCEPTIONS - TIDE_SOFTWARE_INTERRUPT_FIRST;
  return lane < TIDE_SOFTWARE_LINK ? &lanes[lane] : NULL;
}

/* While lanes run, a lane's event has the number of its interrupt. A lane that runs alone in the main program has none,
 * and needs no masking. */
static int lock_raise(void *context, const tide_lane_t *lane, uintptr_t *before) {
  const uint32_t number = (uint32_t)(uintptr_t)lane->event.port;
  uint32_t was;
  (void)context;
  __asm volatile("mrs %0, basepri" : "=r"(was));
  *before = was;
  if (lane->returns) {
    const uint32_t priority = NVIC_PRIORITY[number];
    __asm volatile("msr basepri_max, %0\n isb" ::"r"(priority) : "memory");
  }
  return 0;
}

static void lock_restore(void *context, uintptr_t before) {
  const uint32_t priority = (uint32_t)before;
  (void)context;
  __asm volatile("msr basepri, %0" ::"r"(priority) : "memory");
}

const tide_lock_port_t *tide_port_locks(void) {
  static const tide_lock_port_t port = {
      .current = lock_current, .raise = lock_raise, .restore = lock_restore, .may_wait = false};
  return &port;
}
