/* SPDX-License-Identifier: Apache-2.0 */
/* Clock, critical section (a Cortex-M0+ has PRIMASK only) and transport of the Pico SDK, for RP2040 and RP2350. */
#include "bare.h"
#include "hardware/sync.h"
#include "pico/stdlib.h"
#include "pico_uart_transports.h"

uint32_t tide_bare_clock_us(void) { return time_us_32(); }
void tide_bare_idle(uint32_t most_us) { (void)best_effort_wfe_or_timeout(make_timeout_time_us(most_us)); }
uintptr_t tide_bare_mask(void) { return save_and_disable_interrupts(); }
void tide_bare_unmask(uintptr_t state) { restore_interrupts((uint32_t)state); }

/* The interrupt ends WFE; the waiting caller then reads the byte. */
static void on_chars(void *context) { (void)context; }

bool pico_serial_transport_open(struct uxrCustomTransport *transport) {
  static bool ready;
  (void)transport;
  if (!ready) (void)stdio_init_all();
  ready = true;
  stdio_set_chars_available_callback(on_chars, NULL);
  return true;
}

bool pico_serial_transport_close(struct uxrCustomTransport *transport) {
  (void)transport;
  return true;
}

/* Raw, so that a newline does not become two bytes. */
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
  const absolute_time_t end = make_timeout_time_ms(timeout_ms > 0 ? (uint32_t)timeout_ms : 0u);
  while (got < count) {
    const int octet = getchar_timeout_us(0u);
    if (octet >= 0)
      bytes[got++] = (uint8_t)octet;
    else if (got > 0u || best_effort_wfe_or_timeout(end))
      break; /* a byte that arrives after the check is an event, so WFE does not sleep through it */
  }
  return got;
}
