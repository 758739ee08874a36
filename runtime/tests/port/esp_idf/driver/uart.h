/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "esp_err.h"
#include "freertos/FreeRTOS.h"

typedef struct uart_config {
  int baud_rate, data_bits, parity, stop_bits, flow_ctrl;
} uart_config_t;
enum {
  UART_DATA_8_BITS = 3,
  UART_PARITY_DISABLE = 0,
  UART_STOP_BITS_1 = 1,
  UART_HW_FLOWCTRL_DISABLE = 0,
  UART_PIN_NO_CHANGE = -1
};
esp_err_t uart_param_config(int port, const uart_config_t *config);
esp_err_t uart_set_pin(int port, int send, int receive, int request, int clear);
esp_err_t uart_driver_install(int port, int receive_bytes, int send_bytes, int queue, void *queue_handle, int flags);
esp_err_t uart_driver_delete(int port);
esp_err_t uart_get_buffered_data_len(int port, size_t *count);
int uart_write_bytes(int port, const void *bytes, size_t count);
int uart_read_bytes(int port, void *place, uint32_t count, TickType_t ticks);
