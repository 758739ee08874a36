/* SPDX-License-Identifier: Apache-2.0 */
/* A task for each lane. FreeRTOS preempts by fixed priority: FIFO lanes, and round robin where configUSE_TIME_SLICING
 * is on; it has no deadlines. Tasks and their stacks come from the kernel's heap when the lanes start, and go back to
 * it before the call returns; nothing allocates in between. */
#include "budgets.h"
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
  tide_event_t gate; /* a task for each lane is there */
  TaskHandle_t task;
} start_t;

static const tide_platform_t *platform(void) { return tide_port_platform(); }

static int priority_of(const tide_lane_settings_t *settings, UBaseType_t *priority) {
  *priority = uxTaskPriorityGet(NULL);
  if (settings->processor > TIDE_FREERTOS_CORES) return TIDE_ERROR_ARGUMENT;
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
#if TIDE_FREERTOS_BUDGETS
    case TIDE_SCHEDULING_SPORADIC:
      if (settings->low_priority < 0 || settings->low_priority >= settings->priority ||
          settings->priority >= (int)TIDE_FREERTOS_LINK_PRIORITY)
        return TIDE_ERROR_ARGUMENT;
      *priority = (UBaseType_t)settings->priority;
      return TIDE_OK;
#endif
    default:
      return settings->may_run_normally ? TIDE_OK : TIDE_ERROR_UNSUPPORTED;
  }
}

/* Whoever started the lanes deletes their tasks, so that their memory is free at once and not when the idle task runs,
 * and so that none of them is used when it is gone. */
static void lane_task(void *argument) {
  start_t *start = argument;
  run_t *run = start->run;
  (void)platform()->event_wait(platform()->context, &start->gate, TIDE_FOREVER);
  run->function(run->context, start->index);
  const uintptr_t state = platform()->critical_enter(platform()->context);
  const bool last = --run->running == 0u;
  if (last) platform()->event_set(platform()->context, &run->ended);
  platform()->critical_exit(platform()->context, state);
  for (;;) vTaskSuspend(NULL);
}

/* The lane's processor, from 1; 0: any. */
static BaseType_t create(const char *name, configSTACK_DEPTH_TYPE depth, start_t *start, UBaseType_t priority,
                         uint16_t processor) {
#if defined(ESP_PLATFORM)
  const BaseType_t core = processor == 0u ? tskNO_AFFINITY : (BaseType_t)(processor - 1u);
  return xTaskCreatePinnedToCore(lane_task, name, depth, start, priority, &start->task, core);
#elif TIDE_FREERTOS_CORES > 1 && configUSE_CORE_AFFINITY
  const UBaseType_t cores = processor == 0u ? tskNO_AFFINITY : (UBaseType_t)1u << (processor - 1u);
  return xTaskCreateAffinitySet(lane_task, name, depth, start, priority, cores, &start->task);
#else
  (void)processor; /* the only one there is */
  return xTaskCreate(lane_task, name, depth, start, priority, &start->task);
#endif
}

static int start_lane(const tide_lane_settings_t *settings, start_t *start) {
  UBaseType_t priority;
  const int status = priority_of(settings, &priority);
  if (status != TIDE_OK) return status;
  const size_t bytes = settings->stack_bytes > 0u ? settings->stack_bytes : STACK_DEFAULT_BYTES;
  const char *name = settings->name != NULL ? settings->name : "tide lane";
  const configSTACK_DEPTH_TYPE depth = (configSTACK_DEPTH_TYPE)(bytes / sizeof(StackType_t));
  platform()->event_init(platform()->context, &start->gate);
  return create(name, depth, start, priority, settings->processor) == pdPASS ? TIDE_OK : TIDE_ERROR_FULL;
}

/* Opened with the scheduler suspended: on one core no lane runs before all may. */
static void open_gates(start_t *starts, size_t count) {
  vTaskSuspendAll();
  for (size_t index = 0; index < count; index++) platform()->event_set(platform()->context, &starts[index].gate);
  (void)xTaskResumeAll();
}

#if TIDE_FREERTOS_BUDGETS
/* After the tasks are there, before one runs. */
static int add_budgets(tide_lane_t *lanes, const start_t *starts, size_t count, size_t *refused) {
  int status = TIDE_OK;
  bool started = false;
  for (size_t index = 0; index < count && status == TIDE_OK; index++) {
    if (lanes[index].settings.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    if (!started) status = tide_freertos_budgets_start();
    started = started || status == TIDE_OK;
    if (status == TIDE_OK) status = tide_freertos_budgets_add(&lanes[index], index, starts[index].task);
    if (status != TIDE_OK && refused != NULL) *refused = index;
  }
  if (started && status != TIDE_OK) tide_freertos_budgets_stop();
  return status;
}
static void remove_budgets(const tide_lane_t *lanes, size_t count) {
  for (size_t index = 0; index < count; index++) {
    if (lanes[index].settings.scheduling != TIDE_SCHEDULING_SPORADIC) continue;
    tide_freertos_budgets_stop();
    return;
  }
}
#else
static int add_budgets(tide_lane_t *lanes, const start_t *starts, size_t count, size_t *refused) {
  (void)lanes;
  (void)starts;
  (void)count;
  (void)refused;
  return TIDE_OK;
}
static void remove_budgets(const tide_lane_t *lanes, size_t count) {
  (void)lanes;
  (void)count;
}
#endif

int tide_port_run_lanes(tide_lane_t *lanes, size_t count, void (*function)(void *context, size_t index), void *context,
                        size_t *refused) {
  if (lanes == NULL || count == 0u || function == NULL) return TIDE_ERROR_ARGUMENT;
  if (count > TIDE_FREERTOS_LANES) return TIDE_ERROR_FULL;
  run_t run = {.function = function, .context = context, .running = count};
  start_t starts[TIDE_FREERTOS_LANES];
  size_t made = 0;
  int status = TIDE_OK;
  platform()->event_init(platform()->context, &run.ended);
  while (made < count && status == TIDE_OK) {
    starts[made] = (start_t){.run = &run, .index = made};
    status = start_lane(&lanes[made].settings, &starts[made]);
    if (status == TIDE_OK) made++;
  }
  if (status != TIDE_OK && refused != NULL) *refused = made;
  if (status == TIDE_OK) status = add_budgets(lanes, starts, count, refused);
  if (status == TIDE_OK) {
    open_gates(starts, count);
    (void)platform()->event_wait(platform()->context, &run.ended, TIDE_FOREVER);
    remove_budgets(lanes, count);
  }
  while (made > 0u) vTaskDelete(starts[--made].task);
  return status;
}
