/* SPDX-License-Identifier: Apache-2.0 */
/* With DMA the ring is circular, and the driver's only state is a position: ring bytes less the stream's remaining
 * count. Interrupts at idle, half and full ensure that the position is read at least once in half a ring. Without DMA
 * each byte is passed on as it arrives. */
#include "stm32_uart.h"

#if TIDE_STM32_F4
#include "platform.h"
#endif

#define CACHE_LINE_BYTES 32u

#define UART_ENABLE (1u << 0) /* bit 13 on the F4 */
#define UART_RECEIVER (1u << 2)
#define UART_TRANSMITTER (1u << 3)
#define UART_IDLE_INTERRUPT (1u << 4)
#define UART_RECEIVE_INTERRUPT (1u << 5)
#define UART_ROOM_INTERRUPT (1u << 7)
#define UART_COMPLETE_INTERRUPT (1u << 6)
#define UART_ERROR_INTERRUPT (1u << 0) /* control3 */
#define UART_DMA_RECEIVE (1u << 6)
#define UART_DMA_TRANSMIT (1u << 7)
#define UART_ERRORS 0xFu /* status and clear: parity, framing, noise, overrun */
#define UART_IDLE (1u << 4)
#define UART_HAS_BYTE (1u << 5)
#define UART_HAS_ROOM (1u << 7)
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
  size_t seen; /* with DMA: position of the last reading, up to which the cache was invalidated; without: the next
                * position */
} receiver;

/* A Cortex-M4 has no data cache. */
static bool has_cache(void) { return !TIDE_STM32_F4 && tide_stm32_line.has_cache; }

/* ---- two generations of the UART ---- */

#if TIDE_STM32_F4
#define UART_ENABLE_BITS (UART_ENABLE << 13 | UART_RECEIVER | UART_TRANSMITTER)
static volatile uint32_t *received_of(tide_stm32_uart_t *uart) { return &uart->data; }
static volatile uint32_t *transmit_of(tide_stm32_uart_t *uart) { return &uart->data; }

/* Call it after reading the status. A byte that the DMA has not fetched yet is lost here, and its frame with it; a
 * reliable stream sends the frame again. */
static void clear_status(tide_stm32_uart_t *uart, uint32_t flags) {
  if ((flags & (UART_ERRORS | UART_IDLE)) != 0u) (void)uart->data;
  if ((flags & UART_COMPLETE) != 0u) uart->status = ~UART_COMPLETE;
}
#else
#define UART_ENABLE_BITS (UART_ENABLE | UART_RECEIVER | UART_TRANSMITTER)
static volatile uint32_t *received_of(tide_stm32_uart_t *uart) { return &uart->received; }
static volatile uint32_t *transmit_of(tide_stm32_uart_t *uart) { return &uart->transmit; }
static void clear_status(tide_stm32_uart_t *uart, uint32_t flags) { uart->clear = flags; }
#endif

/* ---- by interrupts (F4) ---- */

#if TIDE_STM32_F4
static struct {
  const uint8_t *bytes; /* the next byte to send */
  size_t left;
} sender;

static bool has_streams(void) { return tide_stm32_line.receive.stream != NULL; }

static void open_without_streams(tide_stm32_uart_t *uart) {
  receiver.seen = sender.left = 0u;
  uart->control3 = UART_ERROR_INTERRUPT;
  uart->control1 = UART_ENABLE_BITS | UART_RECEIVE_INTERRUPT;
}

/* Enables the interrupt, whose handler writes all bytes, including the first. On a chip the interrupt comes without
 * further action. QEMU 7.2 has no interrupts for an empty register and for the end, so this code pends the
 * interrupt. */
static void start_without_streams(const uint8_t *bytes, size_t count) {
  sender.bytes = bytes;
  sender.left = count;
  tide_stm32_line.uart->control1 |= UART_ROOM_INTERRUPT;
  tide_cortex_m_pend(tide_stm32_line.interrupt);
}

static void receive_byte(tide_stm32_uart_t *uart) {
  receiver.ring[receiver.seen] = (uint8_t)uart->data; /* clears the errors that were read with the status */
  receiver.seen = (receiver.seen + 1u) % receiver.ring_bytes;
  tide_uart_received();
}

/* Reading the status before each written byte clears the completion flag of the preceding byte. */
static void send_bytes(tide_stm32_uart_t *uart) {
  while (sender.left > 0u && (uart->status & UART_HAS_ROOM) != 0u) {
    uart->data = *sender.bytes++;
    sender.left--;
  }
  if (sender.left == 0u) uart->control1 = (uart->control1 & ~UART_ROOM_INTERRUPT) | UART_COMPLETE_INTERRUPT;
}
#else
static bool has_streams(void) { return true; }
static void open_without_streams(tide_stm32_uart_t *uart) { (void)uart; }
static void start_without_streams(const uint8_t *bytes, size_t count) { (void)bytes, (void)count; }
static void receive_byte(tide_stm32_uart_t *uart) { (void)uart; }
static void send_bytes(tide_stm32_uart_t *uart) { (void)uart; }
#endif

/* ---- by DMA ---- */

static uint32_t address_of(const volatile void *memory) { return (uint32_t)(uintptr_t)memory; }

