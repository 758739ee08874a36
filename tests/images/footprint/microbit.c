/* SPDX-License-Identifier: Apache-2.0 */
/* A BBC micro:bit (nRF51822: Cortex-M0, 256 kB of flash, 16 kB of RAM) for runtime/port/bare, from Nordic's reference
 * manual of the nRF51: TIMER0 is the clock and ends a sleep, UART0 at 115,200 Bd is the line (P0.24, P0.25, the USB
 * port). */
#include <rmw_microros/custom_transport.h>
#include <stddef.h>

#include "bare.h"
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLOCK(offset) REGISTER(0x40000000u + (offset))
#define UART(offset) REGISTER(0x40002000u + (offset))
#define TIMER(offset) REGISTER(0x40008000u + (offset))
enum { START = 0x000, START_TRANSMIT = 0x008, CAPTURE = 0x040, STARTED = 0x100 };
enum { RECEIVED = 0x108, SENT = 0x11C, COMPARED = 0x140, ENABLE_INTERRUPT = 0x304, UART_ENABLE = 0x500 };
enum { PIN_TXD = 0x50C, PIN_RXD = 0x514, RXD = 0x518, TXD = 0x51C, BAUD = 0x524 };
enum { TIMER_WIDTH = 0x508, TIMER_PRESCALER = 0x510, COMPARE = 0x540 };
enum { UART_NUMBER = 2, TIMER_NUMBER = 8 };

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end;
void reset_handler(void);
int board_use_line(void);

static volatile struct {
  uint8_t bytes[128]; /* 11 ms of the line: the longest callback */
  uint8_t written, read;
} ring;

/* ---- the four functions of bare.h ---- */

uintptr_t tide_bare_mask(void) {
  uint32_t before;
  __asm volatile("mrs %0, primask\n cpsid i" : "=r"(before)::"memory");
  return before;
}

void tide_bare_unmask(uintptr_t state) { __asm volatile("msr primask, %0" ::"r"(state) : "memory"); }

uint32_t tide_bare_clock_us(void) {
  const uintptr_t state = tide_bare_mask();
  TIMER(CAPTURE) = 1u;
  const uint32_t now_us = TIMER(COMPARE);
  tide_bare_unmask(state);
  return now_us;
}

/* With interrupts masked, so that a byte which comes after the test ends WFI. */
void tide_bare_idle(uint32_t most_us) {
  const uintptr_t state = tide_bare_mask();
  TIMER(COMPARE + 4) = tide_bare_clock_us() + (most_us > 10u ? most_us : 10u);
  if (ring.written == ring.read) __asm volatile("dsb\n wfi" ::: "memory");
  tide_bare_unmask(state);
}

static void timer_interrupt(void) { TIMER(COMPARED + 4) = 0u; }

/* ---- the line ---- */

static void uart_interrupt(void) {
  while (UART(RECEIVED) != 0u) {
    UART(RECEIVED) = 0u;
    ring.bytes[ring.written++ % sizeof ring.bytes] = (uint8_t)UART(RXD);
  }
}

static bool open_line(struct uxrCustomTransport *transport) {
  (void)transport;
  return true;
}

static bool close_line(struct uxrCustomTransport *transport) {
  (void)transport;
  return true;
}

static size_t write_line(struct uxrCustomTransport *transport, const uint8_t *bytes, size_t count, uint8_t *error) {
  (void)transport;
  *error = 0u;
  for (size_t index = 0; index < count; index++) {
    UART(TXD) = bytes[index];
    while (UART(SENT) == 0u) continue;
    UART(SENT) = 0u;
  }
  return count;
}

static size_t read_line(struct uxrCustomTransport *transport, uint8_t *bytes, size_t count, int timeout_ms,
                        uint8_t *error) {
  (void)transport;
  *error = 0u;
  const uint32_t begin_us = tide_bare_clock_us(), limit_us = timeout_ms > 0 ? (uint32_t)timeout_ms * 1000u : 0u;
  for (;;) {
    size_t got = 0u;
    while (got < count && ring.read != ring.written) bytes[got++] = ring.bytes[ring.read++ % sizeof ring.bytes];
    const uint32_t past_us = tide_bare_clock_us() - begin_us;
    if (got > 0u || past_us >= limit_us) return got;
    tide_bare_idle(limit_us - past_us);
  }
}

int board_use_line(void) {
  return rmw_uros_set_custom_transport(true, NULL, open_line, close_line, write_line, read_line);
}

/* ---- start ---- */

void reset_handler(void) {
  uint32_t *from = &__data_load;
  for (uint32_t *to = &__data_start; to < &__data_end;) *to++ = *from++;
  for (uint32_t *to = &__bss_start; to < &__bss_end;) *to++ = 0;
  CLOCK(START) = 1u; /* the crystal */
  while (CLOCK(STARTED) == 0u) continue;
  TIMER(TIMER_WIDTH) = 3u;            /* 32 bits */
  TIMER(TIMER_PRESCALER) = 4u;        /* 1 MHz */
  TIMER(ENABLE_INTERRUPT) = 1u << 17; /* COMPARE[1] */
  TIMER(START) = 1u;
  UART(PIN_TXD) = 24u;
  UART(PIN_RXD) = 25u;
  UART(BAUD) = 0x01D7E000u;
  UART(UART_ENABLE) = 4u;
  UART(ENABLE_INTERRUPT) = 1u << 2; /* RXDRDY; QEMU ignores it before ENABLE */
  UART(START) = 1u;
  UART(START_TRANSMIT) = 1u;
  REGISTER(0xE000E100u) = 1u << UART_NUMBER | 1u << TIMER_NUMBER;
  board_exit(main());
}

static void fault_handler(void) { board_exit(70); }

__attribute__((section(".vectors"), used)) static void (*const vectors[16 + 9])(void) = {
    (void (*)(void))(uintptr_t)&__stack_top,
    reset_handler,
    fault_handler,
    fault_handler,
    [16 + UART_NUMBER] = uart_interrupt,
    [16 + TIMER_NUMBER] = timer_interrupt,
};
