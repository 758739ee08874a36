/* SPDX-License-Identifier: Apache-2.0 */
/* A UART by its interrupts, or USB CDC ACM, which has the same interface. Received bytes go into a ring; an event wakes
 * the link's thread, so that no wait spins or ends spuriously. The interrupt may come on another processor than the
 * thread's. So both access the rings and the transmitter's interrupt only within the critical section. */
#include <microros_transports.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/ring_buffer.h>

#include "tide/port.h"

#define WRITE_LIMIT_MS 100 /* a line that accepts nothing for this long is blocked: USB without a host */
#define MILLISECOND_NS INT64_C(1000000)

zephyr_transport_params_t default_params = {.uart_dev = DEVICE_DT_GET(DT_CHOSEN(tide_uart))};

static uint8_t in_memory[CONFIG_TIDE_RING_BYTES], out_memory[CONFIG_TIDE_RING_BYTES];
static struct ring_buf in, out;
static tide_event_t came; /* bytes, or a wake */
static tide_event_t left;

static const tide_platform_t *platform(void) { return tide_port_platform(); }
static uintptr_t enter(void) { return platform()->critical_enter(platform()->context); }
static void leave(uintptr_t state) { platform()->critical_exit(platform()->context, state); }
static void tell(tide_event_t *event) { platform()->event_set(platform()->context, event); }
static bool await(tide_event_t *event, int timeout_ms) {
  const int64_t end_ns = platform()->now_ns(platform()->context) + (int64_t)timeout_ms * MILLISECOND_NS;
  return platform()->event_wait(platform()->context, event, end_ns) != 0;
}

static const struct device *device_of(const struct uxrCustomTransport *transport) {
  const zephyr_transport_params_t *parameters = transport->args;
  return parameters->uart_dev;
}

/* Returns whether bytes were received. Must be called in the critical section. */
static bool receive_locked(const struct device *device) {
  uint8_t *place;
  const uint32_t room = ring_buf_put_claim(&in, &place, sizeof in_memory);
  uint8_t dropped;
  if (room == 0u) { /* the ring is full: the streams repair the loss */
    bool any = false;
    while (uart_fifo_read(device, &dropped, 1) > 0) any = true;
    return any;
  }
  const int got = uart_fifo_read(device, place, (int)room);
  (void)ring_buf_put_finish(&in, got > 0 ? (uint32_t)got : 0u);
  return got > 0;
}

static bool receive(const struct device *device) {
  const uintptr_t state = enter();
  const bool any = receive_locked(device);
  leave(state);
  if (any) tell(&came);
  return any;
}

/* Returns whether the line took bytes. Finding no data and disabling the interrupt are atomic: a write in between would
 * wait for an interrupt that never occurs. */
static bool send(const struct device *device) {
  uint8_t *bytes;
  const uintptr_t state = enter();
  const uint32_t count = ring_buf_get_claim(&out, &bytes, sizeof out_memory);
  const int sent = count > 0u ? uart_fifo_fill(device, bytes, (int)count) : 0;
  (void)ring_buf_get_finish(&out, sent > 0 ? (uint32_t)sent : 0u);
  if (count == 0u) uart_irq_tx_disable(device);
  leave(state);
  tell(&left);
  return sent > 0;
}

/* Some drivers call this function without a pending interrupt to begin a transmission, because their hardware only
 * reports that the line has become free. So the function checks for work instead of testing whether an interrupt is
 * pending. */
static void on_interrupt(const struct device *device, void *context) {
  ARG_UNUSED(context);
  bool more = true;
  while (more && uart_irq_update(device) > 0) {
    more = uart_irq_rx_ready(device) > 0 && receive(device);
    if (uart_irq_tx_ready(device) > 0 && send(device)) more = true;
  }
}

static void wake(struct uxrCustomTransport *transport) {
  ARG_UNUSED(transport);
  tell(&came);
}

/* The previous session's interrupt may still be running on another processor. */
static void clear(void) {
  const uintptr_t state = enter();
  ring_buf_init(&in, sizeof in_memory, in_memory);
  ring_buf_init(&out, sizeof out_memory, out_memory);
  platform()->event_init(platform()->context, &came);
  platform()->event_init(platform()->context, &left);
  leave(state);
}

bool zephyr_transport_open(struct uxrCustomTransport *transport) {
  const struct device *device = device_of(transport);
  if (!device_is_ready(device)) return false;
  clear();
  transport->wake = wake;
  if (uart_irq_callback_user_data_set(device, on_interrupt, NULL) < 0) return false;
  uart_irq_rx_enable(device);
  return true;
}

bool zephyr_transport_close(struct uxrCustomTransport *transport) {
  const struct device *device = device_of(transport);
  const uintptr_t state = enter();
  uart_irq_rx_disable(device);
  uart_irq_tx_disable(device);
  leave(state);
  return true;
}

static size_t put(const struct device *device, const uint8_t *bytes, size_t count) {
  const uintptr_t state = enter();
  const size_t taken = ring_buf_put(&out, bytes, (uint32_t)count);
  uart_irq_tx_enable(device);
  leave(state);
  return taken;
}

size_t zephyr_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count,
                              uint8_t *error) {
  const struct device *device = device_of(transport);
  size_t taken = 0;
  *error = 0;
  while (taken < count) {
    taken += put(device, bytes + taken, count - taken);
    if (taken < count && !await(&left, WRITE_LIMIT_MS)) {
      *error = 1;
      break;
    }
  }
  return taken;
}

static size_t get(uint8_t *bytes, size_t count) {
  const uintptr_t state = enter();
  const uint32_t got = ring_buf_get(&in, bytes, (uint32_t)count);
  leave(state);
  return got;
}

size_t zephyr_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error) {
  ARG_UNUSED(transport);
  *error = 0;
  const size_t there = get(bytes, count);
  if (there > 0u || timeout_ms <= 0) return there;
  (void)await(&came, timeout_ms);
  return get(bytes, count);
}
