/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M without an operating system: a 64-bit clock from the chip's free-running counter (chip.h), critical sections
 * by BASEPRI, exact one-shot wake-ups (no tick), sleep by WFI. */
#include "platform.h"

#include <stddef.h>

#include "chip.h"
#include "tide/port.h"

/* Longer sleeps wake up in between, so that every wrap of the counter is noticed. */
#define SLEEP_MAXIMUM_NS (INT64_C(1) << 30)

static struct { uint32_t last, wraps; } counter;

/* Alarm of the lanes (lanes.c), which share the wake-up timer with sleeping callers. */
static int64_t alarm_ns = TIDE_FOREVER;
static void (*alarm_handler)(void);

/* Any interrupt ends the sleep, and the sleeping caller sets the timer again. */
void tide_cortex_m_wakeup_interrupt(void) {
  tide_chip_disarm();
  if (TIDE_LANES && alarm_handler != NULL) alarm_handler();
}

/* For measurements only: the longest critical section, from outermost enter to exit. */
#ifndef TIDE_MEASURE_MASKED
#define TIDE_MEASURE_MASKED 0
#endif
typedef struct section {
  uint32_t since, maximum;
} section_t;
static section_t masked, lanes_locked;

static uint32_t read_maximum(section_t *section) {
  const uint32_t maximum = section->maximum;
  section->maximum = 0;
  return maximum;
}
uint32_t tide_cortex_m_masked_maximum(void) { return read_maximum(&masked); }
uint32_t tide_cortex_m_lanes_locked_maximum(void) { return read_maximum(&lanes_locked); }

static void section_begins(section_t *section) { section->since = tide_chip_ticks(); }
static void section_ends(section_t *section) {
  const uint32_t ticks = tide_chip_ticks() - section->since;
  if (ticks > section->maximum) section->maximum = ticks;
}

static inline uint32_t raise_priority(uint32_t priority) {
  uint32_t before;
  __asm volatile("mrs %0, basepri\n msr basepri_max, %1\n isb" : "=&r"(before) : "r"(priority) : "memory");
  return before;
}

static uint32_t mask_interrupts(void) { return raise_priority(TIDE_INTERRUPT_PRIORITY); }

/* Pending interrupts are taken within a few cycles; a caller that needs certainty uses barriers
 * (tide_cortex_m_pend). */
static void restore_interrupts(uint32_t before) { __asm volatile("msr basepri, %0" ::"r"(before) : "memory"); }

uint64_t tide_cortex_m_clock(void) {
  const uint32_t before = mask_interrupts();
  const uint32_t low = tide_chip_ticks();
  if (low < counter.last) counter.wraps++;
  counter.last = low;
  const uint32_t high = counter.wraps;
  restore_interrupts(before);
  return ((uint64_t)high << 32) | low;
}

static int64_t now_ns(void *context) {
  (void)context;
  return (int64_t)(tide_cortex_m_clock() * TIDE_CHIP_TICK_NS);
}

static uintptr_t critical_enter(void *context) {
  (void)context;
  const uint32_t before = mask_interrupts();
  if (TIDE_MEASURE_MASKED && before != TIDE_INTERRUPT_PRIORITY) section_begins(&masked);
  return before;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  if (TIDE_MEASURE_MASKED && state != TIDE_INTERRUPT_PRIORITY) section_ends(&masked);
  restore_interrupts((uint32_t)state);
}

static uintptr_t lanes_enter(void *context) {
  (void)context;
  const uint32_t before = raise_priority(TIDE_LANE_PRIORITY_MOST);
  if (TIDE_MEASURE_MASKED && before == 0u) section_begins(&lanes_locked);
  return before;
}

static void lanes_exit(void *context, uintptr_t state) {
  (void)context;
  if (TIDE_MEASURE_MASKED && state == 0u) section_ends(&lanes_locked);
  restore_interrupts((uint32_t)state);
}

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0;
  event->port = NULL;
}

/* An event whose port is set belongs to a lane: the number of its interrupt. */
static void event_set(void *context, tide_event_t *event) {
  (void)context;
  event->state = 1;
  if (TIDE_LANES && event->port != NULL) tide_cortex_m_pend((uint32_t)(uintptr_t)event->port);
}

static void arm_wakeup(int64_t left_ns) {
  if (left_ns >= SLEEP_MAXIMUM_NS) left_ns = SLEEP_MAXIMUM_NS - 1;
  tide_chip_arm(left_ns < 0 ? 0u : (uint32_t)left_ns);
}

