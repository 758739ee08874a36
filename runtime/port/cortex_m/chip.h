/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of the port to a chip. This header has the interrupt controller, which all chips have. The chip's own
 * header has a free-running clock, a one-shot wake-up, and numbers of interrupts that software may pend. */
#pragma once

#include <stdint.h>

#define NVIC_ENABLE ((volatile uint32_t *)0xE000E100u)
#define NVIC_DISABLE ((volatile uint32_t *)0xE000E180u)
#define NVIC_PENDING ((volatile uint32_t *)0xE000E200u)
#define NVIC_ACTIVE ((volatile uint32_t *)0xE000E300u)
#define NVIC_PRIORITY ((volatile uint8_t *)0xE000E400u)

/* Interrupts of the runtime have this priority. Critical sections mask it and less urgent priorities. So the runtime
 * never delays interrupts of the application with a smaller number, which must not call the runtime. */
#define TIDE_INTERRUPT_PRIORITY 0x40u
/* The link, which polls the session, is below these interrupts. The lanes are below the link, in steps that four bits
 * of priority can distinguish, and the main program is below all lanes. */
#define TIDE_LINK_PRIORITY 0x50u
#define TIDE_LANE_PRIORITY_MOST 0x60u
#define TIDE_LANE_PRIORITY_LEAST 0xF0u
#define TIDE_LANE_PRIORITY_STEP 0x10u

/* A chip's header defines TIDE_CHIP_TICK_NS, TIDE_CHIP_CORE_HZ, TIDE_SOFTWARE_INTERRUPT_FIRST, TIDE_SOFTWARE_INTERRUPTS
 * and, for platform.c:
 *
 *   tide_chip_init()      start the clock; enable the wake-up interrupt at TIDE_INTERRUPT_PRIORITY
 *   tide_chip_ticks()     a counter of 32 bits that counts up; it is read at least once in each wrap
 *   tide_chip_arm(ns)     the wake-up interrupt comes once, after that time (below 2^30 ns); earlier is harmless
 *   tide_chip_disarm()    called in that interrupt: it does not come again */
#ifndef TIDE_STM32F405
#define TIDE_STM32F405 0
#endif
#if TIDE_STM32F405
#include "stm32f405.h"
#else
#include "mps2.h"
#endif
