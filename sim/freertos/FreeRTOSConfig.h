/* SPDX-License-Identifier: Apache-2.0 */
/* FreeRTOS for the MPS2 boards in QEMU, with all checks of the kernel. */
#pragma once

void board_assert(const char *file, int line);
#define configASSERT(condition) ((condition) ? (void)0 : board_assert(__FILE__, __LINE__))
#define configCHECK_FOR_STACK_OVERFLOW 2
#define configCHECK_HANDLER_INSTALLATION 1
#define configUSE_MALLOC_FAILED_HOOK 1

#define configCPU_CLOCK_HZ 25000000u
#define configTICK_RATE_HZ 1000u
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configUSE_PREEMPTION 1
#define configUSE_TIME_SLICING 1
#define configUSE_TICKLESS_IDLE 0
#define configMAX_PRIORITIES 16
#define configMINIMAL_STACK_SIZE 256
#define configMAX_TASK_NAME_LEN 16
#define configUSE_TASK_NOTIFICATIONS 1
#define configTASK_NOTIFICATION_ARRAY_ENTRIES 2
#define configUSE_TIMERS 0
#define configUSE_MUTEXES 0
#define configUSE_IDLE_HOOK 1
#define configUSE_TICK_HOOK 0
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 0
#define configTOTAL_HEAP_SIZE (256u * 1024u)

#define configPRIO_BITS 4
#define configKERNEL_INTERRUPT_PRIORITY 0xF0
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40 /* TIDE_INTERRUPT_PRIORITY of mps2.h */

/* Does nothing in images whose lanes have no budgets (board.c). */
void tide_freertos_switched_in(void);
#define traceTASK_SWITCHED_IN() tide_freertos_switched_in()

#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskPrioritySet 1
#define INCLUDE_uxTaskPriorityGet 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1
#define INCLUDE_uxTaskGetStackHighWaterMark 1
