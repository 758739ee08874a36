/* SPDX-License-Identifier: Apache-2.0 */
/* Two atomic operations for the Cortex-M0+, which has no such instructions. The compiler calls library functions for
 * them, which many toolchains lack. Weak: a framework's own functions take precedence. */
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
