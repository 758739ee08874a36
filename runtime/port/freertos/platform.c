/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section and events on FreeRTOS, for tasks and interrupts alike. */
#include "budgets.h"

#define SECOND_NS INT64_C(1000000000)
#define SLEEP_MAXIMUM_NS (1000 * SECOND_NS) /* a longer sleep looks again in between */

/* A critical section of a task counts its depth by itself; one of an interrupt gets back what it found. */
#if TIDE_FREERTOS_SPINLOCK
static portMUX_TYPE lock = portMUX_INITIALIZER_UNLOCKED;
#define ENTER_CRITICAL() portENTER_CRITICAL(&lock)
#define EXIT_CRITICAL() portEXIT_CRITICAL(&lock)
static UBaseType_t enter_from_interrupt(void) {
  portENTER_CRITICAL_ISR(&lock);
  return 0;
}
static void exit_from_interrupt(UBaseType_t state) {
  (void)state;
  portEXIT_CRITICAL_ISR(&lock);
}
#else
#define ENTER_CRITICAL() taskENTER_CRITICAL()
#define EXIT_CRITICAL() taskEXIT_CRITICAL()
static UBaseType_t enter_from_interrupt(void) { return taskENTER_CRITICAL_FROM_ISR(); }
static void exit_from_interrupt(UBaseType_t state) { taskEXIT_CRITICAL_FROM_ISR(state); }
#endif

static uintptr_t critical_enter(void *context) {
  (void)context;
  if (TIDE_FREERTOS_IN_INTERRUPT()) return (uintptr_t)enter_from_interrupt();
  ENTER_CRITICAL();
  return 0u;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  if (TIDE_FREERTOS_IN_INTERRUPT()) {
    exit_from_interrupt((UBaseType_t)state);
  } else {
    EXIT_CRITICAL();
  }
}

/* On one core a suspended scheduler keeps out every other task and lets interrupts in. */
#if TIDE_FREERTOS_CORES == 1
static uintptr_t lanes_enter(void *context) {
  (void)context;
  if (TIDE_FREERTOS_IN_INTERRUPT()) return 0u;
  vTaskSuspendAll();
  return 1u;
}

static void lanes_exit(void *context, uintptr_t state) {
  (void)context;
  if (state != 0u) (void)xTaskResumeAll();
}
#define LANES_ENTER lanes_enter
#define LANES_EXIT lanes_exit
#else
#define LANES_ENTER NULL
#define LANES_EXIT NULL
#endif

#if TIDE_FREERTOS_CLOCK
static int64_t now_ns(void *context) {
  (void)context;
  return tide_freertos_clock_ns();
}
#else
static struct {
  TickType_t last;
  uint64_t rounds; /* of the tick counter, in ticks */
} tick_clock;

/* Exact where a tick is no whole number of nanoseconds, too. */
static int64_t time_of(uint64_t ticks) {
  const uint64_t rate = (uint64_t)configTICK_RATE_HZ;
  if ((uint64_t)SECOND_NS % rate == 0u) return (int64_t)(ticks * ((uint64_t)SECOND_NS / rate));
  return (int64_t)(ticks / rate * (uint64_t)SECOND_NS + ticks % rate * (uint64_t)SECOND_NS / rate);
}

/* In the critical section, so that two callers see a round end once, and in order. */
static int64_t now_ns(void *context) {
  const uintptr_t state = critical_enter(context);
  const TickType_t ticks = TIDE_FREERTOS_IN_INTERRUPT() ? xTaskGetTickCountFromISR() : xTaskGetTickCount();
  if (ticks < tick_clock.last) tick_clock.rounds += (uint64_t)portMAX_DELAY + 1u;
  tick_clock.last = ticks;
  const uint64_t whole = tick_clock.rounds + ticks;
  critical_exit(context, state);
  return time_of(whole);
}
#endif

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0u;
  event->port = NULL;
}

static void wake_locked(TaskHandle_t task) {
  if (TIDE_FREERTOS_IN_INTERRUPT()) {
    BaseType_t woken = pdFALSE;
    vTaskNotifyGiveIndexedFromISR(task, TIDE_FREERTOS_NOTIFICATION, &woken);
    portYIELD_FROM_ISR(woken);
  } else {
    (void)xTaskNotifyGiveIndexed(task, TIDE_FREERTOS_NOTIFICATION);
  }
}

/* Whoever waits has left its handle in the event. It is taken out by whoever wakes it, so it is woken once; within the
 * section, as a task that has left its wait may be deleted. */
static void event_set(void *context, tide_event_t *event) {
  const uintptr_t state = critical_enter(context);
  TaskHandle_t const waiter = (TaskHandle_t)event->port;
  event->state = 1u;
  event->port = NULL;
  if (waiter != NULL) wake_locked(waiter);
  critical_exit(context, state);
}

/* Looking at the event and leaving the handle are one step, so a set that comes between them and the sleep finds the
 * handle, and its notification ends the sleep. */
static bool take(void *context, tide_event_t *event, TaskHandle_t waiter) {
  const uintptr_t state = critical_enter(context);
  const bool set = event->state != 0u;
  event->state = 0u;
  event->port = set ? NULL : (void *)waiter;
  critical_exit(context, state);
  return set;
}

static void sleep(TickType_t ticks) { (void)ulTaskNotifyTakeIndexed(TIDE_FREERTOS_NOTIFICATION, pdTRUE, ticks); }

#if TIDE_FREERTOS_ALARM
typedef struct sleeper {
  int64_t until_ns;
  TaskHandle_t task; /* null: woken */
  struct sleeper *next;
} sleeper_t;
static sleeper_t *sleepers; /* the earliest first */
static struct {
  int64_t time_ns;
  tide_event_t *event;
} look = {.time_ns = TIDE_FOREVER}; /* of budgets */

