/* SPDX-License-Identifier: Apache-2.0 */
#include "cubemx_transport.h"

#include <string.h>

#include "main.h" /* the project's header with the HAL of its family */

#ifndef TIDE_CUBE_FREERTOS
#define TIDE_CUBE_FREERTOS 0
#endif
#if TIDE_CUBE_FREERTOS
#include "FreeRTOS.h"
#include "task.h"
static void pause(void) { vTaskDelay(1); }
#else
static void pause(void) {}
#endif

#ifndef TIDE_CUBE_RING_BYTES
#define TIDE_CUBE_RING_BYTES 1024u /* half of it must hold the bytes between two reads; a multiple of 32 */
#endif
#define SENT_BYTES 512u
#define WRITE_LIMIT_MS 1000u

static __attribute__((aligned(32))) uint8_t ring[TIDE_CUBE_RING_BYTES];
static __attribute__((aligned(32))) uint8_t sent[SENT_BYTES];
static size_t taken; /* index in the ring of the next byte to read */

#if defined(__DCACHE_PRESENT) && __DCACHE_PRESENT
static void invalidate(void) { SCB_InvalidateDCache_by_Addr((uint32_t *)(void *)ring, (int32_t)sizeof ring); }
static void clean(void) { SCB_CleanDCache_by_Addr((uint32_t *)(void *)sent, (int32_t)sizeof sent); }
#else
static void invalidate(void) {}
static void clean(void) {}
#endif

static UART_HandleTypeDef *uart_of(const struct uxrCustomTransport *transport) { return transport->args; }

static bool start_receiving(UART_HandleTypeDef *uart) {
  taken = 0u;
  return HAL_UART_Receive_DMA(uart, ring, (uint16_t)sizeof ring) == HAL_OK;
}

bool cubemx_transport_open(struct uxrCustomTransport *transport) { return start_receiving(uart_of(transport)); }

bool cubemx_transport_close(struct uxrCustomTransport *transport) {
  return HAL_UART_DMAStop(uart_of(transport)) == HAL_OK;
}

/* The DMA's buffer must not change meanwhile, so the data is copied in pieces. */
size_t cubemx_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count,
                              uint8_t *error) {
  UART_HandleTypeDef *uart = uart_of(transport);
  const size_t piece = count < sizeof sent ? count : sizeof sent;
  const uint32_t start_ms = HAL_GetTick();
  *error = 0u;
  while (uart->gState != HAL_UART_STATE_READY) {
    if (HAL_GetTick() - start_ms >= WRITE_LIMIT_MS) {
      *error = 1u;
      return 0u;
    }
    pause();
  }
  memcpy(sent, bytes, piece);
  clean();
  if (HAL_UART_Transmit_DMA(uart, sent, (uint16_t)piece) == HAL_OK) return piece;
  *error = 1u;
  return 0u;
}

static size_t position(const UART_HandleTypeDef *uart) {
  return (sizeof ring - (size_t)__HAL_DMA_GET_COUNTER(uart->hdmarx)) % sizeof ring;
}

/* The HAL ends the reception at a line error; the streams repair the loss. */
static bool has_bytes(UART_HandleTypeDef *uart) {
  if (uart->RxState != HAL_UART_STATE_BUSY_RX) (void)start_receiving(uart);
  return position(uart) != taken;
}

size_t cubemx_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                             uint8_t *error) {
  UART_HandleTypeDef *uart = uart_of(transport);
  const uint32_t start_ms = HAL_GetTick();
  *error = 0u;
  while (!has_bytes(uart)) {
    if (HAL_GetTick() - start_ms >= (uint32_t)timeout_ms) return 0u;
    pause();
  }
  const size_t end = position(uart);
  size_t got = 0u;
  invalidate();
  while (got < count && taken != end) {
    bytes[got++] = ring[taken];
    taken = (taken + 1u) % sizeof ring;
  }
  return got;
}
