/* SPDX-License-Identifier: Apache-2.0 */
/* A sporadic server for each lane with a budget. The kernel notes each switch of threads, so time is charged to the
 * lane that had it; a watchdog of the kernel comes when a budget may be used up or comes back, and a thread above all
 * lanes then sets the priorities. Nothing of the kernel is called from a note but its clocks. */
#include "budgets.h"

#include <limits.h>
#include <nuttx/clock.h>
#include <nuttx/note/note_driver.h>
#include <nuttx/sched.h>
#include <nuttx/spinlock.h>
#include <nuttx/wdog.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "tide/budget.h"
#include "tide/status.h"
#include "tide_nuttx.h"

#ifndef CONFIG_SCHED_INSTRUMENTATION_SWITCH
#error "CONFIG_TIDE_BUDGETS needs CONFIG_SCHED_INSTRUMENTATION_SWITCH: who runs is known from the notes of switches"
#endif
#ifdef CONFIG_SMP
#error "CONFIG_TIDE_BUDGETS is for one processor"
#endif
#if defined(CONFIG_DRIVERS_NOTERAM) && CONFIG_DRIVERS_NOTE_MAX < 2
#error "No place for notes of tide: switch off CONFIG_DRIVERS_NOTERAM, or set CONFIG_DRIVERS_NOTE_MAX to 2"
#endif

#define SECOND_NS INT64_C(1000000000)
#define TICK_NS ((int64_t)CONFIG_USEC_PER_TICK * 1000)
/* The longest pause between looks. Each charges whoever was running, so that no slice is longer than what a counter of
 * 32 bits can tell. */
#define LOOK_NS SECOND_NS
#define UNCOUNTED ULONG_MAX /* the frequency of a counter that nobody has set going */

typedef struct lane_budget {
  tide_budget_t budget;
  tide_replenishment_t replenishments[CONFIG_TIDE_REPLENISHMENTS];
  tide_lane_t *lane;
  size_t index;
  struct tcb_s *tcb; /* null: its thread does not run it */
  pthread_t thread;
  bool running;        /* has the processor */
  unsigned long since; /* of the kernel's counter: charged up to here */
  int32_t applied;
} lane_budget_t;

static struct {
  lane_budget_t lanes[TIDE_NUTTX_LANES];
  size_t count;
  int64_t look_ns; /* that the watchdog is set for */
  bool asked;      /* the thread is woken, or about to be */
  bool started, stop;
  sem_t look;
  pthread_t thread;
  tide_event_t unused; /* see set_priorities */
} all;

static spinlock_t lock;
static struct wdog_s watchdog;

static const tide_platform_t *platform; /* asked for once: that may wait, and a note must not */

static int64_t clock_ns(void) { return platform->now_ns(platform->context); }

/* ---- with interrupts masked ---- */

static int64_t take_consumed_locked(lane_budget_t *lane) {
  if (!lane->running) return 0;
  const unsigned long now = (unsigned long)perf_gettime();
  struct timespec consumed;
  perf_convert((clock_t)(now - lane->since), &consumed);
  lane->since = now;
  return (int64_t)consumed.tv_sec * SECOND_NS + consumed.tv_nsec;
}

/* True: the thread has to be woken, which is done with interrupts let in, for then it runs at once. */
static bool ask_locked(void) {
  const bool first = !all.asked;
  all.asked = true;
  return first;
}

static void on_alarm(wdparm_t unused) {
  (void)unused;
  const irqstate_t state = spin_lock_irqsave(&lock);
  all.look_ns = TIDE_FOREVER;
  const bool ask = ask_locked();
  spin_unlock_irqrestore(&lock, state);
  if (ask) (void)sem_post(&all.look);
}

/* When the budget can be used up, or comes back. */
static int64_t next_look_ns(const tide_budget_t *budget) {
  if (!budget->high) return tide_budget_deadline_ns(budget);
  if (!budget->ready) return TIDE_FOREVER;
  return budget->now_ns + tide_budget_available_ns(budget);
}

