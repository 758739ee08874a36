/* SPDX-License-Identifier: Apache-2.0 */
/* The priority ceiling of locks on lanes that are interrupts: BASEPRI keeps out the lanes up to the lock's ceiling, and
 * lets the link and more urgent lanes in. The main program, which has no lane, is below all of them. */
#include "tide/lock.h"

#include "software.h"
#include "tide/port.h"

#define EXCEPTIONS 16u /* before the first interrupt */

static const void *current(void *context) {
  static const char main_program, lanes[TIDE_SOFTWARE_LINK];
  uint32_t number;
  (void)context;
  __asm volatile("mrs %0, ipsr" : "=r"(number));
  if (number == 0u) return &main_program;
  const uint32_t lane = number - EXCEPTIONS - TIDE_SOFTWARE_INTERRUPT_FIRST;
  return lane < TIDE_SOFTWARE_LINK ? &lanes[lane] : NULL;
}

/* While lanes run, a lane's event has the number of its interrupt. One that runs in the main program alone has none,
 * and nobody to keep out. */
static int raise_to(void *context, const tide_lane_t *lane, uintptr_t *before) {
  const uint32_t number = (uint32_t)(uintptr_t)lane->event.port;
  uint32_t was;
  (void)context;
  __asm volatile("mrs %0, basepri" : "=r"(was));
  *before = was;
  if (lane->returns) {
    const uint32_t priority = NVIC_PRIORITY[number];
    __asm volatile("msr basepri_max, %0\n isb" ::"r"(priority) : "memory");
  }
  return 0;
}

static void restore(void *context, uintptr_t before) {
  const uint32_t priority = (uint32_t)before;
  (void)context;
  __asm volatile("msr basepri, %0" ::"r"(priority) : "memory");
}

const tide_lock_port_t *tide_port_locks(void) {
  static const tide_lock_port_t port = {.current = current, .raise = raise_to, .restore = restore, .may_wait = false};
  return &port;
}
