/* SPDX-License-Identifier: Apache-2.0 */
/* Two lanes of one band, a more urgent lane that shares a group with them, and the most urgent lane, whose timer
 * preempts. A thread and an interrupt notify callbacks meanwhile. Callbacks pass tokens: each run notifies one other
 * callback, so a lost wake-up stops a token. */
#include "tide_processors.h"

#include <stdio.h>

#include "tide/lock.h"
#include "tide/port.h"
#include "tide/status.h"

#define LANES 4u
#define GROUPED 3u /* the first callbacks form a mutually exclusive group in two bands */
#define PASSING 5u /* callbacks that pass tokens: the grouped ones and two in no group */
#define CALLBACKS 8u
#define TOKENS 4u
#define BANDS 3u
#define PERIOD_NS INT64_C(2000000)
#define SHORT_NS INT64_C(1000000)
#define LOOK_MS 20u
#define PATIENCE 1500u /* number of checks without progress: 30 s */

enum { BY_THREAD = PASSING, BY_INTERRUPT, WITHOUT_TIMER };

static const tide_processors_board_t *board;
static const tide_platform_t *platform;
static tide_processors_found_t result;
static struct {
  void (*run)(void *argument);
  void *argument;
  bool ended;
} threads[TIDE_PROCESSORS_THREADS];

static tide_executor_t executor;
static tide_lane_t lanes[LANES];
static tide_callback_t callbacks[WITHOUT_TIMER], *registered[CALLBACKS];
static tide_timer_t urgent;
static tide_queue_entry_t *ready[BANDS * CALLBACKS], *timers[BANDS * CALLBACKS], *waiting[GROUPED];
static tide_group_t group;
static tide_lock_set_t locks;
static tide_lock_t lock;

static struct {
  uint32_t notified[WITHOUT_TIMER], runs[WITHOUT_TIMER]; /* the members below are atomic */
  bool running[WITHOUT_TIMER];
  uint32_t tokens_run, in_group, in_low, lock_takes;
  uint32_t overlaps, self_overlaps, lock_errors, urgent_runs;
  volatile uint32_t group_runs, locked_runs; /* guarded by the group and by the lock: not atomic */
} seen;
static bool ending;

static uint32_t add(uint32_t *counter, int by) { return __atomic_add_fetch(counter, (uint32_t)by, __ATOMIC_SEQ_CST); }
static bool is_ending(void) { return __atomic_load_n(&ending, __ATOMIC_ACQUIRE); }

/* Print a figure, and whether it has the expected value. */
static void tell(const char *what, uint32_t found, uint32_t wanted) {
  const bool good = found == wanted;
  printf("%s: %lu%s\n", what, (unsigned long)found, good ? "" : " WRONG");
  result.wrong += good ? 0u : 1u;
}

static void run_thread(void *index) {
  const uintptr_t number = (uintptr_t)index;
  threads[number].run(threads[number].argument);
  __atomic_store_n(&threads[number].ended, true, __ATOMIC_RELEASE);
}

static bool start(unsigned index, void (*run)(void *argument), void *argument, bool is_urgent) {
  threads[index].run = run;
  threads[index].argument = argument;
  threads[index].ended = false;
  return board->start_thread(index, run_thread, (void *)(uintptr_t)index, is_urgent);
}

/* Waits until these threads have returned. False: *progress, a counter of the threads, has stopped. */
static bool await(unsigned first, unsigned end, const uint32_t *progress) {
  uint32_t before = 0;
  unsigned idle = 0;
  for (unsigned index = first; index < end && idle < PATIENCE;) {
    if (__atomic_load_n(&threads[index].ended, __ATOMIC_ACQUIRE)) {
      index++;
      continue;
    }
    board->sleep_ms(LOOK_MS);
    const uint32_t now = __atomic_load_n(progress, __ATOMIC_RELAXED);
    idle = now == before ? idle + 1u : 0u;
    before = now;
  }
  if (idle < PATIENCE) board->sleep_ms(LOOK_MS); /* time for the threads themselves to end */
  return idle < PATIENCE;
}

/* ---- the platform: sections exclude each other while threads are switched, and no event is lost ---- */

