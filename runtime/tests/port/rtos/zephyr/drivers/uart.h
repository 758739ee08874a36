/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <zephyr/device.h>

#ifdef __cplusplus
extern "C" {
#endif

enum uart_event_type {
  UART_TX_DONE,
  UART_TX_ABORTED,
  UART_RX_RDY,
  UART_RX_BUF_REQUEST,
  UART_RX_BUF_RELEASED,
  UART_RX_DISABLED,
  UART_RX_STOPPED
};
struct uart_event_rx {
  uint8_t *buf;
  size_t offset, len;
};
struct uart_event {
  enum uart_event_type type;
  union {
    struct uart_event_rx rx;
  } data;
};
struct uart_config {
  uint32_t baudrate;
};
typedef void (*uart_callback_t)(const struct device *device, struct uart_event *event, void *context);

int uart_config_get(const struct device *device, struct uart_config *config);
int uart_configure(const struct device *device, const struct uart_config *config);
int uart_callback_set(const struct device *device, uart_callback_t callback, void *context);
int uart_rx_enable(const struct device *device, uint8_t *memory, size_t bytes, int32_t timeout_us);
int uart_rx_buf_rsp(const struct device *device, uint8_t *memory, size_t bytes);
int uart_rx_disable(const struct device *device);
int uart_tx(const struct device *device, const uint8_t *bytes, size_t count, int32_t timeout_us);
int uart_tx_abort(const struct device *device);

typedef void (*uart_irq_callback_user_data_t)(const struct device *device, void *context);
int uart_irq_callback_user_data_set(const struct device *device, uart_irq_callback_user_data_t callback, void *context);
int uart_irq_update(const struct device *device);
int uart_irq_rx_ready(const struct device *device);
int uart_irq_tx_ready(const struct device *device);
void uart_irq_rx_enable(const struct device *device);
void uart_irq_rx_disable(const struct device *device);
void uart_irq_tx_enable(const struct device *device);
void uart_irq_tx_disable(const struct device *device);
int uart_fifo_read(const struct device *device, uint8_t *place, const int count);
int uart_fifo_fill(const struct device *device, const uint8_t *bytes, int count);

#ifdef __cplusplus
}
#endif
