/* SPDX-License-Identifier: Apache-2.0 */
/* The data cache of a Cortex-M7, by address: registers of the system control space, present in every Cortex-M7. */
#include "stm32_uart.h"

#define LINE_BYTES 32u
#define INVALIDATE_BY_ADDRESS ((volatile uint32_t *)0xE000EF5Cu) /* DCIMVAC */
#define CLEAN_BY_ADDRESS ((volatile uint32_t *)0xE000EF68u)      /* DCCMVAC */

static void barrier(void) { __asm volatile("dsb" ::: "memory"); }

static void each_line(volatile uint32_t *operation, uintptr_t line, size_t bytes) {
  barrier();
  for (const uintptr_t end = line + bytes; line < end; line += LINE_BYTES) *operation = (uint32_t)line;
  barrier();
}

void tide_stm32_cache_clean(const uint8_t *line, size_t bytes) { each_line(CLEAN_BY_ADDRESS, (uintptr_t)line, bytes); }

void tide_stm32_cache_invalidate(uint8_t *line, size_t bytes) {
  each_line(INVALIDATE_BY_ADDRESS, (uintptr_t)line, bytes);
}
