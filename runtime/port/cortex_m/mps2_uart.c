/* SPDX-License-Identifier: Apache-2.0 */
/* A UART with DMA, modelled on the MPS2 boards. None of these boards has one: the CMSDK UART holds one byte and ignores
 * the baud rate. A timer moves one byte in each byte time of the line, and reports the end of the transmission a byte
 * time after the last byte. The receive interrupt puts bytes into the ring, and a second timer reports silence of two
 * byte times. These interrupts model hardware, so they cost instructions that a DMA would not.
 *
 * The timers are one-shot and armed anew from the absolute time of the next byte, because with QEMU 7.2's `sleep=off`
 * periodic timers run at half their rate. */
#include <stddef.h>

#include "chip.h"
#include "platform.h"
#include "uart.h"

#define BITS_A_BYTE 10u
#define IDLE_BYTE_TIMES 2u

static struct {
  const uint8_t *bytes; /* next byte to send */
  size_t left;
  bool under_way;
  uint32_t byte_ticks;
  uint32_t next_tick; /* time at which the byte on the line is complete */
  uint8_t *ring;
  size_t ring_bytes, position;
} dma;

static void arm(mps2_dual_timer_t *timer, uint32_t ticks) {
  timer->control = MPS2_DUAL_ONE_SHOT;
  timer->load = ticks;
  timer->control = MPS2_DUAL_ONE_SHOT | MPS2_DUAL_RUN;
}

static void send_byte(void) {
  MPS2_UART0->data = *dma.bytes++;
  dma.left--;
  dma.next_tick += dma.byte_ticks;
  const int32_t until = (int32_t)(dma.next_tick - tide_cortex_m_ticks());
  arm(MPS2_DUAL1, until > 0 ? (uint32_t)until : 1u);
}

static void start_transmit(const uint8_t *bytes, size_t count) {
  dma.bytes = bytes;
  dma.left = count;
  dma.under_way = true;
  dma.next_tick = tide_cortex_m_ticks();
  send_byte();
}

static void byte_has_left(void) {
  if (!dma.under_way) return;
  if (dma.left > 0u) {
    send_byte();
  } else {
    dma.under_way = false;
    tide_uart_transmit_complete();
  }
}

void tide_mps2_dual_timer_interrupt(void) {
  if (MPS2_DUAL1->masked_status != 0u) {
    MPS2_DUAL1->clear = 1;
    byte_has_left();
  }
  if (MPS2_DUAL2->masked_status != 0u) {
    MPS2_DUAL2->clear = 1;
    tide_uart_received();
  }
}

void tide_mps2_uart_receive_interrupt(void) {
  MPS2_UART0->interrupts = MPS2_UART_RX_INTERRUPT;
  while ((MPS2_UART0->state & MPS2_UART_RX_FULL) != 0u) {
    dma.ring[dma.position++] = (uint8_t)MPS2_UART0->data;
    const bool wraps = dma.position == dma.ring_bytes;
    const bool half = dma.position == dma.ring_bytes / 2u;
    if (wraps) dma.position = 0u;
    if (wraps || half) tide_uart_received();
  }
  arm(MPS2_DUAL2, IDLE_BYTE_TIMES * dma.byte_ticks);
}

static int open(uint32_t baud, uint8_t *ring, size_t ring_bytes) {
  dma.ring = ring;
  dma.ring_bytes = ring_bytes;
  dma.position = 0u;
  dma.byte_ticks = BITS_A_BYTE * MPS2_CLOCK_HZ / baud;
  MPS2_UART0->divider = MPS2_CLOCK_HZ / baud;
  MPS2_UART0->control = MPS2_UART_TRANSMIT | MPS2_UART_RECEIVE | MPS2_UART_RECEIVE_INTERRUPT;
  tide_cortex_m_enable_interrupt(MPS2_IRQ_UART0_RX);
  tide_cortex_m_enable_interrupt(MPS2_IRQ_DUAL_TIMER);
  return 0;
}

static void close(void) {
  MPS2_UART0->control = 0;
  MPS2_DUAL1->control = 0;
  MPS2_DUAL2->control = 0;
  dma.under_way = false;
}

static size_t receive_position(void) { return dma.position; }

const tide_uart_driver_t tide_mps2_uart = {open, close, start_transmit, receive_position};
