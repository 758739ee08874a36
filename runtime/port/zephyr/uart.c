/* SPDX-License-Identifier: Apache-2.0 */
/* The line that the devicetree's chosen node tide,uart names, by the asynchronous (DMA) interface of UARTs. The driver
 * requests the next buffer before the current one is full. It gets the halves of the ring alternately, so the state is
 * the position in the ring. Callbacks come from the driver's interrupt.
 *
 *   / { chosen { tide,uart = &usart3; }; };                                    in the board's overlay */
#include "uart.h" /* the interface of drivers, in port/cortex_m */

#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>

#define HALF_BYTES (CONFIG_TIDE_RING_BYTES / 2)
#define IDLE_US 1000 /* silence after which received bytes are reported */

static const struct device *const line = DEVICE_DT_GET(DT_CHOSEN(tide_uart));
static uint8_t piece[32], ring_memory[CONFIG_TIDE_RING_BYTES];
static uint8_t *ring;
static volatile size_t position;
static size_t next_half; /* 0 or 1: next half for the driver */
static volatile bool wanted;

/* Resumes at its last position, so that the link, which reads up to the position, never reads old bytes. */
static int begin_receiving(void) {
  next_half = (position / HALF_BYTES) ^ 1u;
  return uart_rx_enable(line, ring + position, HALF_BYTES - position % HALF_BYTES, IDLE_US);
}

static void on_event(const struct device *device, struct uart_event *event, void *context) {
  ARG_UNUSED(context);
  switch (event->type) {
    case UART_TX_DONE:
    case UART_TX_ABORTED: /* counted as sent: the streams repair the loss */ tide_uart_transmit_complete(); break;
    case UART_RX_RDY:
      position =
          ((size_t)(event->data.rx.buf - ring) + event->data.rx.offset + event->data.rx.len) % CONFIG_TIDE_RING_BYTES;
      tide_uart_received();
      break;
    case UART_RX_BUF_REQUEST:
      (void)uart_rx_buf_rsp(device, ring + next_half * HALF_BYTES, HALF_BYTES);
      next_half ^= 1u;
      break;
    case UART_RX_DISABLED: /* the line had an error, or was closed */
      if (wanted) (void)begin_receiving();
      break;
    default: break;
  }
}

static int open(uint32_t baud, uint8_t *memory, size_t bytes) {
  ARG_UNUSED(bytes);
  ring = memory;
  struct uart_config config;
  if (uart_config_get(line, &config) == 0) { /* other drivers are configured by the devicetree */
    config.baudrate = baud;
    (void)uart_configure(line, &config);
  }
  const int status = uart_callback_set(line, on_event, NULL); /* a driver without this interface returns an error
                                                                 here */
  if (status < 0) return status;
  wanted = true;
  position = 0u;
  return begin_receiving();
}

static void close(void) {
  wanted = false;
  (void)uart_rx_disable(line);
  (void)uart_tx_abort(line);
}

static void start_transmit(const uint8_t *bytes, size_t count) { (void)uart_tx(line, bytes, count, SYS_FOREVER_US); }

static size_t receive_position(void) { return position; }

static const tide_uart_driver_t driver = {open, close, start_transmit, receive_position};
const tide_uart_board_t tide_uart_board = {&driver, piece, sizeof piece, ring_memory, sizeof ring_memory};
