/* SPDX-License-Identifier: Apache-2.0 */
/* A UART of an STM32, below the HAL. The families F7 and H7 (Cortex-M7 with a data cache) use DMA. The F4 uses DMA, or
 * interrupts if the streams are null. Without streams each byte costs an interrupt and a round of the link, some 3 % of
 * an F405 at 115,200 Bd, and the longest critical section, 4,000 instructions, must be shorter than the time of a byte.
 *
 * The board sets up what differs between chips and boards: clocks, pins, the request or channel of each stream
 * (CHSEL on F7, the DMAMUX on H7), and the three interrupts, all with the runtime's priority
 * (TIDE_INTERRUPT_PRIORITY). Then it defines its line:
 *
 *   const tide_stm32_line_t tide_stm32_line = {
 *       .uart = (tide_stm32_uart_t *)USART3_BASE, .clock_hz = 54000000,
 *       .receive = {(tide_stm32_stream_t *)DMA1_Stream1_BASE, &DMA1->LISR, &DMA1->LIFCR, 6, 4u << 25},
 *       .transmit = {(tide_stm32_stream_t *)DMA1_Stream3_BASE, &DMA1->LISR, &DMA1->LIFCR, 22, 4u << 25},
 *       .has_cache = true};
 *   static uint8_t piece[32] __attribute__((aligned(32))), ring[256] __attribute__((aligned(32)));
 *   const tide_uart_board_t tide_uart_board = {&tide_stm32_driver, piece, sizeof piece, ring, sizeof ring};
 *   void USART3_IRQHandler(void) { tide_stm32_uart_interrupt(); }
 *   void DMA1_Stream1_IRQHandler(void) { tide_stm32_receive_interrupt(); }
 *
 * The ring lies in memory that the DMA reaches (not the DTCM of an F7 or H7, unless its DMA does), begins at a multiple
 * of 32, and its length is a multiple of 64. No other data may share its cache lines, because invalidating these lines
 * would discard a neighbouring write.
 *
 * Callers: a thread calls open and close. A thread or an interrupt of the runtime's priority calls start_transmit, with
 * the daemon's critical section held, so there are never two calls at once. receive_position is called within
 * tide_uart_received. The two handlers are interrupts of the runtime's priority and call tide_uart_received and
 * tide_uart_transmit_complete.
 *
 * Memory: 24 bytes. Cost of a handler: a dozen register accesses, and one cache operation per 32 bytes received. */
#ifndef TIDE_STM32_UART_H
#define TIDE_STM32_UART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

#include "uart.h" /* from port/cortex_m */

#ifndef TIDE_STM32_F4
#if TIDE_STM32F405
#define TIDE_STM32_F4 1
#else
#define TIDE_STM32_F4 0
#endif
#endif
#if TIDE_STM32_F4
typedef struct tide_stm32_uart { /* its flags are cleared by reading the status, then the data */
  volatile uint32_t status, data, baud, control1, control2, control3, guard;
} tide_stm32_uart_t;
#else
typedef struct tide_stm32_uart {
  volatile uint32_t control1, control2, control3, baud, guard, timeout, request, status, clear, received, transmit;
} tide_stm32_uart_t;
#endif

typedef struct tide_stm32_stream { /* a stream of DMA1 or DMA2 */
  volatile uint32_t control, count, peripheral, memory, memory_other, fifo;
} tide_stm32_stream_t;

typedef struct tide_stm32_channel {
  tide_stm32_stream_t *stream;
  const volatile uint32_t *flags; /* LISR for streams 0 to 3, HISR for 4 to 7 */
  volatile uint32_t *clear;       /* LIFCR for streams 0 to 3, HIFCR for 4 to 7 */
  uint8_t shift;                  /* position of the stream's flags in these registers: 0, 6, 16, 22 */
  uint32_t request; /* bits of its control register that choose the request, as 4u << 25; 0 with a DMAMUX */
} tide_stm32_channel_t;

typedef struct tide_stm32_line {
  tide_stm32_uart_t *uart;
  uint32_t clock_hz;                      /* kernel clock of the UART */
  tide_stm32_channel_t receive, transmit; /* F4 only: null streams mean interrupts instead of DMA */
  bool has_cache;                         /* the core has a data cache and it is on: Cortex-M7 */
  uint32_t interrupt;                     /* the UART's number; used without streams */
} tide_stm32_line_t;

extern const tide_stm32_line_t tide_stm32_line; /* the board's */

typedef struct tide_stm32_counters {
  uint32_t overruns;    /* a handler was late by half a ring or more: bytes may be lost, and with them frames */
  uint32_t uart_errors; /* overrun, noise or framing errors on the line */
  uint32_t dma_errors;  /* the receiving stream was disabled because it cannot reach the ring's memory: an error in the
                           board's set-up */
} tide_stm32_counters_t;
extern tide_stm32_counters_t tide_stm32_counters;

void tide_stm32_uart_interrupt(void);
void tide_stm32_receive_interrupt(void); /* handler of the receiving stream: half full, full, error */

/* In runtime/port/stm32/cache.c: for bytes in whole lines of 32. */
void tide_stm32_cache_clean(const uint8_t *line, size_t bytes);
void tide_stm32_cache_invalidate(uint8_t *line, size_t bytes);

TIDE_EXTERN_C_END
#endif
