/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V can only exchange words. For a byte, compilers before GCC 13 call a function that their library may lack; this
 * definition uses a word exchange. Weak: a library's own function takes precedence. Chips without atomic instructions
 * (C2, C3) get all such functions from ESP-IDF. */
#include <stdbool.h>
#include <stdint.h>

#if defined(__riscv_atomic) && __GNUC__ < 13
uint8_t tide_esp_exchange_1(volatile void *place, uint8_t value, int order) __asm__("__atomic_exchange_1");

__attribute__((weak)) uint8_t tide_esp_exchange_1(volatile void *place, uint8_t value, int order) {
  (void)order; /* the strongest order is used */
  const uintptr_t address = (uintptr_t)place;
  const unsigned shift = 8u * (unsigned)(address & 3u);
  volatile uint32_t *const word = (volatile uint32_t *)(address & ~(uintptr_t)3u);
  const uint32_t others = ~((uint32_t)0xFFu << shift);
  uint32_t before = *word;
  while (!__atomic_compare_exchange_n(word, &before, (before & others) | ((uint32_t)value << shift), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
  return (uint8_t)(before >> shift);
}
#else
typedef int tide_esp_exchanges_bytes_t; /* a translation unit is not empty */
#endif
