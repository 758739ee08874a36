/* SPDX-License-Identifier: Apache-2.0 */
/* What a project's main.h contains: the names of the HAL and of CMSIS that the package uses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum { HAL_OK, HAL_ERROR, HAL_BUSY, HAL_TIMEOUT } HAL_StatusTypeDef;
typedef struct {
  volatile uint32_t NDTR;
} DMA_Stream_TypeDef;
typedef struct {
  DMA_Stream_TypeDef *Instance;
} DMA_HandleTypeDef;
enum { HAL_UART_STATE_READY = 0x20, HAL_UART_STATE_BUSY_RX = 0x22 };
typedef struct {
  DMA_HandleTypeDef *hdmatx, *hdmarx;
  volatile uint32_t gState, RxState;
} UART_HandleTypeDef;
#define __HAL_DMA_GET_COUNTER(handle) ((handle)->Instance->NDTR)
uint32_t HAL_GetTick(void);
HAL_StatusTypeDef HAL_UART_Receive_DMA(UART_HandleTypeDef *uart, uint8_t *place, uint16_t count);
HAL_StatusTypeDef HAL_UART_Transmit_DMA(UART_HandleTypeDef *uart, const uint8_t *bytes, uint16_t count);
HAL_StatusTypeDef HAL_UART_DMAStop(UART_HandleTypeDef *uart);

typedef struct {
  volatile uint32_t CTRL, LOAD, VAL;
} SysTick_Type;
typedef struct {
  volatile uint32_t CPUID, ICSR;
} SCB_Type;
#define SysTick ((SysTick_Type *)0xE000E010u)
#define SCB ((SCB_Type *)0xE000ED00u)
#define SCB_ICSR_PENDSTSET_Msk (1u << 26)
#if defined(__ARM_ARCH_7EM__) && defined(__ARM_FP) && (__ARM_FP & 8)
#define __DCACHE_PRESENT 1 /* the families that have a Cortex-M7 */
void SCB_InvalidateDCache_by_Addr(uint32_t *address, int32_t bytes);
void SCB_CleanDCache_by_Addr(uint32_t *address, int32_t bytes);
#endif
uint32_t __get_PRIMASK(void);
void __set_PRIMASK(uint32_t state);
void __disable_irq(void);