/* An alarm that is earlier than needed stays: its look sets the next. The watchdog comes at
 * the first tick that is later than its delay: up to one too early, and then the next is right. */
static void arm_locked(int64_t look_ns) {
  if (look_ns >= all.look_ns || all.stop) return;
  const int64_t now_ns = clock_ns();
  if (look_ns > now_ns + LOOK_NS) look_ns = now_ns + LOOK_NS;
  all.look_ns = look_ns;
  (void)wd_start(&watchdog, look_ns > now_ns ? (clock_t)((look_ns - now_ns - 1) / TICK_NS) : 0, on_alarm, 0);
}

/* After an event of the lane. True: as ask_locked. */
static bool settle_locked(const lane_budget_t *lane) {
  if (tide_budget_priority(&lane->budget) != lane->applied) return ask_locked();
  arm_locked(next_look_ns(&lane->budget));
  return false;
}

/* ---- what the kernel notes ---- */

static lane_budget_t *lane_of_locked(const struct tcb_s *tcb) {
  for (size_t index = 0; index < all.count; index++)
    if (all.lanes[index].tcb == tcb) return &all.lanes[index];
  return NULL;
}

static void on_suspend(struct note_driver_s *driver, struct tcb_s *tcb) {
  (void)driver;
  const irqstate_t state = spin_lock_irqsave(&lock);
  lane_budget_t *lane = lane_of_locked(tcb);
  if (lane != NULL) {
    tide_budget_preempt(&lane->budget, take_consumed_locked(lane), clock_ns());
    lane->running = false;
  }
  spin_unlock_irqrestore(&lock, state);
}

static void on_resume(struct note_driver_s *driver, struct tcb_s *tcb) {
  (void)driver;
  const irqstate_t state = spin_lock_irqsave(&lock);
  lane_budget_t *lane = lane_of_locked(tcb);
  if (lane != NULL) {
    lane->running = true;
    lane->since = (unsigned long)perf_gettime();
    tide_budget_run(&lane->budget, clock_ns());
  }
  spin_unlock_irqrestore(&lock, state);
}

static const struct note_driver_ops_s operations = {.suspend = on_suspend, .resume = on_resume};
static struct note_driver_s driver = {
#ifdef CONFIG_SCHED_INSTRUMENTATION_FILTER
    .name = "tide",
    .filter = {.mode = {.flag = NOTE_FILTER_MODE_FLAG_ENABLE | NOTE_FILTER_MODE_FLAG_SWITCH}},
#endif
    .ops = &operations,
};

/* ---- what a lane says ---- */

static void hook_ready(void *context) {
  lane_budget_t *lane = context;
  bool ask = false;
  const irqstate_t state = spin_lock_irqsave(&lock);
  if (!lane->budget.ready) {
    (void)take_consumed_locked(lane); /* of its wait */
    tide_budget_ready(&lane->budget, clock_ns());
    if (lane->running) tide_budget_run(&lane->budget, lane->budget.now_ns);
    ask = settle_locked(lane);
  }
  spin_unlock_irqrestore(&lock, state);
  if (ask) (void)sem_post(&all.look);
}

static void hook_block(void *context) {
  lane_budget_t *lane = context;
  bool ask = false;
  const irqstate_t state = spin_lock_irqsave(&lock);
  if (lane->budget.ready) {
    tide_budget_block(&lane->budget, take_consumed_locked(lane), clock_ns());
    ask = settle_locked(lane);
  }
  spin_unlock_irqrestore(&lock, state);
  if (ask) (void)sem_post(&all.look);
}

static void hook_read(void *context, tide_budget_counters_t *counters, bool *high) {
  const lane_budget_t *lane = context;
  const irqstate_t state = spin_lock_irqsave(&lock);
  *counters = lane->budget.counters;
  *high = lane->budget.high;
  spin_unlock_irqrestore(&lock, state);
}

/* ---- the thread above all lanes ---- */

