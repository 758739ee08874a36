/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of ESP-IDF, and the links for rmw_uros_options_set_udp_address and for serial devices: lwIP's sockets and
 * the UART chosen in Kconfig. */
#include <errno.h>
#include <string.h>

#include "../rtos/rtos.h"
#include "driver/uart.h"
#include "esp_timer.h"
#include "lwip/netdb.h"
#include "lwip/sockets.h"
#include "sdkconfig.h"

#define UART_BUFFER_BYTES 1024

int64_t tide_freertos_clock_ns(void) { return esp_timer_get_time() * 1000; }

/* ---- datagrams ---- */

static struct {
  int socket;                    /* negative: closed */
  struct sockaddr_storage agent; /* IPv4 or IPv6 */
  socklen_t agent_bytes;
} udp = {.socket = -1};

static bool udp_close(void *context) {
  (void)context;
  if (udp.socket >= 0) (void)close(udp.socket);
  udp.socket = -1;
  return true;
}

static bool udp_open(void *context) {
  (void)context;
  udp.socket = socket(udp.agent.ss_family, SOCK_DGRAM, IPPROTO_UDP);
  if (udp.socket < 0) return false;
  if (connect(udp.socket, (struct sockaddr *)&udp.agent, udp.agent_bytes) == 0) return true;
  (void)udp_close(context);
  return false;
}

static size_t udp_write(void *context, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)context;
  const ssize_t sent = send(udp.socket, bytes, count, 0);
  *error = sent < 0 ? 1u : 0u;
  return sent < 0 ? 0u : (size_t)sent;
}

static size_t udp_read(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *error) {
  (void)context;
  fd_set waiting;
  struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = (timeout_ms % 1000) * 1000};
  *error = 0u;
  FD_ZERO(&waiting);
  FD_SET(udp.socket, &waiting);
  if (select(udp.socket + 1, &waiting, NULL, NULL, &timeout) <= 0) return 0u;
  const ssize_t got = recv(udp.socket, bytes, count, MSG_DONTWAIT);
  if (got < 0) { /* no agent listens at the port: do not spin */
    *error = 1u;
    vTaskDelay(1);
  }
  return got < 0 ? 0u : (size_t)got;
}

static bool find_agent(const tide_link_address_t *address) {
  struct addrinfo hints, *found = NULL;
  if (address->host == NULL) return false;
  memset(&hints, 0, sizeof hints);
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(address->host, NULL, &hints, &found) != 0 || found == NULL) return false;
  udp.agent_bytes = found->ai_addrlen;
  memcpy(&udp.agent, found->ai_addr, udp.agent_bytes);
  ((struct sockaddr_in *)&udp.agent)->sin_port = htons(address->port); /* sin6_port has the same offset */
  freeaddrinfo(found);
  return true;
}

/* ---- the UART ---- */

static int uart_baud;

static bool serial_open(void *context) {
  (void)context;
  const uart_config_t config = {.baud_rate = uart_baud,
                                .data_bits = UART_DATA_8_BITS,
                                .parity = UART_PARITY_DISABLE,
                                .stop_bits = UART_STOP_BITS_1,
                                .flow_ctrl = UART_HW_FLOWCTRL_DISABLE};
  return uart_param_config(CONFIG_TIDE_UART_PORT, &config) == ESP_OK &&
         uart_set_pin(CONFIG_TIDE_UART_PORT, CONFIG_TIDE_UART_TXD, CONFIG_TIDE_UART_RXD, UART_PIN_NO_CHANGE,
                      UART_PIN_NO_CHANGE) == ESP_OK &&
         uart_driver_install(CONFIG_TIDE_UART_PORT, UART_BUFFER_BYTES, UART_BUFFER_BYTES, 0, NULL, 0) == ESP_OK;
}

static bool serial_close(void *context) {
  (void)context;
  return uart_driver_delete(CONFIG_TIDE_UART_PORT) == ESP_OK;
}

static size_t serial_write(void *context, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)context;
  const int sent = uart_write_bytes(CONFIG_TIDE_UART_PORT, bytes, count);
  *error = sent < 0 ? 1u : 0u;
  return sent < 0 ? 0u : (size_t)sent;
}

/* Reads the bytes received so far, or waits for the first byte, because a longer read would wait until its buffer is
 * full. */
static size_t serial_read(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *error) {
  (void)context;
  size_t waiting = 0u;
  *error = 0u;
  (void)uart_get_buffered_data_len(CONFIG_TIDE_UART_PORT, &waiting);
  const size_t wanted = waiting == 0u ? 1u : waiting < count ? waiting : count;
  const TickType_t ticks = ((TickType_t)timeout_ms * configTICK_RATE_HZ + 999u) / 1000u;
  const int got = uart_read_bytes(CONFIG_TIDE_UART_PORT, bytes, (uint32_t)wanted, waiting == 0u ? ticks : 0u);
  return got < 0 ? 0u : (size_t)got;
}

const tide_custom_transport_t *tide_rtos_transport(const tide_link_address_t *address) {
  static const tide_custom_transport_t datagrams = {
      .open = udp_open, .close = udp_close, .write = udp_write, .read = udp_read};
  static const tide_custom_transport_t serial = {
      .framed = true, .open = serial_open, .close = serial_close, .write = serial_write, .read = serial_read};
  if (address->kind == TIDE_LINK_UDP) return find_agent(address) ? &datagrams : NULL;
  if (address->kind != TIDE_LINK_SERIAL) return NULL;
  uart_baud = address->baud != 0u ? (int)address->baud : 115200;
  return &serial;
}
