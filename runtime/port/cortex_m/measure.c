/* SPDX-License-Identifier: Apache-2.0 */
/* Execution times by the cycle counter of the core, where it counts; where it does not (QEMU: it stays 0; cores without
 * one), by the port's timer. */
#include "mps2.h"
#include "platform.h"
#include "tide/port.h"

#define DEMCR ((volatile uint32_t *)0xE000EDFCu)
#define DEMCR_TRACE (1u << 24)
#define DWT_CONTROL ((volatile uint32_t *)0xE0001000u)
#define DWT_COUNTS 1u
#define DWT_CYCLES ((volatile uint32_t *)0xE0001004u)
#define DWT_UNLOCK ((volatile uint32_t *)0xE0001FB0u) /* Cortex-M7 only; elsewhere writing it does nothing */
#define DWT_KEY 0xC5ACCE55u

static uint64_t cycles(void *context) {
  (void)context;
  return *DWT_CYCLES;
}

static uint64_t ticks(void *context) {
  (void)context;
  return tide_cortex_m_ticks();
}

static bool has_cycles(void) {
  *DEMCR |= DEMCR_TRACE;
  *DWT_UNLOCK = DWT_KEY;
  *DWT_CONTROL |= DWT_COUNTS;
  const uint32_t before = *DWT_CYCLES;
  return *DWT_CYCLES != before;
}

/* The timer and the core run at the same frequency on these boards. */
const tide_measure_clock_t *tide_port_measure_clock(void) {
  static tide_measure_clock_t clock = {.mask = UINT32_MAX, .hertz = MPS2_CLOCK_HZ};
  clock.now = has_cycles() ? cycles : ticks;
  return &clock;
}
