/* SPDX-License-Identifier: Apache-2.0 */
/* The names of FreeRTOS that runtime/port/freertos uses, as in FreeRTOS's documentation, so that the port compiles and
 * its logic runs on this machine. freertos_names.cpp implements them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef uint32_t StackType_t;
typedef void *TaskHandle_t;
typedef void (*TaskFunction_t)(void *argument);

#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define pdPASS pdTRUE
#define portMAX_DELAY ((TickType_t)0xFFFFFFFFu)
#ifndef configTICK_RATE_HZ
#define configTICK_RATE_HZ 1000u
#endif
#define configUSE_TICKLESS_IDLE 0
#define configMAX_PRIORITIES 8
#define configSTACK_DEPTH_TYPE uint32_t
#define tskIDLE_PRIORITY ((UBaseType_t)0)

#ifdef __cplusplus
}
#endif
