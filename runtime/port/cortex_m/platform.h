/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the port, its link and the board's start-up code. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tide/platform.h"

/* The result of tide_port_platform, for constant configurations. */
extern const tide_platform_t tide_cortex_m_platform;

/* Called by the start-up code before any other call of the runtime. */
void tide_cortex_m_platform_init(void);
/* Enables an interrupt with the runtime's priority. */
void tide_cortex_m_enable_interrupt(uint32_t number);

/* Pends an interrupt: its handler runs as soon as its priority allows. Any context may call it. */
void tide_cortex_m_pend(uint32_t number);
/* The wake-up interrupt calls the handler at this time at the latest, and possibly at other times. TIDE_FOREVER: no
 * time; null: no handler. Any context may call it. */
void tide_cortex_m_set_alarm(int64_t time_ns, void (*handler)(void));

/* The clock in ticks of the chip (chip.h). Any context may call it; the low half suffices for short differences. */
uint64_t tide_cortex_m_clock(void);
static inline uint32_t tide_cortex_m_ticks(void) { return (uint32_t)tide_cortex_m_clock(); }

/* In a build with TIDE_MEASURE_MASKED=1: the longest critical section since the last call, in ticks of the timer. */
uint32_t tide_cortex_m_masked_maximum(void);
/* Like tide_cortex_m_masked_maximum, for sections that exclude lanes only. */
uint32_t tide_cortex_m_lanes_locked_maximum(void);

/* Interrupt handlers, to be placed in the vector table. */
void tide_cortex_m_wakeup_interrupt(void);
/* Handler of lanes and link (lanes.h), for each of the TIDE_SOFTWARE_INTERRUPTS numbers from the first. Linked only
 * when the program calls tide_port_run_lanes, so a weak reference is enough. */
void tide_cortex_m_software_interrupt(void);
void tide_mps2_uart_receive_interrupt(void);
void tide_mps2_dual_timer_interrupt(void);