/* A priority that the kernel has lent to the lane, since a more urgent thread waits for it, stays. */
static void set_priority(const lane_budget_t *lane) {
#ifdef CONFIG_PRIORITY_INHERITANCE
  const irqstate_t state = spin_lock_irqsave(&lock);
  const bool lent = lane->tcb != NULL && lane->tcb->sched_priority > lane->tcb->base_priority;
  const bool stays = lent && lane->tcb->sched_priority > lane->applied;
  if (stays) lane->tcb->base_priority = (uint8_t)lane->applied;
  spin_unlock_irqrestore(&lock, state);
  if (stays) return;
#endif
  const struct sched_param parameters = {.sched_priority = lane->applied};
  (void)pthread_setschedparam(lane->thread, SCHED_FIFO, &parameters);
}

static bool look_at(lane_budget_t *lane) {
  const irqstate_t state = spin_lock_irqsave(&lock);
  tide_budget_account(&lane->budget, take_consumed_locked(lane), clock_ns());
  const int32_t wanted = tide_budget_priority(&lane->budget);
  const bool changes = lane->tcb != NULL && wanted != lane->applied;
  if (changes) lane->applied = wanted;
  spin_unlock_irqrestore(&lock, state);
  return changes;
}

static bool some_differ(void) {
  const irqstate_t state = spin_lock_irqsave(&lock);
  bool differ = false;
  for (size_t index = 0; index < all.count; index++) {
    const lane_budget_t *lane = &all.lanes[index];
    if (lane->tcb != NULL && tide_budget_priority(&lane->budget) != lane->applied) differ = true;
  }
  spin_unlock_irqrestore(&lock, state);
  return differ;
}

/* The kernel forgets what it has lent when a priority is set, and lends nothing to who falls later. So nobody falls
 * inside of a section of the runtime, where others would wait for it: the thread itself goes through both locks of the
 * platform first. */
static void set_priorities(void) {
  const uintptr_t state = platform->critical_enter(platform->context);
  platform->event_set(platform->context, &all.unused);
  for (size_t index = 0; index < all.count; index++)
    if (look_at(&all.lanes[index])) set_priority(&all.lanes[index]);
  platform->critical_exit(platform->context, state);
}

void tide_nuttx_budgets_look(void) {
  irqstate_t state = spin_lock_irqsave(&lock);
  all.asked = false;
  const int64_t now_ns = clock_ns();
  for (size_t index = 0; index < all.count; index++) {
    lane_budget_t *lane = &all.lanes[index];
    tide_budget_account(&lane->budget, take_consumed_locked(lane), now_ns);
  }
  spin_unlock_irqrestore(&lock, state);
  if (some_differ()) set_priorities();
  state = spin_lock_irqsave(&lock);
  for (size_t index = 0; index < all.count; index++) arm_locked(next_look_ns(&all.lanes[index].budget));
  spin_unlock_irqrestore(&lock, state);
}

static void *keep_budgets(void *argument) {
  while (!__atomic_load_n(&all.stop, __ATOMIC_ACQUIRE)) {
    if (sem_wait(&all.look) == 0) tide_nuttx_budgets_look();
  }
  return argument;
}

/* ---- between the lanes and the thread ---- */

static bool is_counted(void) { return perf_getfreq() > 0u && perf_getfreq() != UNCOUNTED; }

static bool is_registered(void) {
  static bool registered; /* for good: NuttX has no way back */
  if (!registered) registered = note_driver_register(&driver) == 0;
  return registered;
}

static bool start_thread(void) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  const struct sched_param parameters = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
  (void)pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  (void)pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
  (void)pthread_attr_setschedparam(&attributes, &parameters);
  (void)pthread_attr_setstacksize(&attributes, CONFIG_TIDE_BUDGETS_STACKSIZE);
  const int error = pthread_create(&all.thread, &attributes, keep_budgets, NULL);
  (void)pthread_attr_destroy(&attributes);
  return error == 0;
}

