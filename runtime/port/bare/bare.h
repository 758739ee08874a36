/* SPDX-License-Identifier: Apache-2.0 */
/* A platform for boards whose framework has only a clock and a loop: Arduino, the SDK of the Pico, STM32Cube without a
 * kernel, a chip without any. Only one context executes; it reaches the agent through a custom transport
 * (rmw_uros_set_custom_transport). No interrupt calls the runtime unless the board masks it in tide_bare_mask. */
#pragma once

#include "tide/port.h"

TIDE_EXTERN_C_BEGIN

/* Functions that the board provides. */

/* A free-running clock that wraps at 2^32, in microseconds. The clock must be read at least once in 71 minutes, which
 * any spinning executor does. The clock may step back by less than 16 s, as micros() of several cores does while
 * interrupts are masked. */
uint32_t tide_bare_clock_us(void);
/* Called repeatedly while the runtime waits, for example to call yield() of Arduino, to feed a watchdog, or to sleep. A
 * sleep must end after most_us, and at any interrupt that calls the runtime, including one that came just before. */
void tide_bare_idle(uint32_t most_us);
/* Mask interrupts that call rcl_publish or rcl_trigger_guard_condition, and restore the mask. */
uintptr_t tide_bare_mask(void);
void tide_bare_unmask(uintptr_t state);

TIDE_EXTERN_C_END