static volatile uint32_t guarded; /* guarded by the section: not atomic */
static uint32_t done, from_interrupts, overlaps;
static volatile bool inside;
static tide_event_t balls[2];
static uint32_t passed, early;
static bool noisy;

static void add_one(void) {
  const uintptr_t outer = platform->critical_enter(platform->context);
  if (inside) overlaps++;
  inside = true;
  const uint32_t before = guarded;
  const uintptr_t inner = platform->critical_enter(platform->context);
  for (volatile unsigned turn = 0; turn < 5u; turn++) {
  }
  platform->critical_exit(platform->context, inner);
  guarded = before + 1u;
  inside = false;
  platform->critical_exit(platform->context, outer);
}

static void run_sections(void *argument) {
  (void)argument;
  for (uint32_t count = 0; count < board->runs; count++) {
    add_one();
    (void)__atomic_add_fetch(&done, 1u, __ATOMIC_RELAXED);
  }
}

static void add_one_in_interrupt(void) {
  from_interrupts++;
  add_one();
}

/* Two threads that mostly wake each other, so that all processors switch threads. */
static void make_noise(void *argument) {
  tide_event_t *own = &balls[(uintptr_t)argument], *other = &balls[1u - (uintptr_t)argument];
  for (unsigned count = 1; __atomic_load_n(&noisy, __ATOMIC_ACQUIRE); count++) {
    platform->event_set(platform->context, other);
    (void)platform->event_wait(platform->context, own, platform->now_ns(platform->context) + SHORT_NS);
    if (count % 16u == 0u) board->sleep_ms(1); /* so that other threads on this processor also run */
  }
}

static void try_sections(void) {
  noisy = true;
  if (board->start_interrupt != NULL) board->start_interrupt(add_one_in_interrupt);
  for (unsigned index = 0; index < 2u; index++) {
    (void)start(index, run_sections, NULL, false);
    (void)start(2u + index, make_noise, (void *)(uintptr_t)index, true);
  }
  bool good = await(0, 2, &done);
  if (board->start_interrupt != NULL) board->stop_interrupt();
  __atomic_store_n(&noisy, false, __ATOMIC_RELEASE);
  good = await(2, 4, &done) && good;
  tell("threads that ended", good, true);
  tell("sections that overlapped another one", overlaps, 0);
  tell("sections of threads and interrupts", guarded, 2u * board->runs + from_interrupts);
}

/* Every second pass waits with a deadline, so that a set and the end of a wait coincide. */
static void pass(void *argument) {
  const uintptr_t self = (uintptr_t)argument;
  for (uint32_t count = 0; count < board->runs; count++) {
    if (self == 0u) platform->event_set(platform->context, &balls[1]);
    bool came = false;
    while (!came) {
      const int64_t end_ns = count % 2u == 0u ? TIDE_FOREVER : platform->now_ns(platform->context) + SHORT_NS / 10;
      came = platform->event_wait(platform->context, &balls[self], end_ns) != 0;
      if (!came && platform->now_ns(platform->context) < end_ns) (void)__atomic_add_fetch(&early, 1u, __ATOMIC_RELAXED);
    }
    if (self == 0u) continue;
    (void)__atomic_add_fetch(&passed, 1u, __ATOMIC_RELAXED);
    platform->event_set(platform->context, &balls[0]);
  }
}

static void try_events(void) {
  for (unsigned index = 0; index < 2u; index++) platform->event_init(platform->context, &balls[index]);
  for (unsigned index = 0; index < 2u; index++) (void)start(index, pass, (void *)(uintptr_t)index, index > 0u);
  (void)await(0, 2, &passed);
  tell("waits that ended early", early, 0);
  tell("passes between two threads, none lost", passed, board->runs);
}

/* ---- lanes ---- */

static void notify(size_t index) {
  (void)add(&seen.notified[index], 1);
  tide_executor_notify(&callbacks[index]);
}

/* Mostly short runs, so that other threads can interleave. */
static void work(uint32_t number) { board->busy_us(number % 16u == 0u ? 300u : 10u); }

