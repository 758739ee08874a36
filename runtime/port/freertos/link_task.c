/* SPDX-License-Identifier: Apache-2.0 */
#include "../rtos/link_task.h"

#include "tide/status.h"
#include "tide_freertos.h"

static struct {
  void (*run)(void);
  tide_event_t ended;
  TaskHandle_t task;
} link_task;

/* The task is deleted by whoever closes the link, so that its memory is free at once and not when the idle task runs.
 */
static void run(void *argument) {
  (void)argument;
  const tide_platform_t *platform = tide_port_platform();
  link_task.run();
  platform->event_set(platform->context, &link_task.ended);
  for (;;) vTaskSuspend(NULL);
}

int tide_link_task_start(void (*function)(void), int priority) {
  const tide_platform_t *platform = tide_port_platform();
  UBaseType_t wanted = (UBaseType_t)TIDE_FREERTOS_LINK_PRIORITY;
  if (priority == TIDE_LINK_PRIORITY_INHERIT) wanted = uxTaskPriorityGet(NULL);
  if (priority > 0) wanted = (UBaseType_t)priority;
  if (priority >= (int)configMAX_PRIORITIES) return TIDE_ERROR_ARGUMENT;
  link_task.run = function;
  platform->event_init(platform->context, &link_task.ended);
  const configSTACK_DEPTH_TYPE depth = (configSTACK_DEPTH_TYPE)(TIDE_FREERTOS_LINK_STACK_BYTES / sizeof(StackType_t));
  return xTaskCreate(run, "tide link", depth, NULL, wanted, &link_task.task) == pdPASS ? TIDE_OK : TIDE_ERROR_FULL;
}

void tide_link_task_join(void) {
  const tide_platform_t *platform = tide_port_platform();
  (void)platform->event_wait(platform->context, &link_task.ended, TIDE_FOREVER);
  vTaskDelete(link_task.task);
}