void tide_cortex_m_set_alarm(int64_t time_ns, void (*handler)(void)) {
  const uint32_t before = mask_interrupts();
  alarm_ns = time_ns;
  alarm_handler = handler;
  if (time_ns != TIDE_FOREVER) arm_wakeup(time_ns - now_ns(NULL));
  restore_interrupts(before);
}

static int64_t earlier(int64_t left_ns, int64_t right_ns) { return left_ns < right_ns ? left_ns : right_ns; }

/* Testing event and clock and going to sleep must be atomic, or an interrupt in between would be missed. With PRIMASK
 * set an interrupt is not taken but still ends WFI. Only these few instructions of the port also delay the
 * application's urgent interrupts. */
static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  for (;;) {
    __asm volatile("cpsid i" ::: "memory");
    const bool set = *(volatile uint32_t *)&event->state != 0;
    const int64_t time_ns = now_ns(context), left_ns = set ? 0 : deadline_ns - time_ns;
    event->state = 0;
    if (left_ns > 0) {
      const int64_t wakeup_ns = TIDE_LANES ? earlier(deadline_ns, alarm_ns) : deadline_ns;
      if (wakeup_ns != TIDE_FOREVER) arm_wakeup(wakeup_ns - time_ns);
      __asm volatile("dsb\n wfi" ::: "memory");
    }
    __asm volatile("cpsie i\n isb" ::: "memory");
    if (left_ns <= 0) return set ? 1 : 0;
  }
}

#if TIDE_STATIC_PLATFORM
int64_t tide_static_now_ns(void) { return now_ns(NULL); }
uintptr_t tide_static_enter(void) { return mask_interrupts(); }
void tide_static_exit(uintptr_t state) { restore_interrupts((uint32_t)state); }
uintptr_t tide_static_lanes_enter(void) { return raise_priority(TIDE_LANE_PRIORITY_MOST); }
void tide_static_lanes_exit(uintptr_t state) { restore_interrupts((uint32_t)state); }
void tide_static_event_init(tide_event_t *event) { event_init(NULL, event); }
void tide_static_event_set(tide_event_t *event) { event_set(NULL, event); }
int tide_static_event_wait(tide_event_t *event, int64_t deadline_ns) { return event_wait(NULL, event, deadline_ns); }
#endif

const tide_platform_t tide_cortex_m_platform = {
    .context = NULL,
    .now_ns = now_ns,
    .wall_ns = NULL,
    .critical_enter = critical_enter,
    .critical_exit = critical_exit,
    .lanes_enter = lanes_enter,
    .lanes_exit = lanes_exit,
    .event_init = event_init,
    .event_set = event_set,
    .event_wait = event_wait,
};

const tide_platform_t *tide_port_platform(void) { return &tide_cortex_m_platform; }

void tide_cortex_m_enable_interrupt(uint32_t number) {
  NVIC_PRIORITY[number] = TIDE_INTERRUPT_PRIORITY;
  NVIC_ENABLE[number / 32u] = 1u << (number % 32u);
}

void tide_cortex_m_pend(uint32_t number) {
  NVIC_PENDING[number / 32u] = 1u << (number % 32u);
  __asm volatile("dsb\n isb" ::: "memory"); /* the interrupt is taken here, if it is more urgent */
}

void tide_cortex_m_platform_init(void) { tide_chip_init(); }

/* Lanes are interrupts, too. */
bool tide_port_in_interrupt(void) {
  const uint32_t first = 16u + TIDE_SOFTWARE_INTERRUPT_FIRST;
  uint32_t exception;
  __asm volatile("mrs %0, ipsr" : "=r"(exception));
  return exception != 0u && (exception < first || exception >= first + TIDE_SOFTWARE_INTERRUPTS);
}

/* ---- execution times: by the core's cycle counter if it counts, else by the timer (QEMU, where it stays 0, and cores
 * without one) ---- */

#define DEMCR ((volatile uint32_t *)0xE000EDFCu)
#define DEMCR_TRACE (1u << 24)
#define DWT_CONTROL ((volatile uint32_t *)0xE0001000u)
#define DWT_COUNTS 1u
#define DWT_CYCLES ((volatile uint32_t *)0xE0001004u)
#define DWT_UNLOCK ((volatile uint32_t *)0xE0001FB0u) /* unlocks the counter of a Cortex-M7; else no effect */
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

const tide_measure_clock_t *tide_port_measure_clock(void) {
  static tide_measure_clock_t clock = {.mask = UINT32_MAX};
  const bool has = has_cycles();
  clock.now = has ? cycles : ticks;
  clock.hertz = has ? TIDE_CHIP_CORE_HZ : 1000000000u / TIDE_CHIP_TICK_NS;
  return &clock;
}