static void arm_locked(void) {
  const int64_t wake_ns = sleepers != NULL ? sleepers->until_ns : TIDE_FOREVER;
  const int64_t time_ns = look.time_ns < wake_ns ? look.time_ns : wake_ns;
  if (time_ns != TIDE_FOREVER) tide_freertos_set_alarm(time_ns);
}

static void add_sleeper(void *context, sleeper_t *sleeper) {
  const uintptr_t state = critical_enter(context);
  sleeper_t **place = &sleepers;
  while (*place != NULL && (*place)->until_ns <= sleeper->until_ns) place = &(*place)->next;
  sleeper->next = *place;
  *place = sleeper;
  if (sleepers == sleeper) arm_locked();
  critical_exit(context, state);
}

static void remove_sleeper(void *context, const sleeper_t *sleeper) {
  const uintptr_t state = critical_enter(context);
  sleeper_t **place = &sleepers;
  while (*place != NULL && *place != sleeper) place = &(*place)->next;
  if (*place != NULL) *place = sleeper->next;
  critical_exit(context, state);
}

void tide_freertos_alarm(void) {
  const uintptr_t state = critical_enter(NULL);
  while (sleepers != NULL && sleepers->until_ns <= now_ns(NULL)) {
    sleeper_t *const first = sleepers;
    sleepers = first->next;
    wake_locked(first->task);
  }
  if (look.time_ns <= now_ns(NULL)) {
    look.time_ns = TIDE_FOREVER;
    event_set(NULL, look.event);
  }
  arm_locked();
  critical_exit(NULL, state);
}

#if TIDE_FREERTOS_BUDGETS
void tide_freertos_look_at_locked(tide_event_t *event, int64_t time_ns) {
  const bool changed = look.time_ns != time_ns;
  look.event = event;
  look.time_ns = time_ns;
  if (changed) arm_locked();
}
#endif

static void sleep_until(void *context, TaskHandle_t self, int64_t deadline_ns) {
  sleeper_t sleeper = {.until_ns = deadline_ns, .task = self};
  add_sleeper(context, &sleeper);
  sleep(portMAX_DELAY);
  remove_sleeper(context, &sleeper);
}
#else
/* By the tick clock the deadline is a tick, and the last of these ticks is that one. A finer clock may be anywhere in
 * the tick that runs, so one more. A task that wakes early looks again. */
static TickType_t ticks_of(int64_t left_ns) {
  const int64_t longest = (int64_t)(portMAX_DELAY / 2u);
  if (left_ns >= SLEEP_MAXIMUM_NS) left_ns = SLEEP_MAXIMUM_NS;
  const int64_t scaled = left_ns * (int64_t)configTICK_RATE_HZ;
  const int64_t ticks = TIDE_FREERTOS_CLOCK ? scaled / SECOND_NS + 1 : (scaled + SECOND_NS - 1) / SECOND_NS;
  if (ticks < 1) return 1;
  return (TickType_t)(ticks < longest ? ticks : longest);
}

static void sleep_until(void *context, TaskHandle_t self, int64_t deadline_ns) {
  (void)self;
  const int64_t left_ns = deadline_ns - now_ns(context);
  if (left_ns > 0) sleep(ticks_of(left_ns));
}
#endif

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  TaskHandle_t const self = xTaskGetCurrentTaskHandle();
  for (;;) {
    const bool late = deadline_ns != TIDE_FOREVER && now_ns(context) >= deadline_ns;
    if (take(context, event, late ? NULL : self)) return 1;
    if (late) return 0;
    if (deadline_ns == TIDE_FOREVER) {
      sleep(portMAX_DELAY);
    } else {
      sleep_until(context, self, deadline_ns);
    }
  }
}

const tide_platform_t *tide_port_platform(void) {
  static const tide_platform_t platform = {.now_ns = now_ns,
                                           .critical_enter = critical_enter,
                                           .critical_exit = critical_exit,
                                           .lanes_enter = LANES_ENTER,
                                           .lanes_exit = LANES_EXIT,
                                           .event_init = event_init,
                                           .event_set = event_set,
                                           .event_wait = event_wait};
  return &platform;
}

#if TIDE_STATIC_PLATFORM
int64_t tide_static_now_ns(void) { return now_ns(NULL); }
uintptr_t tide_static_enter(void) { return critical_enter(NULL); }
void tide_static_exit(uintptr_t state) { critical_exit(NULL, state); }
#if TIDE_FREERTOS_CORES == 1
uintptr_t tide_static_lanes_enter(void) { return lanes_enter(NULL); }
void tide_static_lanes_exit(uintptr_t state) { lanes_exit(NULL, state); }
#else
uintptr_t tide_static_lanes_enter(void) { return critical_enter(NULL); }
void tide_static_lanes_exit(uintptr_t state) { critical_exit(NULL, state); }
#endif
void tide_static_event_init(tide_event_t *event) { event_init(NULL, event); }
void tide_static_event_set(tide_event_t *event) { event_set(NULL, event); }
int tide_static_event_wait(tide_event_t *event, int64_t deadline_ns) { return event_wait(NULL, event, deadline_ns); }
#endif

static uint64_t measure_now(void *context) { return (uint64_t)now_ns(context); }

/* As fine as the clock: without TIDE_FREERTOS_CLOCK a tick. */
const tide_measure_clock_t *tide_port_measure_clock(void) {
  static const tide_measure_clock_t measure_clock = {
      .now = measure_now, .mask = UINT64_MAX, .hertz = 1000000000u, .of_thread = false};
  return &measure_clock;
}

bool tide_port_in_interrupt(void) { return TIDE_FREERTOS_IN_INTERRUPT(); }