static void use_lock(const tide_callback_t *callback) {
  if (tide_lock_take(&lock, callback) != TIDE_OK) {
    seen.lock_errors++;
    return;
  }
  const uint32_t before = seen.locked_runs;
  board->busy_us(5);
  seen.locked_runs = before + 1u;
  (void)add(&seen.lock_takes, 1);
  if (tide_lock_give(&lock) != TIDE_OK) seen.lock_errors++;
}

static void run_in_group(uint32_t number) {
  if (add(&seen.in_group, 1) != 1u) seen.overlaps++;
  const uint32_t before = seen.group_runs;
  work(number);
  seen.group_runs = before + 1u;
  (void)add(&seen.in_group, -1);
}

static void run_freely(uint32_t number) {
  if (add(&seen.in_low, 1) > 1u) (void)add(&result.parallel, 1);
  work(number);
  (void)add(&seen.in_low, -1);
}

static void run_callback(tide_callback_t *callback, void *context) {
  const size_t index = (size_t)(uintptr_t)context;
  if (__atomic_exchange_n(&seen.running[index], true, __ATOMIC_SEQ_CST)) seen.self_overlaps++;
  const uint32_t number = add(&seen.runs[index], 1);
  if (index < GROUPED) {
    run_in_group(number);
  } else if (index < PASSING) {
    run_freely(number);
  }
  if (number % 3u == 0u) use_lock(callback);
  __atomic_store_n(&seen.running[index], false, __ATOMIC_SEQ_CST);
  if (index >= PASSING) return;
  (void)add(&seen.tokens_run, 1);
  if (!is_ending()) notify((index + 1u + number % 4u) % PASSING);
}

static void on_urgent(tide_timer_t *timer, int64_t since_ns) {
  (void)since_ns;
  const int64_t late_us = (platform->now_ns(platform->context) - timer->callback.ready_ns) / 1000;
  seen.urgent_runs++;
  if (__atomic_load_n(&seen.in_low, __ATOMIC_SEQ_CST) + __atomic_load_n(&seen.in_group, __ATOMIC_SEQ_CST) >= 2u)
    result.preempted++;
  if (late_us > result.urgent_late_us) result.urgent_late_us = (uint32_t)late_us;
}

static void on_interrupt(void) {
  if (!is_ending()) notify(BY_INTERRUPT);
}

/* Models the task of a link: more urgent than all lanes, on another processor. */
static void notify_beside(void *argument) {
  (void)argument;
  while (!is_ending()) {
    notify(BY_THREAD);
    board->busy_us(20);
    board->sleep_ms(1);
  }
}

static uint32_t sum(const uint32_t *counters) {
  uint32_t all = 0;
  for (size_t index = 0; index < WITHOUT_TIMER; index++) all += __atomic_load_n(&counters[index], __ATOMIC_RELAXED);
  return all;
}

/* Waits until there were enough runs, or until progress stops. Then waits until all notified callbacks have run. */
static void end_all(void *argument) {
  (void)argument;
  uint32_t before = 0;
  for (unsigned idle = 0; idle < PATIENCE && before < board->runs;) {
    board->sleep_ms(LOOK_MS);
    const uint32_t now = __atomic_load_n(&seen.tokens_run, __ATOMIC_RELAXED);
    idle = now == before ? idle + 1u : 0u;
    before = now;
  }
  __atomic_store_n(&ending, true, __ATOMIC_RELEASE);
  for (unsigned look = 0; look < 200u && (look < 5u || sum(seen.runs) != sum(seen.notified)); look++)
    board->sleep_ms(LOOK_MS);
  tide_executor_stop(&executor);
}

static int add_callbacks(void) {
  static const uint8_t levels[WITHOUT_TIMER] = {1, 1, 2, 1, 1, 2, 2};
  int status = TIDE_OK;
  for (size_t index = 0; index < WITHOUT_TIMER && status == TIDE_OK; index++) {
    callbacks[index] = (tide_callback_t){.kind = TIDE_CALLBACK_GUARD,
                                         .priority = TIDE_PRIORITY(levels[index], 0),
                                         .execute = run_callback,
                                         .context = (void *)(uintptr_t)index,
                                         .group = index < GROUPED ? &group : NULL};
    status = tide_executor_add(&executor, &callbacks[index]);
    if (status == TIDE_OK) status = tide_lock_allow(&lock, &callbacks[index]);
  }
  urgent = (tide_timer_t){.period_ns = PERIOD_NS, .on_expiry = on_urgent, .callback.priority = TIDE_PRIORITY(3, 0)};
  return status == TIDE_OK ? tide_executor_add_timer(&executor, &urgent) : status;
}

