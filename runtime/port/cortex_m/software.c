/* SPDX-License-Identifier: Apache-2.0 */
#include "software.h"

#include "platform.h"
#include "tide/port.h"

static struct {
  void (*handlers[TIDE_SOFTWARE_INTERRUPTS])(size_t index); /* null: stopped */
  int64_t wake_ns[TIDE_SOFTWARE_INTERRUPTS];
  int64_t (*look)(int64_t time_ns);
  int64_t armed_ns; /* time of the wake-up timer: at most the earliest of all times */
} software = {.armed_ns = TIDE_FOREVER};

static uintptr_t enter(void) {
  const tide_platform_t *platform = tide_port_platform();
  return platform->critical_enter(platform->context);
}

static void leave(uintptr_t state) {
  const tide_platform_t *platform = tide_port_platform();
  platform->critical_exit(platform->context, state);
}

void tide_cortex_m_software_interrupt(void) {
  uint32_t exception;
  __asm volatile("mrs %0, ipsr" : "=r"(exception));
  const size_t index = exception - 16u - TIDE_SOFTWARE_INTERRUPT_FIRST;
  if (software.handlers[index] != NULL) software.handlers[index](index);
}

static void look_at_time(void) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t state = enter();
  const int64_t time_ns = platform->now_ns(platform->context);
  software.armed_ns = TIDE_FOREVER;
  int64_t next_ns = software.look == NULL ? TIDE_FOREVER : software.look(time_ns);
  for (size_t index = 0; index < TIDE_SOFTWARE_INTERRUPTS; index++) {
    if (software.handlers[index] == NULL) continue;
    if (software.wake_ns[index] <= time_ns) {
      software.wake_ns[index] = TIDE_FOREVER;
      tide_cortex_m_pend(tide_software_number(index));
    }
    if (software.wake_ns[index] < next_ns) next_ns = software.wake_ns[index];
  }
  tide_software_look_by(next_ns);
  leave(state);
}

void tide_software_look_by(int64_t time_ns) {
  if (time_ns >= software.armed_ns) return;
  software.armed_ns = time_ns;
  tide_cortex_m_set_alarm(time_ns, look_at_time);
}

void tide_software_look(int64_t (*look)(int64_t time_ns)) {
  const uintptr_t state = enter();
  software.look = look;
  leave(state);
}

void tide_software_wake_at(size_t index, int64_t time_ns) {
  const uintptr_t state = enter();
  software.wake_ns[index] = time_ns;
  tide_software_look_by(time_ns);
  leave(state);
}

void tide_software_start(size_t index, uint32_t priority, void (*handler)(size_t index)) {
  const uint32_t number = tide_software_number(index);
  const uintptr_t state = enter();
  software.handlers[index] = handler;
  software.wake_ns[index] = TIDE_FOREVER;
  NVIC_PRIORITY[number] = (uint8_t)priority;
  NVIC_ENABLE[number / 32u] = 1u << (number % 32u);
  leave(state);
}

void tide_software_stop(size_t index) {
  const uint32_t number = tide_software_number(index);
  const uintptr_t state = enter();
  NVIC_DISABLE[number / 32u] = 1u << (number % 32u);
  software.handlers[index] = NULL;
  leave(state);
}
