/* SPDX-License-Identifier: Apache-2.0 */
/* The two operations on atomics that a Cortex-M0+ has no instructions for and this runtime's code asks the compiler's
 * library for, which many toolchains do not have. Weak: a framework that has its own keeps them. */
#include "bare.h"

#if defined(__ARM_ARCH_6M__)
uint8_t tide_bare_exchange_1(volatile void *place, uint8_t value, int order) __asm__("__atomic_exchange_1");
uint32_t tide_bare_fetch_add_4(volatile void *place, uint32_t value, int order) __asm__("__atomic_fetch_add_4");

__attribute__((weak)) uint8_t tide_bare_exchange_1(volatile void *place, uint8_t value, int order) {
  (void)order;
  const uintptr_t state = tide_bare_mask();
  volatile uint8_t *const byte = place;
  const uint8_t before = *byte;
  *byte = value;
  tide_bare_unmask(state);
  return before;
}

__attribute__((weak)) uint32_t tide_bare_fetch_add_4(volatile void *place, uint32_t value, int order) {
  (void)order;
  const uintptr_t state = tide_bare_mask();
  volatile uint32_t *const word = place;
  const uint32_t before = *word;
  *word = before + value;
  tide_bare_unmask(state);
  return before;
}
#else
typedef int tide_bare_has_atomics_t; /* a translation unit is not empty */
#endif
