/* SPDX-License-Identifier: Apache-2.0 */
/* The alarms of board.h. On the MPS2 boards they use the dual timer. On the STM32F405, whose timers cannot interrupt in
 * QEMU, they use two additional software interrupts of the port. */
#include "board.h"
#include "platform.h"
#include "software.h"
#include "tide/port.h"

#if TIDE_STM32F405

_Static_assert(TIDE_SOFTWARE_INTERRUPTS == 10u, "eight for the port, two for the alarms");
#define ALARM_FIRST 7u /* index of the first software interrupt: after seven lanes, before the link */

static volatile bool due[2];
static bool started;

static void come(size_t index) {
  due[index - ALARM_FIRST] = true;
  board_alarm_interrupt();
}

void board_alarm(unsigned which, int64_t left_ns) {
  const tide_platform_t *platform = tide_port_platform();
  if (!started) {
    started = true;
    for (size_t index = ALARM_FIRST; index < ALARM_FIRST + 2u; index++)
      tide_software_start(index, TIDE_INTERRUPT_PRIORITY, come);
  }
  tide_software_wake_at(ALARM_FIRST + which,
                        left_ns < 0 ? TIDE_FOREVER : platform->now_ns(platform->context) + left_ns);
}

bool board_alarm_due(unsigned which) {
  const bool was = due[which];
  due[which] = false;
  return was;
}

#else

void board_alarm(unsigned which, int64_t left_ns) {
  mps2_dual_timer_t *timer = which == 0u ? MPS2_DUAL1 : MPS2_DUAL2;
  tide_cortex_m_enable_interrupt(MPS2_IRQ_DUAL_TIMER);
  timer->control = MPS2_DUAL_ONE_SHOT;
  if (left_ns < 0) return;
  timer->load = left_ns == 0 ? 1u : (uint32_t)((left_ns + TIDE_CHIP_TICK_NS - 1) / TIDE_CHIP_TICK_NS);
  timer->control = MPS2_DUAL_ONE_SHOT | MPS2_DUAL_RUN;
}

bool board_alarm_due(unsigned which) {
  mps2_dual_timer_t *timer = which == 0u ? MPS2_DUAL1 : MPS2_DUAL2;
  const bool is = timer->masked_status != 0u;
  if (is) timer->clear = 1;
  return is;
}

#endif
