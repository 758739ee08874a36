/* SPDX-License-Identifier: Apache-2.0 */
/* Small versions of functions that compilers call implicitly: about 200 bytes instead of the 2.3 kB of newlib and
 * libgcc, which unroll for speed. Link them before the C library if flash matters more than the speed of copying. A
 * division of 64-bit numbers takes about 700 instructions here. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memmove(void *to, const void *from, size_t count);
void *memset(void *to, int value, size_t count);
int memcmp(const void *a, const void *b, size_t count);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);

/* Without this option the compiler turns the loop of memcpy into a call of memcpy. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
  uint8_t *target = to;
  const uint8_t *source = from;
  while (count-- > 0u) *target++ = *source++;
  return to;
}

void *memmove(void *to, const void *from, size_t count) {
  uint8_t *target = to;
  const uint8_t *source = from;
  if (target <= source) return memcpy(to, from, count);
  while (count-- > 0u) target[count] = source[count];
  return to;
}

void *memset(void *to, int value, size_t count) {
  uint8_t *target = to;
  while (count-- > 0u) *target++ = (uint8_t)value;
  return to;
}

int memcmp(const void *a, const void *b, size_t count) {
  const uint8_t *left = a, *right = b;
  for (; count > 0u; --count, ++left, ++right)
    if (*left != *right) return *left - *right;
  return 0;
}

size_t strlen(const char *text) {
  const char *end = text;
  while (*end != '\0') ++end;
  return (size_t)(end - text);
}

int strcmp(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return (uint8_t)*a - (uint8_t)*b;
}

/* r1:r0 divided by r3:r2; quotient in r1:r0, remainder in r3:r2. One bit a round: the dividend is shifted out of r1:r0,
 * the quotient is shifted in, and r5:r4 is the remainder. */
__attribute__((naked)) void __aeabi_uldivmod(void);
__attribute__((naked)) void __aeabi_uldivmod(void) {
  __asm volatile(
      "push {r4-r8, lr}\n"
      "movs r4, #0\n"
      "movs r5, #0\n"
      "movs r6, #64\n"
      "1: adds r0, r0, r0\n"
      "adcs r1, r1\n"
      "adcs r4, r4\n"
      "adcs r5, r5\n"
      "bcs 2f\n" /* the remainder has 65 bits: larger than any divisor */
      "subs r7, r4, r2\n"
      "sbcs r8, r5, r3\n"
      "blo 3f\n"
      "2: subs r4, r4, r2\n"
      "sbc r5, r5, r3\n"
      "adds r0, #1\n"
      "3: subs r6, #1\n"
      "bne 1b\n"
      "mov r2, r4\n"
      "mov r3, r5\n"
      "pop {r4-r8, pc}\n");
}

/* The division with signs: the quotient is rounded towards zero, the remainder has the sign of the dividend. */
__attribute__((naked)) void __aeabi_ldivmod(void);
__attribute__((naked)) void __aeabi_ldivmod(void) {
  __asm volatile(
      "push {r4, r5, r6, lr}\n"
      "mov r4, r1\n"
      "eor r5, r1, r3\n"
      "cmp r1, #0\n"
      "bge 1f\n"
      "rsbs r0, r0, #0\n"
      "sbc r1, r1, r1, lsl #1\n"
      "1: cmp r3, #0\n"
      "bge 2f\n"
      "rsbs r2, r2, #0\n"
      "sbc r3, r3, r3, lsl #1\n"
      "2: bl __aeabi_uldivmod\n"
      "cmp r5, #0\n"
      "bge 3f\n"
      "rsbs r0, r0, #0\n"
      "sbc r1, r1, r1, lsl #1\n"
      "3: cmp r4, #0\n"
      "bge 4f\n"
      "rsbs r2, r2, #0\n"
      "sbc r3, r3, r3, lsl #1\n"
      "4: pop {r4, r5, r6, pc}\n");
}
