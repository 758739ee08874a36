/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

#include "freertos/FreeRTOS.h"

TickType_t xTaskGetTickCount(void);
TickType_t xTaskGetTickCountFromISR(void);
TaskHandle_t xTaskGetCurrentTaskHandle(void);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
void vTaskSuspend(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
void vTaskDelete(TaskHandle_t task);
BaseType_t xTaskCreate(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth, void *argument,
                       UBaseType_t priority, TaskHandle_t *task);
BaseType_t xTaskCreatePinnedToCore(TaskFunction_t function, const char *name, configSTACK_DEPTH_TYPE depth,
                                   void *argument, UBaseType_t priority, TaskHandle_t *task, BaseType_t core);
BaseType_t xTaskNotifyGiveIndexed(TaskHandle_t task, UBaseType_t index);
void vTaskNotifyGiveIndexedFromISR(TaskHandle_t task, UBaseType_t index, BaseType_t *woken);
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t index, BaseType_t clear, TickType_t ticks);
