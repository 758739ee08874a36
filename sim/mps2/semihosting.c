/* SPDX-License-Identifier: Apache-2.0 */
/* Services of the emulator for a program: to exit with a code, and to print a line of text. */
#include "board.h"

int board_semihosting(uint32_t operation, const void *argument) {
  register uint32_t r0 __asm("r0") = operation;
  register const void *r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return (int)r0;
}

void board_exit(int code) {
  const uint32_t arguments[2] = {0x20026u, (uint32_t)code}; /* ADP_Stopped_ApplicationExit */
  (void)board_semihosting(0x20u, arguments);
  for (;;) {}
}

void board_print(const char *line) { (void)board_semihosting(0x04u, line); }
