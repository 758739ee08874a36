/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS for the port of kernels (runtime/port/rtos): sections and the clock for tasks and interrupts alike, sleep by
 * task notifications, tasks of the kernel's heap. FreeRTOS preempts by fixed priority: FIFO lanes, and round robin if
 * configUSE_TIME_SLICING is on; no deadline scheduling. */
#include "../rtos/rtos.h"

#define SECOND_NS INT64_C(1000000000)
#define SLEEP_MAXIMUM_NS (1000 * SECOND_NS) /* longer sleeps are split */
#define STACK_DEFAULT_BYTES 4096u
#define KEEPER_STACK_BYTES 1024u

bool tide_port_in_interrupt(void) { return TIDE_FREERTOS_IN_INTERRUPT(); }

/* ---- sections ---- */

/* The kernel counts the depth of a task's critical sections; those of an interrupt restore the previous mask. */
#if TIDE_FREERTOS_SPINLOCK
static portMUX_TYPE lock = portMUX_INITIALIZER_UNLOCKED;
#define ENTER_CRITICAL() portENTER_CRITICAL(&lock)
#define EXIT_CRITICAL() portEXIT_CRITICAL(&lock)
#define ENTER_CRITICAL_FROM_ISR() (portENTER_CRITICAL_ISR(&lock), 0)
#define EXIT_CRITICAL_FROM_ISR(state) ((void)(state), portEXIT_CRITICAL_ISR(&lock))
#else
#define ENTER_CRITICAL() taskENTER_CRITICAL()
#define EXIT_CRITICAL() taskEXIT_CRITICAL()
#define ENTER_CRITICAL_FROM_ISR() taskENTER_CRITICAL_FROM_ISR()
#define EXIT_CRITICAL_FROM_ISR(state) taskEXIT_CRITICAL_FROM_ISR(state)
#endif

uintptr_t tide_kernel_enter(void *context) {
  (void)context;
  if (TIDE_FREERTOS_IN_INTERRUPT()) return (uintptr_t)ENTER_CRITICAL_FROM_ISR();
  ENTER_CRITICAL();
  return 0u;
}

void tide_kernel_exit(void *context, uintptr_t state) {
  (void)context;
  if (TIDE_FREERTOS_IN_INTERRUPT()) {
    EXIT_CRITICAL_FROM_ISR((UBaseType_t)state);
  } else {
    EXIT_CRITICAL();
  }
}

/* On one core a suspended scheduler excludes all other tasks but not interrupts. */
uintptr_t tide_kernel_lanes_enter(void *context) {
  (void)context;
  if (TIDE_FREERTOS_IN_INTERRUPT()) return 0u;
  vTaskSuspendAll();
  return 1u;
}

void tide_kernel_lanes_exit(void *context, uintptr_t state) {
  (void)context;
  if (state != 0u) (void)xTaskResumeAll();
}

/* ---- clock and sleep ---- */

#if TIDE_FREERTOS_CLOCK
int64_t tide_kernel_now_ns(void *context) {
  (void)context;
  return tide_freertos_clock_ns();
}
#else
uint64_t tide_kernel_ticks(void) {
  return TIDE_FREERTOS_IN_INTERRUPT() ? xTaskGetTickCountFromISR() : xTaskGetTickCount();
}
#endif

void tide_kernel_wake_locked(void *waiter) {
  if (TIDE_FREERTOS_IN_INTERRUPT()) {
    BaseType_t woken = pdFALSE;
    vTaskNotifyGiveIndexedFromISR((TaskHandle_t)waiter, TIDE_FREERTOS_NOTIFICATION, &woken);
    portYIELD_FROM_ISR(woken);
  } else {
    (void)xTaskNotifyGiveIndexed((TaskHandle_t)waiter, TIDE_FREERTOS_NOTIFICATION);
  }
}

/* With the tick clock the deadline falls on the last of these ticks. A finer clock may be anywhere within the current
 * tick, so one more tick is needed. A task that wakes early checks again. */
static TickType_t ticks_of(int64_t left_ns) {
  const int64_t longest = (int64_t)(portMAX_DELAY / 2u);
  if (left_ns >= SLEEP_MAXIMUM_NS) left_ns = SLEEP_MAXIMUM_NS;
  const int64_t scaled = left_ns * (int64_t)configTICK_RATE_HZ;
  const int64_t ticks = TIDE_FREERTOS_CLOCK ? scaled / SECOND_NS + 1 : (scaled + SECOND_NS - 1) / SECOND_NS;
  if (ticks < 1) return 1;
  return (TickType_t)(ticks < longest ? ticks : longest);
}

