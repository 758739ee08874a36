/* SPDX-License-Identifier: Apache-2.0 */
/* A UART by its interrupts, or USB CDC ACM, which has the same interface. What comes goes into a ring; a semaphore
 * wakes the link's thread, so that no wait spins. */
#include <microros_transports.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/ring_buffer.h>

#define WRITE_LIMIT K_MSEC(100) /* a line that takes nothing for so long is stuck: USB without a host */

zephyr_transport_params_t default_params = {.uart_dev = DEVICE_DT_GET(DT_CHOSEN(tide_uart))};

static uint8_t in_memory[CONFIG_TIDE_RING_BYTES], out_memory[CONFIG_TIDE_RING_BYTES];
static struct ring_buf in, out;
static struct k_sem came, left;

static const struct device *device_of(const struct uxrCustomTransport *transport) {
  const zephyr_transport_params_t *parameters = transport->args;
  return parameters->uart_dev;
}

/* Whether there was something. */
static bool receive(const struct device *device) {
  uint8_t *place;
  const uint32_t room = ring_buf_put_claim(&in, &place, sizeof in_memory);
  uint8_t dropped;
  if (room == 0u) { /* nobody reads: the streams repair what is lost */
    bool any = false;
    while (uart_fifo_read(device, &dropped, 1) > 0) any = true;
    return any;
  }
  const int got = uart_fifo_read(device, place, (int)room);
  (void)ring_buf_put_finish(&in, got > 0 ? (uint32_t)got : 0u);
  if (got > 0) k_sem_give(&came);
  return got > 0;
}

/* Whether the line took something. */
static bool send(const struct device *device) {
  uint8_t *bytes;
  const uint32_t count = ring_buf_get_claim(&out, &bytes, sizeof out_memory);
  const int sent = count > 0u ? uart_fifo_fill(device, bytes, (int)count) : 0;
  (void)ring_buf_get_finish(&out, sent > 0 ? (uint32_t)sent : 0u);
  if (count == 0u) uart_irq_tx_disable(device);
  k_sem_give(&left);
  return sent > 0;
}

/* Drivers whose hardware tells only that the line has become free begin a transmission by calling this when nothing is
 * pending, so it asks what there is to do, and not whether an interrupt is pending. */
static void on_interrupt(const struct device *device, void *context) {
  ARG_UNUSED(context);
  bool more = true;
  while (more && uart_irq_update(device) > 0) {
    more = uart_irq_rx_ready(device) > 0 && receive(device);
    if (uart_irq_tx_ready(device) > 0 && send(device)) more = true;
  }
}

bool zephyr_transport_open(struct uxrCustomTransport *transport) {
  const struct device *device = device_of(transport);
  if (!device_is_ready(device)) return false;
  ring_buf_init(&in, sizeof in_memory, in_memory);
  ring_buf_init(&out, sizeof out_memory, out_memory);
  (void)k_sem_init(&came, 0, 1);
  (void)k_sem_init(&left, 0, 1);
  if (uart_irq_callback_user_data_set(device, on_interrupt, NULL) < 0) return false;
  uart_irq_rx_enable(device);
  return true;
}

bool zephyr_transport_close(struct uxrCustomTransport *transport) {
  const struct device *device = device_of(transport);
  uart_irq_rx_disable(device);
  uart_irq_tx_disable(device);
  return true;
}

size_t zephyr_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count,
                              uint8_t *error) {
  const struct device *device = device_of(transport);
  size_t taken = 0;
  *error = 0;
  while (taken < count) {
    const unsigned int key = irq_lock();
    taken += ring_buf_put(&out, bytes + taken, (uint32_t)(count - taken));
    irq_unlock(key);
    uart_irq_tx_enable(device);
    if (taken < count && k_sem_take(&left, WRITE_LIMIT) != 0) {
      *error = 1;
      break;
    }
  }
  return taken;
}

size_t zephyr_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error) {
  ARG_UNUSED(transport);
  *error = 0;
  if (ring_buf_is_empty(&in)) (void)k_sem_take(&came, K_MSEC(timeout_ms));
  const unsigned int key = irq_lock();
  const uint32_t got = ring_buf_get(&in, bytes, (uint32_t)count);
  irq_unlock(key);
  return got;
}
