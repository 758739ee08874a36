/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts that software pends, now or at a time: one for the link and one for each lane. They share the wake-up
 * timer with sleeping callers. O(TIDE_SOFTWARE_INTERRUPTS) when a time has passed, else O(1). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "chip.h"

#define TIDE_SOFTWARE_LINK (TIDE_SOFTWARE_INTERRUPTS - 1u) /* the link's index; lower indices are the lanes' */

static inline uint32_t tide_software_number(size_t index) { return TIDE_SOFTWARE_INTERRUPT_FIRST + (uint32_t)index; }

/* From now on handler(index) runs, at that hardware priority, whenever software pends the interrupt. */
void tide_software_start(size_t index, uint32_t priority, void (*handler)(size_t index));
void tide_software_stop(size_t index);
/* Pends the interrupt at this time, in place of the time set before; TIDE_FOREVER: never. Any context may call it. */
void tide_software_wake_at(size_t index, int64_t time_ns);

/* Sets a function that checks budgets. The function is called with the present time, in the critical section. It is
 * called at the time that it last returned, and possibly at other times. Null: no function. tide_software_look_by sets
 * an earlier time. */
void tide_software_look(int64_t (*look)(int64_t time_ns));
void tide_software_look_by(int64_t time_ns);