static int set_up(void) {
  static const uint8_t levels[LANES] = {1, 1, 2, 3};
  for (size_t index = 0; index < LANES; index++) {
    const int priority = board->priorities[levels[index] - 1u];
    lanes[index].settings = (tide_lane_settings_t){
        .least_level = levels[index],
        .scheduling = priority == 0 ? TIDE_SCHEDULING_INHERIT : TIDE_SCHEDULING_FIFO,
        .priority = priority,
        .processor = board->pins && index < 2u ? (uint16_t)TIDE_ON_PROCESSOR(index) : (uint16_t)0u,
        .may_run_normally = true};
  }
  const tide_executor_config_t config = {.platform = platform,
                                         .callbacks = registered,
                                         .ready_storage = ready,
                                         .timer_storage = timers,
                                         .callback_count = CALLBACKS,
                                         .lanes = lanes,
                                         .lane_count = LANES};
  int status = tide_executor_init(&executor, &config);
  if (status == TIDE_OK) status = tide_group_init(&group, TIDE_GROUP_EXCLUSIVE, waiting, GROUPED);
  if (status == TIDE_OK) status = tide_lock_set_init(&locks, platform, tide_port_locks());
  if (status == TIDE_OK) status = tide_lock_init(&lock, &locks);
  return status == TIDE_OK ? add_callbacks() : status;
}

static void spin(void *context, size_t index) { (void)tide_executor_spin_lane(context, index); }

static int run_lanes(void) {
  int status = set_up();
  if (status != TIDE_OK) return status;
  for (size_t token = 0; token < TOKENS; token++) notify(token);
  (void)start(0, end_all, NULL, true);
  (void)start(1, notify_beside, NULL, true);
  if (board->start_interrupt != NULL) board->start_interrupt(on_interrupt);
  status = tide_port_run_lanes(lanes, LANES, spin, &executor, NULL);
  if (board->start_interrupt != NULL) board->stop_interrupt();
  (void)await(0, 2, &seen.tokens_run);
  return status;
}

static void judge(int status) {
  if (status != TIDE_OK) printf("lanes: %s\n", tide_status_text(status));
  tell("status of the lanes", (uint32_t)status, TIDE_OK);
  tell("runs of what was notified", sum(seen.runs), sum(seen.notified));
  tell("enough of them", __atomic_load_n(&seen.tokens_run, __ATOMIC_RELAXED) >= board->runs, true);
  tell("callbacks of the group that overlapped", seen.overlaps, 0);
  tell("callbacks that overlapped themselves", seen.self_overlaps, 0);
  tell("runs of the group", seen.group_runs, seen.runs[0] + seen.runs[1] + seen.runs[2]);
  tell("errors of the lock", seen.lock_errors, 0);
  tell("sections of the lock", seen.locked_runs, seen.lock_takes);
  printf("notified by a thread %lu, by an interrupt %lu\n", (unsigned long)seen.runs[BY_THREAD],
         (unsigned long)seen.runs[BY_INTERRUPT]);
  printf("runs beside another one of the band: %lu\n", (unsigned long)result.parallel);
  printf("urgent timer: %lu runs, %lu while two callbacks ran, at most %lu us late\n", (unsigned long)seen.urgent_runs,
         (unsigned long)result.preempted, (unsigned long)result.urgent_late_us);
}

bool tide_processors(const tide_processors_board_t *the_board, tide_processors_found_t *found) {
  board = the_board;
  platform = tide_port_platform();
  for (unsigned index = 0; index < 2u; index++) platform->event_init(platform->context, &balls[index]);
  try_sections();
  try_events();
  judge(run_lanes());
  printf("processors: %s\n", result.wrong == 0u ? "good" : "WRONG");
  if (found != NULL) *found = result;
  return result.wrong == 0u;
}
