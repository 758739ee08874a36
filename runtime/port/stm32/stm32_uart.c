/* SPDX-License-Identifier: Apache-2.0 */
/* The ring is circular for the DMA, so its position is all there is to know: ring bytes less what the stream still
 * counts down. Interrupts at idle, half and full see to it that somebody looks at least once in half a ring. */
#include "stm32_uart.h"

#define CACHE_LINE_BYTES 32u

#define UART_ENABLE (1u << 0)
#define UART_RECEIVER (1u << 2)
#define UART_TRANSMITTER (1u << 3)
#define UART_IDLE_INTERRUPT (1u << 4)
#define UART_COMPLETE_INTERRUPT (1u << 6)
#define UART_ERROR_INTERRUPT (1u << 0) /* control3 */
#define UART_DMA_RECEIVE (1u << 6)
#define UART_DMA_TRANSMIT (1u << 7)
#define UART_ERRORS 0xFu /* status and clear: parity, framing, noise, overrun */
#define UART_IDLE (1u << 4)
#define UART_COMPLETE (1u << 6)

#define DMA_ENABLE (1u << 0)
#define DMA_ERROR_INTERRUPT (1u << 2)
#define DMA_HALF_INTERRUPT (1u << 3)
#define DMA_FULL_INTERRUPT (1u << 4)
#define DMA_TO_PERIPHERAL (1u << 6)
#define DMA_CIRCULAR (1u << 8)
#define DMA_MEMORY_STEPS (1u << 10)
#define DMA_ERROR (1u << 3) /* flags, at the stream's shift */
#define DMA_HALF (1u << 4)
#define DMA_FULL (1u << 5)
#define DMA_FLAGS 0x3Du

tide_stm32_counters_t tide_stm32_counters;

static struct {
  uint8_t *ring;
  size_t ring_bytes;
  size_t seen; /* position of the last look: what lies behind it was invalidated up to there */
} receiver;

static uint32_t address_of(const volatile void *memory) { return (uint32_t)(uintptr_t)memory; }

static uint32_t flags_of(const tide_stm32_channel_t *channel) {
  return (*channel->flags >> channel->shift) & DMA_FLAGS;
}

static void clear_flags(const tide_stm32_channel_t *channel, uint32_t flags) {
  *channel->clear = flags << channel->shift;
}

/* A stream is off when its bit reads 0, at the end of the transfer that is under way; only then may it be set up. */
static void stop(const tide_stm32_channel_t *channel) {
  channel->stream->control &= ~DMA_ENABLE;
  while ((channel->stream->control & DMA_ENABLE) != 0u) continue;
  clear_flags(channel, DMA_FLAGS);
}

static void start_receiving(void) {
  const tide_stm32_channel_t *channel = &tide_stm32_line.receive;
  stop(channel);
  receiver.seen = 0u;
  channel->stream->peripheral = address_of(&tide_stm32_line.uart->received);
  channel->stream->memory = address_of(receiver.ring);
  channel->stream->count = (uint32_t)receiver.ring_bytes;
  channel->stream->fifo = 0u; /* direct: a byte is in memory as soon as it is counted */
  channel->stream->control = channel->request | DMA_CIRCULAR | DMA_MEMORY_STEPS | DMA_HALF_INTERRUPT |
                             DMA_FULL_INTERRUPT | DMA_ERROR_INTERRUPT;
  channel->stream->control |= DMA_ENABLE;
}

static int open(uint32_t baud, uint8_t *ring, size_t ring_bytes) {
  tide_stm32_uart_t *uart = tide_stm32_line.uart;
  receiver.ring = ring;
  receiver.ring_bytes = ring_bytes;
  uart->control1 = 0u; /* the baud rate can be set only while it is off */
  uart->baud = (tide_stm32_line.clock_hz + baud / 2u) / baud;
  uart->control2 = 0u;
  uart->control3 = UART_DMA_RECEIVE | UART_DMA_TRANSMIT | UART_ERROR_INTERRUPT;
  uart->clear = UART_ERRORS | UART_IDLE | UART_COMPLETE;
  stop(&tide_stm32_line.transmit);
  /* A line of the ring that the CPU wrote (zeroed memory) and that was not written back could come over what the DMA
   * puts there. */
  if (tide_stm32_line.has_cache) tide_stm32_cache_invalidate(ring, ring_bytes);
  start_receiving();
  uart->control1 = UART_ENABLE | UART_RECEIVER | UART_TRANSMITTER | UART_IDLE_INTERRUPT;
  return 0;
}

