/* SPDX-License-Identifier: Apache-2.0 */
/* A task for each lane. FreeRTOS preempts by fixed priority: FIFO lanes, and round robin where configUSE_TIME_SLICING
 * is on; it has neither budgets nor deadlines. Tasks and their stacks come from the kernel's heap when the lanes start,
 * before any of them runs; nothing allocates afterwards. */
#include "platform.h"
#include "tide/status.h"

#define STACK_DEFAULT_BYTES 4096u

typedef struct run {
  void (*function)(void *context, size_t index);
  void *context;
  size_t running; /* lanes that have not returned */
  tide_event_t ended;
} run_t;

typedef struct start {
  run_t *run;
  size_t index;
} start_t;

static int priority_of(const tide_lane_settings_t *settings, UBaseType_t *priority) {
  *priority = uxTaskPriorityGet(NULL);
  if (settings->processor != 0u) return TIDE_ERROR_UNSUPPORTED; /* one core */
  switch (settings->scheduling) {
    case TIDE_SCHEDULING_INHERIT:
      return TIDE_OK;
    case TIDE_SCHEDULING_NORMAL:
      *priority = tskIDLE_PRIORITY + 1u;
      return TIDE_OK;
    case TIDE_SCHEDULING_FIFO:
    case TIDE_SCHEDULING_ROUND_ROBIN:
      if (settings->priority < 0 || settings->priority >= (int)configMAX_PRIORITIES) return TIDE_ERROR_ARGUMENT;
      *priority = (UBaseType_t)settings->priority;
      return TIDE_OK;
    default:
      return settings->may_run_normally ? TIDE_OK : TIDE_ERROR_UNSUPPORTED;
  }
}

static void lane_task(void *argument) {
  const start_t start = *(const start_t *)argument;
  run_t *run = start.run;
  run->function(run->context, start.index);
  taskENTER_CRITICAL();
  const bool last = --run->running == 0u;
  taskEXIT_CRITICAL();
  if (last) {
    const tide_platform_t *platform = tide_port_platform();
    platform->event_set(platform->context, &run->ended);
  }
  vTaskDelete(NULL);
}

static int start_lane(const tide_lane_settings_t *settings, start_t *start, TaskHandle_t *task) {
  UBaseType_t priority;
  const int status = priority_of(settings, &priority);
  if (status != TIDE_OK) return status;
  const size_t bytes = settings->stack_bytes > 0u ? settings->stack_bytes : STACK_DEFAULT_BYTES;
  const char *name = settings->name != NULL ? settings->name : "tide lane";
  const configSTACK_DEPTH_TYPE depth = (configSTACK_DEPTH_TYPE)(bytes / sizeof(StackType_t));
  return xTaskCreate(lane_task, name, depth, start, priority, task) == pdPASS ? TIDE_OK : TIDE_ERROR_FULL;
}

/* With the scheduler suspended no lane runs before all are there; when one cannot be made, those before it go. */
static int start_all(run_t *run, const tide_lane_t *lanes, size_t count, start_t *starts, size_t *refused) {
  TaskHandle_t tasks[TIDE_FREERTOS_LANES];
  int status = TIDE_OK;
  size_t made = 0;
  vTaskSuspendAll();
  while (made < count && status == TIDE_OK) {
    starts[made] = (start_t){run, made};
    status = start_lane(&lanes[made].settings, &starts[made], &tasks[made]);
    if (status == TIDE_OK) made++;
  }
  if (status != TIDE_OK) {
    if (refused != NULL) *refused = made;
    while (made > 0u) vTaskDelete(tasks[--made]);
  }
  (void)xTaskResumeAll();
  return status;
}

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*function)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || function == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > TIDE_FREERTOS_LANES) return TIDE_ERROR_FULL;
  const tide_platform_t *platform = tide_port_platform();
  run_t run = {.function = function, .context = context, .running = count};
  start_t starts[TIDE_FREERTOS_LANES];
  platform->event_init(platform->context, &run.ended);
  const int status = start_all(&run, lanes, count, starts, refused);
  if (status == TIDE_OK) (void)platform->event_wait(platform->context, &run.ended, TIDE_FOREVER);
  return status;
}
