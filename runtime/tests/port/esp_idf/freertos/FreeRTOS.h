/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sdkconfig.h"

typedef int BaseType_t;
typedef unsigned int UBaseType_t;
typedef uint32_t TickType_t;
typedef uint8_t StackType_t; /* the size of a stack is counted in bytes */
typedef void *TaskHandle_t;
typedef void (*TaskFunction_t)(void *argument);
typedef struct spinlock {
  uint32_t owner, count;
} portMUX_TYPE;

#define pdFALSE 0
#define pdTRUE 1
#define pdPASS pdTRUE
#define portMAX_DELAY ((TickType_t)0xFFFFFFFFu)
#define portMUX_INITIALIZER_UNLOCKED \
  { 0xB33FFFFFu, 0u }
#define portNUM_PROCESSORS 2
#define configTICK_RATE_HZ CONFIG_FREERTOS_HZ
#define configMAX_PRIORITIES 25
#define configSTACK_DEPTH_TYPE uint32_t
#define configUSE_TICKLESS_IDLE 0
#define tskIDLE_PRIORITY 0
#define tskNO_AFFINITY ((BaseType_t)0x7FFFFFFF)

void vPortEnterCritical(portMUX_TYPE *lock);
void vPortExitCritical(portMUX_TYPE *lock);
#define portENTER_CRITICAL(lock) vPortEnterCritical(lock)
#define portEXIT_CRITICAL(lock) vPortExitCritical(lock)
#define portENTER_CRITICAL_ISR(lock) vPortEnterCritical(lock)
#define portEXIT_CRITICAL_ISR(lock) vPortExitCritical(lock)
void esp_test_yield(void);
#define portYIELD_FROM_ISR(woken) ((woken) ? esp_test_yield() : (void)0)
BaseType_t xPortInIsrContext(void);
