/* SPDX-License-Identifier: Apache-2.0 */
/* Clock and critical section of a STM32Cube project without a kernel (port/bare). Milliseconds come from the HAL, whose
 * time base is SysTick, as in CubeMX without FreeRTOS; the fraction comes from SysTick's counter. */
#include "bare.h"
#include "main.h"

uint32_t tide_bare_clock_us(void) {
  uint32_t ms, left, load;
  do {
    ms = HAL_GetTick();
    left = SysTick->VAL;
    load = SysTick->LOAD;
  } while (ms != HAL_GetTick());
  const uint32_t us = (uint32_t)((uint64_t)(load - left) * 1000u / (load + 1u));
  /* With interrupts masked, the counter may have wrapped while the HAL's tick interrupt is still pending. */
  const bool waits = (SCB->ICSR & SCB_ICSR_PENDSTSET_Msk) != 0u && left > load / 2u;
  return (ms + (waits ? 1u : 0u)) * 1000u + us;
}

void tide_bare_idle(uint32_t most_us) { (void)most_us; }

uintptr_t tide_bare_mask(void) {
  const uint32_t state = __get_PRIMASK();
  __disable_irq();
  return state;
}

void tide_bare_unmask(uintptr_t state) { __set_PRIMASK((uint32_t)state); }
