/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what the port promises about time, in exact virtual time (run it with -icount shift=5,sleep=off). Wake-ups are
 * never early, and at most LATE_MAXIMUM_NS late. The runtime's critical sections do not delay urgent interrupts. An
 * event always ends a sleep, even if it occurs just when the sleep begins. The clock continues across a wrap-around of
 * its timer. The exit code is the number of the broken promise. */
#include <stddef.h>

#include "board.h"
#include "chip.h"
#include "platform.h"
#include "software.h"
#include "tide/platform.h"

#define LATE_MAXIMUM_NS 5000
#define URGENT_MAXIMUM_NS 2000
#define WAKE_UPS 500
#define EVENTS 4000
#define CRITICAL_SECTIONS 200
#define WRAPS 100

static const tide_platform_t *const platform = &tide_cortex_m_platform;
static tide_event_t event;
static volatile uint32_t interrupt_tick;
static volatile uint32_t interrupts;
static bool sets_event;

static uint32_t random_below(uint32_t bound) {
  static uint32_t state = 2463534242u; /* xorshift, so that every run is the same */
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state % bound;
}

static int64_t now(void) { return platform->now_ns(NULL); }

void board_alarm_interrupt(void) {
  interrupt_tick = tide_cortex_m_ticks();
  if (!board_alarm_due(0)) return;
  interrupts++;
  if (sets_event) platform->event_set(NULL, &event);
}

static void interrupt_after(uint32_t ticks) { board_alarm(0, (int64_t)ticks * TIDE_CHIP_TICK_NS); }

static void urgent(size_t index) {
  (void)index;
  interrupt_tick = tide_cortex_m_ticks();
  interrupts++;
}

/* Sets the clock's counter to this many ticks before its wrap-around. */
static void wrap_after(uint32_t ticks) {
#if TIDE_STM32F405
  STM32_TIM2_CNT = 0u - ticks;
#else
  MPS2_TIMER0->value = ticks;
#endif
}

static int check_wake_ups(int64_t *latest_ns) {
  for (int i = 0; i < WAKE_UPS; i++) {
    const int64_t deadline_ns = now() + 1 + random_below(i % 2 == 0 ? 5000u : 20000000u);
    if (platform->event_wait(NULL, &event, deadline_ns) != 0) return 2;
    const int64_t late_ns = now() - deadline_ns;
    if (late_ns < 0) return 3;
    if (late_ns > *latest_ns) *latest_ns = late_ns;
  }
  return *latest_ns > LATE_MAXIMUM_NS ? 4 : 0;
}

/* An interrupt that is more urgent than the runtime occurs during a long critical section. */
static int check_urgent_interrupts(int64_t *longest_ns) {
  tide_software_start(0, 0, urgent);
  for (int i = 0; i < CRITICAL_SECTIONS; i++) {
    const uint32_t before = interrupts, instructions = random_below(2000u);
    const uintptr_t critical = platform->critical_enter(NULL);
    for (volatile uint32_t left = instructions; left > 0u;) left--;
    const uint32_t start = tide_cortex_m_ticks();
    tide_cortex_m_pend(tide_software_number(0));
    if (interrupts != before + 1u) return 5;
    platform->critical_exit(NULL, critical);
    const int64_t delay_ns = (int64_t)(int32_t)(interrupt_tick - start) * TIDE_CHIP_TICK_NS;
    if (delay_ns > *longest_ns) *longest_ns = delay_ns;
  }
  tide_software_stop(0);
  return *longest_ns > URGENT_MAXIMUM_NS ? 6 : 0;
}

/* An interrupt of the runtime's own priority waits for the end of the section. */
static int check_own_interrupts(void) {
  const uint32_t before = interrupts;
  const uintptr_t critical = platform->critical_enter(NULL);
  interrupt_after(50u);
  const uint32_t start = tide_cortex_m_ticks();
  while (tide_cortex_m_ticks() - start < 1000u) continue;
  const bool too_early = interrupts != before;
  platform->critical_exit(NULL, critical);
  return too_early || interrupts != before + 1u ? 7 : 0;
}

/* An interrupt sets the event, once at each instruction from before the wait's check until after the start of its
 * sleep. If the event is missed, the wait ends only at its deadline. */
static int check_events(void) {
  sets_event = true;
  for (int i = 0; i < EVENTS; i++) {
    interrupt_after(1u + (uint32_t)i % 200u);
    if (platform->event_wait(NULL, &event, now() + 1000000) != 1) return 8;
  }
  sets_event = false;
  return 0;
}

/* Every other wrap-around occurs in a critical section. */
static int check_wrap(void) {
  for (int i = 0; i < WRAPS; i++) {
    wrap_after(200u + (uint32_t)i);
    const bool masked = i % 2 == 0;
    const uintptr_t critical = masked ? platform->critical_enter(NULL) : 0;
    int64_t last_ns = now();
    const int64_t end_ns = last_ns + 600 * TIDE_CHIP_TICK_NS;
    while (last_ns < end_ns) {
      const int64_t now_ns = now();
      if (now_ns < last_ns || now_ns - last_ns > 20000) return 9;
      last_ns = now_ns;
    }
    if (masked) platform->critical_exit(NULL, critical);
  }
  return 0;
}

static void print(const char *what, int64_t value_ns) {
  char line[16], *end = line + sizeof line - 1;
  uint32_t rest = (uint32_t)value_ns;
  *end = '\0';
  *--end = '\n';
  do *--end = (char)('0' + rest % 10u);
  while ((rest /= 10u) != 0u);
  board_print(what);
  board_print(end);
}

int main(void) {
  int64_t latest_ns = 0, longest_ns = 0;
  platform->event_init(NULL, &event);
  int broken = check_wake_ups(&latest_ns);
  if (broken == 0) broken = check_urgent_interrupts(&longest_ns);
  if (broken == 0) broken = check_own_interrupts();
  if (broken == 0) broken = check_events();
  if (broken == 0) broken = check_wrap();
  print("latest wake-up ns ", latest_ns);
  print("urgent interrupt later by ns ", longest_ns);
  return broken;
}