int tide_nuttx_budgets_start(void) {
  if (all.started) return TIDE_ERROR_STATE;
  if (!is_counted()) return TIDE_ERROR_UNSUPPORTED;
  if (!is_registered()) return TIDE_ERROR_FULL;
  platform = tide_port_platform();
  memset(&all, 0, sizeof all);
  all.look_ns = TIDE_FOREVER;
  platform->event_init(platform->context, &all.unused);
  (void)sem_init(&all.look, 0, 0);
  (void)sem_setprotocol(&all.look, SEM_PRIO_NONE); /* who posts it is nobody's holder */
  all.started = start_thread();
  if (!all.started) (void)sem_destroy(&all.look);
  return all.started ? TIDE_OK : TIDE_ERROR_FULL;
}

int tide_nuttx_budgets_add(tide_lane_t *lane, size_t index) {
  const tide_lane_settings_t *settings = &lane->settings;
  const int32_t least = sched_get_priority_min(SCHED_FIFO), most = sched_get_priority_max(SCHED_FIFO);
  if (settings->priority >= most || settings->low_priority < 0) return TIDE_ERROR_ARGUMENT;
  if (settings->maximum_replenishments > CONFIG_TIDE_REPLENISHMENTS) return TIDE_ERROR_FULL;
  lane_budget_t *place = &all.lanes[all.count];
  const uint16_t replenishments =
      settings->maximum_replenishments > 0u ? settings->maximum_replenishments : (uint16_t)CONFIG_TIDE_REPLENISHMENTS;
  const tide_budget_config_t config = {.priority = settings->priority,
                                       .low_priority = settings->low_priority < least ? least : settings->low_priority,
                                       .budget_ns = settings->runtime_ns,
                                       .period_ns = settings->period_ns,
                                       .replenishments = place->replenishments,
                                       .maximum_replenishments = replenishments};
  const int status = tide_budget_init(&place->budget, &config, clock_ns());
  if (status != TIDE_OK) return status;
  place->lane = lane;
  place->index = index;
  place->applied = settings->priority;
  lane->budget = (tide_budget_hooks_t){.context = place, .ready = hook_ready, .block = hook_block, .read = hook_read};
  all.count++;
  return TIDE_OK;
}

static lane_budget_t *place_of(size_t index) {
  for (size_t place = 0; place < all.count; place++)
    if (all.lanes[place].index == index) return &all.lanes[place];
  return NULL;
}

void tide_nuttx_budgets_begin(size_t index) {
  lane_budget_t *lane = place_of(index);
  if (lane == NULL) return;
  const irqstate_t state = spin_lock_irqsave(&lock);
  lane->thread = pthread_self();
  lane->tcb = nxsched_self();
  lane->running = true;
  spin_unlock_irqrestore(&lock, state);
  hook_ready(lane);
}

void tide_nuttx_budgets_end(size_t index) {
  lane_budget_t *lane = place_of(index);
  if (lane == NULL) return;
  hook_block(lane);
  const irqstate_t state = spin_lock_irqsave(&lock);
  lane->tcb = NULL;
  lane->running = false;
  spin_unlock_irqrestore(&lock, state);
}

void tide_nuttx_budgets_stop(void) {
  if (!all.started) return;
  irqstate_t state = spin_lock_irqsave(&lock);
  __atomic_store_n(&all.stop, true, __ATOMIC_RELEASE);
  spin_unlock_irqrestore(&lock, state);
  (void)wd_cancel(&watchdog);
  (void)sem_post(&all.look);
  (void)pthread_join(all.thread, NULL);
  (void)sem_destroy(&all.look);
  for (size_t place = 0; place < all.count; place++) all.lanes[place].lane->budget = (tide_budget_hooks_t){0};
  all.started = false;
}

const tide_budget_t *tide_nuttx_lane_budget(size_t lane) {
  const lane_budget_t *place = place_of(lane);
  return place != NULL ? &place->budget : NULL;
}