void tide_kernel_sleep(void *waiter, int64_t until_ns) {
  (void)waiter;
  const int64_t left_ns = until_ns == TIDE_FOREVER ? TIDE_FOREVER : until_ns - tide_kernel_now_ns(NULL);
  if (left_ns <= 0) return;
  const TickType_t ticks = until_ns == TIDE_FOREVER ? portMAX_DELAY : ticks_of(left_ns);
  (void)ulTaskNotifyTakeIndexed(TIDE_FREERTOS_NOTIFICATION, pdTRUE, ticks);
}

int tide_kernel_event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  (void)context;
  return tide_rtos_wait(event, deadline_ns, (void *)xTaskGetCurrentTaskHandle());
}

#if TIDE_FREERTOS_ALARM
void tide_kernel_set_alarm_locked(int64_t time_ns) { tide_freertos_set_alarm(time_ns); }
void tide_freertos_alarm(void) { tide_rtos_alarm(); }
#endif

/* The clock's resolution is a tick, unless TIDE_FREERTOS_CLOCK is 1. */
static uint64_t measure_now(void *context) { return (uint64_t)tide_kernel_now_ns(context); }
const tide_measure_clock_t *tide_port_measure_clock(void) {
  static const tide_measure_clock_t measure_clock = {
      .now = measure_now, .mask = UINT64_MAX, .hertz = 1000000000u, .of_thread = false};
  return &measure_clock;
}

/* ---- tasks ---- */

static void run_task(void *argument) {
  tide_rtos_task_t *task = argument;
  const tide_platform_t *platform = tide_port_platform();
  task->run(task->argument);
  platform->event_set(platform->context, &task->kernel.ended);
  for (;;) vTaskSuspend(NULL);
}

int tide_kernel_start(tide_rtos_task_t *task, size_t slot, const tide_lane_settings_t *settings, int priority) {
  const tide_platform_t *platform = tide_port_platform();
  const size_t usual_bytes = slot == TIDE_RTOS_KEEPER ? KEEPER_STACK_BYTES : STACK_DEFAULT_BYTES;
  const size_t bytes = settings->stack_bytes > 0u ? settings->stack_bytes : usual_bytes;
  const configSTACK_DEPTH_TYPE depth = (configSTACK_DEPTH_TYPE)(bytes / sizeof(StackType_t));
  const char *name = settings->name != NULL ? settings->name : "tide lane";
  TaskHandle_t *handle = &task->kernel.handle;
  if (settings->processor > TIDE_FREERTOS_CORES) return TIDE_ERROR_ARGUMENT;
  platform->event_init(platform->context, &task->kernel.ended);
#if defined(ESP_PLATFORM)
  const BaseType_t core = settings->processor == 0u ? tskNO_AFFINITY : (BaseType_t)(settings->processor - 1u);
  const BaseType_t made = xTaskCreatePinnedToCore(run_task, name, depth, task, (UBaseType_t)priority, handle, core);
#elif TIDE_FREERTOS_CORES > 1 && configUSE_CORE_AFFINITY
  const UBaseType_t cores = settings->processor == 0u ? tskNO_AFFINITY : (UBaseType_t)1u << (settings->processor - 1u);
  const BaseType_t made = xTaskCreateAffinitySet(run_task, name, depth, task, (UBaseType_t)priority, cores, handle);
#else
  const BaseType_t made = xTaskCreate(run_task, name, depth, task, (UBaseType_t)priority, handle);
#endif
  return made == pdPASS ? TIDE_OK : TIDE_ERROR_FULL;
}

/* The task is deleted by the task that started it, so that its memory is freed at once, not by the idle task. */
void tide_kernel_join(tide_rtos_task_t *task) {
  const tide_platform_t *platform = tide_port_platform();
  (void)platform->event_wait(platform->context, &task->kernel.ended, TIDE_FOREVER);
  vTaskDelete(task->kernel.handle);
}

void *tide_kernel_self(void) { return (void *)xTaskGetCurrentTaskHandle(); }

int tide_kernel_priority(void) { return (int)uxTaskPriorityGet(NULL); }

void tide_kernel_set_priority(const tide_rtos_task_t *task, int priority) {
#if INCLUDE_vTaskPrioritySet
  vTaskPrioritySet(task != NULL ? task->kernel.handle : NULL, (UBaseType_t)priority);
#else
  (void)task;
  (void)priority;
#endif
}

#if TIDE_FREERTOS_BUDGETS
/* Called by the kernel after switching to a task. */
void tide_freertos_switched_in(void) { tide_rtos_switched((const void *)xTaskGetCurrentTaskHandle()); }

int64_t tide_kernel_consumed_ns(tide_kernel_stamp_t *stamp, void *task) {
  const int64_t before_ns = *stamp;
  (void)task;
  *stamp = tide_freertos_clock_ns();
  return *stamp - before_ns;
}
#endif
