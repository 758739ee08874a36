/* SPDX-License-Identifier: Apache-2.0 */
/* A serial link on a UART that moves its bytes by itself (DMA). tide_uart_driver_t contains everything that depends on
 * the chip. runtime/port/cortex_m/mps2_uart.c is a driver for QEMU, and docs/porting.md shows one for STM32.
 *
 * The board's file defines tide_uart_board; the library's own definition (uart_board.c) is used if a program has none:
 *
 *   static uint8_t piece[32], ring[256];
 *   const tide_uart_board_t tide_uart_board = {&TIDE_CHIP_UART, piece, sizeof piece, ring, sizeof ring};
 *
 * Cost in interrupt context: transmit_complete makes the next piece of the frame, about 8 instructions a byte (25 with
 * TIDE_LEAN), or takes the next message from the pool. received unescapes the bytes, linear in their number, and
 * handles acknowledgments and similar messages. Memory: the arrays that the board provides, and about 90 bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tide/port.h"

typedef struct tide_uart_driver {
  /* Start circular reception into the ring, at `baud`, 8N1. Called from a thread. Returns 0, or a negative error
   * code. */
  int (*open)(uint32_t baud, uint8_t *ring, size_t ring_bytes);
  /* Stop both directions. After close returns, no call of tide_uart_* follows or is still running. With several
   * processors, wait for a handler on another processor. Called from a thread. */
  void (*close)(void);
  /* Start to send; returns at once. The bytes stay until tide_uart_transmit_complete. Called from a thread or an
   * interrupt of the runtime's priority, never while another transmission is under way. On a chip with a data cache:
   * clean the lines of the bytes first. */
  void (*start_transmit)(const uint8_t *bytes, size_t count);
  /* Returns the index in the ring of the next byte to arrive. Called in the context of tide_uart_received. On a chip
   * with a data cache: the ring lies in memory that is not cached, or its lines are invalidated here. */
  size_t (*receive_position)(void);
} tide_uart_driver_t;

typedef struct tide_uart_board {
  const tide_uart_driver_t *driver;
  uint8_t *piece; /* buffer for a piece of the frame being sent, 32 to 64 bytes. A piece is encoded in the daemon's
                     critical section, and between two pieces the line is idle for one interrupt */
  size_t piece_bytes;
  uint8_t *ring; /* half of it must hold the bytes that arrive between two calls of tide_uart_received */
  size_t ring_bytes;
} tide_uart_board_t;

extern const tide_uart_board_t tide_uart_board;
extern const tide_uart_driver_t tide_mps2_uart;    /* QEMU: a modelled DMA on UART0 of the MPS2 boards */
extern const tide_uart_driver_t tide_stm32_driver; /* port/stm32/stm32_uart.h */
#if TIDE_STM32F405
#define TIDE_CHIP_UART tide_stm32_driver
#else
#define TIDE_CHIP_UART tide_mps2_uart
#endif

/* The driver calls these two functions, in interrupts of the runtime's priority (TIDE_INTERRUPT_PRIORITY). */
void tide_uart_transmit_complete(void); /* call when the last stop bit was sent, not when the DMA is done */
void tide_uart_received(void);          /* call when the line is idle after some bytes, or the ring half full or full */

/* The functions of one session's link, like tide_port_open_link and its companions. runtime/port/rtos/link.c and the
 * port without a system call them. With LINK_TASK=1 link.c provides tide_uart_wake_task. uart.c calls it when there is
 * work, from any task or interrupt, even in a critical section. */
int tide_uart_open_link(tide_session_t *session, const tide_link_address_t *address);
void tide_uart_close_link(tide_session_t *session);
int tide_uart_link_counters(tide_session_t *session, tide_link_counters_t *counters);
void tide_uart_wake_task(void);
