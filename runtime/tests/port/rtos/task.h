/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "FreeRTOS.h"

#define INCLUDE_vTaskPrioritySet 1

#ifdef __cplusplus
extern "C" {
#endif

BaseType_t xPortIsInsideInterrupt(void);
void vPortEnterCritical(void);
void vPortExitCritical(void);
UBaseType_t fake_mask_from_interrupt(void);
void fake_unmask_from_interrupt(UBaseType_t state);
void fake_yield_from_interrupt(BaseType_t woken);
#define taskENTER_CRITICAL() vPortEnterCritical()
#define taskEXIT_CRITICAL() vPortExitCritical()
#define taskENTER_CRITICAL_FROM_ISR() fake_mask_from_interrupt()
#define taskEXIT_CRITICAL_FROM_ISR(state) fake_unmask_from_interrupt(state)
#define portYIELD_FROM_ISR(woken) fake_yield_from_interrupt(woken)

TickType_t xTaskGetTickCount(void);
TickType_t xTaskGetTickCountFromISR(void);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);
void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority);
void vTaskSuspend(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
BaseType_t xTaskCreate(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth, void *argument,
                       UBaseType_t priority, TaskHandle_t *task);
void vTaskDelete(TaskHandle_t task);
BaseType_t xTaskNotifyGiveIndexed(TaskHandle_t task, UBaseType_t index);
void vTaskNotifyGiveIndexedFromISR(TaskHandle_t task, UBaseType_t index, BaseType_t *woken);
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t index, BaseType_t clear, TickType_t ticks);

#ifdef __cplusplus
}
#endif
