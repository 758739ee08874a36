/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section (a Cortex-M0+ has PRIMASK only) and transport of the Pico SDK, for RP2040 and RP2350. */
#include "bare.h"
#include "hardware/sync.h"
#include "pico/stdlib.h"
#include "pico_uart_transports.h"

uint32_t tide_bare_clock_us(void) { return time_us_32(); }
void tide_bare_idle(void) { tight_loop_contents(); }
uintptr_t tide_bare_mask(void) { return save_and_disable_interrupts(); }
void tide_bare_unmask(uintptr_t state) { restore_interrupts((uint32_t)state); }

bool pico_serial_transport_open(struct uxrCustomTransport *transport) {
  static bool ready;
  (void)transport;
  if (!ready) (void)stdio_init_all();
  ready = true;
  return true;
}

bool pico_serial_transport_close(struct uxrCustomTransport *transport) {
  (void)transport;
  return true;
}

/* Raw: no newline becomes two bytes. */
size_t pico_serial_transport_write(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count,
                                   uint8_t *error) {
  (void)transport;
  *error = 0u;
  for (size_t index = 0; index < count; index++) (void)putchar_raw(bytes[index]);
  stdio_flush();
  return count;
}

size_t pico_serial_transport_read(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                                  uint8_t *error) {
  (void)transport;
  *error = 0u;
  size_t got = 0u;
  uint32_t wait_us = timeout_ms > 0 ? (uint32_t)timeout_ms * 1000u : 0u;
  while (got < count) {
    const int octet = getchar_timeout_us(wait_us);
    if (octet < 0) break; /* PICO_ERROR_TIMEOUT */
    bytes[got++] = (uint8_t)octet;
    wait_us = 0u;
  }
  return got;
}