static uint32_t flags_of(const tide_stm32_channel_t *channel) {
  return (*channel->flags >> channel->shift) & DMA_FLAGS;
}

static void clear_flags(const tide_stm32_channel_t *channel, uint32_t flags) {
  *channel->clear = flags << channel->shift;
}

/* A stream is off when its bit reads 0, at the end of the current transfer. Only then may the stream be configured. */
static void stop(const tide_stm32_channel_t *channel) {
  channel->stream->control &= ~DMA_ENABLE;
  while ((channel->stream->control & DMA_ENABLE) != 0u) continue;
  clear_flags(channel, DMA_FLAGS);
}

static void start_receiving(void) {
  const tide_stm32_channel_t *channel = &tide_stm32_line.receive;
  stop(channel);
  receiver.seen = 0u;
  channel->stream->peripheral = address_of(received_of(tide_stm32_line.uart));
  channel->stream->memory = address_of(receiver.ring);
  channel->stream->count = (uint32_t)receiver.ring_bytes;
  channel->stream->fifo = 0u; /* direct mode: a byte is in memory when it is counted */
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
  if (!has_streams()) {
    open_without_streams(uart);
    return 0;
  }
  uart->control3 = UART_DMA_RECEIVE | UART_DMA_TRANSMIT | UART_ERROR_INTERRUPT;
  clear_status(uart, UART_ERRORS | UART_IDLE | UART_COMPLETE);
  stop(&tide_stm32_line.transmit);
  /* The CPU has written the ring (zeroed memory). A cache line that was not written back yet could overwrite the DMA's
   * data later. */
  if (has_cache()) tide_stm32_cache_invalidate(ring, ring_bytes);
  start_receiving();
  uart->control1 = UART_ENABLE_BITS | UART_IDLE_INTERRUPT;
  return 0;
}

static void close(void) {
  tide_stm32_line.uart->control1 = 0u;
  if (!has_streams()) return;
  stop(&tide_stm32_line.receive);
  stop(&tide_stm32_line.transmit);
}

/* Cleans the cache lines that hold the bytes, because the DMA reads memory, not the cache. */
static void clean(const uint8_t *bytes, size_t count) {
  const uintptr_t before = (uintptr_t)bytes % CACHE_LINE_BYTES;
  const size_t lines = (before + count + CACHE_LINE_BYTES - 1u) / CACHE_LINE_BYTES;
  tide_stm32_cache_clean(bytes - before, lines * CACHE_LINE_BYTES);
}

static void start_transmit(const uint8_t *bytes, size_t count) {
  const tide_stm32_channel_t *channel = &tide_stm32_line.transmit;
  tide_stm32_uart_t *uart = tide_stm32_line.uart;
  if (!has_streams()) {
    start_without_streams(bytes, count);
    return;
  }
  if (has_cache()) clean(bytes, count);
  stop(channel);
  channel->stream->peripheral = address_of(transmit_of(uart));
  channel->stream->memory = address_of(bytes);
  channel->stream->count = (uint32_t)count;
  channel->stream->fifo = 0u;
  clear_status(uart, UART_COMPLETE); /* or the end of the previous transfer would count for this one */
  uart->control1 |= UART_COMPLETE_INTERRUPT;
  channel->stream->control = channel->request | DMA_TO_PERIPHERAL | DMA_MEMORY_STEPS;
  channel->stream->control |= DMA_ENABLE;
}

/* Invalidates whole cache lines, up to the line with the last byte. The first one is the line in which the last reading
 * ended, because the DMA has written to it since. */
static void invalidate(size_t from, size_t to) {
  from -= from % CACHE_LINE_BYTES;
  const size_t lines = (to - from + CACHE_LINE_BYTES - 1u) / CACHE_LINE_BYTES;
  if (lines > 0u) tide_stm32_cache_invalidate(receiver.ring + from, lines * CACHE_LINE_BYTES);
}

static size_t receive_position(void) {
  if (!has_streams()) return receiver.seen;
  const size_t left = tide_stm32_line.receive.stream->count; /* 0 for a moment before the DMA reloads it */
  const size_t position = (receiver.ring_bytes - left) % receiver.ring_bytes;
  if (has_cache()) {
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
  if ((status & UART_ERRORS) != 0u) tide_stm32_counters.uart_errors++; /* damaged frames fail their checksum */
  if (!has_streams()) {
    if ((status & UART_HAS_BYTE) != 0u)
      receive_byte(uart);
    else
      clear_status(uart, status & UART_ERRORS);
    if ((uart->control1 & UART_ROOM_INTERRUPT) != 0u) send_bytes(uart);
  } else {
    if ((status & (UART_ERRORS | UART_IDLE)) != 0u) clear_status(uart, status & (UART_ERRORS | UART_IDLE));
    if ((status & UART_IDLE) != 0u) tide_uart_received();
  }
  /* The status bit stays set after the end of a transmission. So only the enabled interrupt shows that a transmission
   * waits for its end. */
  if ((uart->control1 & UART_COMPLETE_INTERRUPT) != 0u && (uart->status & UART_COMPLETE) != 0u) {
    uart->control1 &= ~UART_COMPLETE_INTERRUPT;
    clear_status(uart, UART_COMPLETE);
    tide_uart_transmit_complete(); /* this call may start the next piece */
  }
}
