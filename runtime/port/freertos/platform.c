/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section and events on FreeRTOS, for tasks and interrupts alike. */
#include "platform.h"

static struct {
  TickType_t last;
  uint64_t rounds; /* of the tick counter, in ticks */
} clock;

/* A critical section of a task counts its depth by itself; one of an interrupt gets back what it found. */
static uintptr_t critical_enter(void *context) {
  (void)context;
  if (xPortIsInsideInterrupt() != pdFALSE) return (uintptr_t)taskENTER_CRITICAL_FROM_ISR();
  taskENTER_CRITICAL();
  return 0u;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  if (xPortIsInsideInterrupt() != pdFALSE) {
    taskEXIT_CRITICAL_FROM_ISR((UBaseType_t)state);
  } else {
    taskEXIT_CRITICAL();
  }
}

#if TIDE_FREERTOS_CLOCK
static int64_t now_ns(void *context) {
  (void)context;
  return tide_freertos_clock_ns();
}
#else
/* In the critical section, so that two callers see a round end once, and in order. */
static int64_t now_ns(void *context) {
  const uintptr_t state = critical_enter(context);
  const TickType_t ticks = xPortIsInsideInterrupt() != pdFALSE ? xTaskGetTickCountFromISR() : xTaskGetTickCount();
  if (ticks < clock.last) clock.rounds += (uint64_t)portMAX_DELAY + 1u;
  clock.last = ticks;
  const uint64_t whole = clock.rounds + ticks;
  critical_exit(context, state);
  return (int64_t)whole * TIDE_TICK_NS;
}
#endif

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0u;
  event->port = NULL;
}

/* Whoever waits has left its handle in the event. It is taken out by whoever wakes it, so it is woken once. */
static void event_set(void *context, tide_event_t *event) {
  const uintptr_t state = critical_enter(context);
  TaskHandle_t const waiter = (TaskHandle_t)event->port;
  event->state = 1u;
  event->port = NULL;
  critical_exit(context, state);
  if (waiter == NULL) return;
  if (xPortIsInsideInterrupt() != pdFALSE) {
    BaseType_t woken = pdFALSE;
    vTaskNotifyGiveIndexedFromISR(waiter, TIDE_FREERTOS_NOTIFICATION, &woken);
    portYIELD_FROM_ISR(woken);
  } else {
    (void)xTaskNotifyGiveIndexed(waiter, TIDE_FREERTOS_NOTIFICATION);
  }
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

/* Rounded up, and one more, because the tick that runs is not whole. A task that wakes early looks again. */
static TickType_t ticks_of(int64_t left_ns) {
  const int64_t ticks = left_ns / TIDE_TICK_NS + (TIDE_FREERTOS_CLOCK ? 2 : 1);
  const int64_t longest = (int64_t)(portMAX_DELAY / 2u);
  return (TickType_t)(ticks < longest ? ticks : longest);
}

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  TaskHandle_t const self = xTaskGetCurrentTaskHandle();
  for (;;) {
    const bool late = deadline_ns != TIDE_FOREVER && now_ns(context) >= deadline_ns;
    if (take(context, event, late ? NULL : self)) return 1;
    if (late) return 0;
    const TickType_t ticks = deadline_ns == TIDE_FOREVER ? portMAX_DELAY : ticks_of(deadline_ns - now_ns(context));
    (void)ulTaskNotifyTakeIndexed(TIDE_FREERTOS_NOTIFICATION, pdTRUE, ticks);
  }
}

const tide_platform_t *tide_port_platform(void) {
  static const tide_platform_t platform = {.now_ns = now_ns,
                                           .critical_enter = critical_enter,
                                           .critical_exit = critical_exit,
                                           .event_init = event_init,
                                           .event_set = event_set,
                                           .event_wait = event_wait};
  return &platform;
}

static uint64_t measure_now(void *context) { return (uint64_t)now_ns(context); }

/* As fine as the clock: without TIDE_FREERTOS_CLOCK a tick. */
const tide_measure_clock_t *tide_port_measure_clock(void) {
  static const tide_measure_clock_t measure_clock = {
      .now = measure_now, .mask = UINT64_MAX, .hertz = 1000000000u, .of_thread = false};
  return &measure_clock;
}