static void close(void) {
  tide_stm32_line.uart->control1 = 0u;
  stop(&tide_stm32_line.receive);
  stop(&tide_stm32_line.transmit);
}

/* The lines that hold the bytes; the DMA reads memory, not the cache. */
static void clean(const uint8_t *bytes, size_t count) {
  const uintptr_t before = (uintptr_t)bytes % CACHE_LINE_BYTES;
  const size_t lines = (before + count + CACHE_LINE_BYTES - 1u) / CACHE_LINE_BYTES;
  tide_stm32_cache_clean(bytes - before, lines * CACHE_LINE_BYTES);
}

static void start_transmit(const uint8_t *bytes, size_t count) {
  const tide_stm32_channel_t *channel = &tide_stm32_line.transmit;
  tide_stm32_uart_t *uart = tide_stm32_line.uart;
  if (tide_stm32_line.has_cache) clean(bytes, count);
  stop(channel);
  channel->stream->peripheral = address_of(&uart->transmit);
  channel->stream->memory = address_of(bytes);
  channel->stream->count = (uint32_t)count;
  channel->stream->fifo = 0u;
  uart->clear = UART_COMPLETE; /* or the end of the last piece would count for this one */
  uart->control1 |= UART_COMPLETE_INTERRUPT;
  channel->stream->control = channel->request | DMA_TO_PERIPHERAL | DMA_MEMORY_STEPS;
  channel->stream->control |= DMA_ENABLE;
}

/* Whole lines from the one that the last look ended in, which the DMA has gone on writing since, to the one that holds
 * the last byte. */
static void invalidate(size_t from, size_t to) {
  from -= from % CACHE_LINE_BYTES;
  const size_t lines = (to - from + CACHE_LINE_BYTES - 1u) / CACHE_LINE_BYTES;
  if (lines > 0u) tide_stm32_cache_invalidate(receiver.ring + from, lines * CACHE_LINE_BYTES);
}

static size_t receive_position(void) {
  const size_t left = tide_stm32_line.receive.stream->count; /* 0 for a moment, before it is loaded again */
  const size_t position = (receiver.ring_bytes - left) % receiver.ring_bytes;
  if (tide_stm32_line.has_cache) {
    if (position < receiver.seen) {
      invalidate(receiver.seen, receiver.ring_bytes);
      invalidate(0u, position);
    } else {
      invalidate(receiver.seen, position);
    }
  }
  receiver.seen = position;
  return position;
}

const tide_uart_driver_t tide_stm32_driver = {open, close, start_transmit, receive_position};

void tide_stm32_receive_interrupt(void) {
  const uint32_t flags = flags_of(&tide_stm32_line.receive);
  clear_flags(&tide_stm32_line.receive, flags);
  if ((flags & DMA_HALF) != 0u && (flags & DMA_FULL) != 0u) tide_stm32_counters.overruns++;
  if ((flags & (DMA_HALF | DMA_FULL)) != 0u) tide_uart_received();
  if ((flags & DMA_ERROR) != 0u) tide_stm32_counters.dma_errors++;
}

void tide_stm32_uart_interrupt(void) {
  tide_stm32_uart_t *uart = tide_stm32_line.uart;
  const uint32_t status = uart->status;
  if ((status & UART_ERRORS) != 0u) { /* frames that suffered fail their checksum */
    uart->clear = status & UART_ERRORS;
    tide_stm32_counters.uart_errors++;
  }
  if ((status & UART_IDLE) != 0u) {
    uart->clear = UART_IDLE;
    tide_uart_received();
  }
  /* The status keeps its bit after the end, so only the interrupt that is on tells that somebody waits for it. */
  if ((status & UART_COMPLETE) != 0u && (uart->control1 & UART_COMPLETE_INTERRUPT) != 0u) {
    uart->control1 &= ~UART_COMPLETE_INTERRUPT;
    uart->clear = UART_COMPLETE;
    tide_uart_transmit_complete(); /* may start the next piece */
  }
}
