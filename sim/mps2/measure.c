/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include "board.h"

#define MARK 0x5AA5C33Cu

extern uint32_t __stack_top, __stack_bottom;

static uint32_t instruction_ns = 32;

void measure_set_instruction_ns(uint32_t time_ns) { instruction_ns = time_ns; }
/* Does without a 64-bit division, whose time the measurement would include. */
uint32_t measure_instructions(int64_t time_ns) {
  return time_ns <= UINT32_MAX ? (uint32_t)time_ns / instruction_ns : (uint32_t)(time_ns / instruction_ns);
}

/* Each iteration has two instructions in eight aligned bytes, so that it takes equally long on any core. */
__attribute__((noinline)) void measure_burn(int64_t time_ns) {
  uint32_t turns = measure_instructions(time_ns) / 2u;
  if (turns == 0u) return;
  __asm volatile(
      ".align 3\n"
      "1: subs %0, #1\n"
      "bne 1b\n"
      : "+r"(turns)
      :
      : "cc");
}

void measure_mark_stack(void) {
  uint32_t here;
  __asm volatile("mov %0, sp" : "=r"(here));
  for (uint32_t *word = &__stack_bottom; (uint32_t)word < here; word++) *word = MARK;
}

uint32_t measure_stack_used(void) {
  const uint32_t *word = &__stack_bottom;
  while (word < &__stack_top && *word == MARK) word++;
  return (uint32_t)((const char *)&__stack_top - (const char *)word);
}

void measure_print(const char *text, int64_t number, const char *end) {
  char line[96];
  char digits[24], *digit = digits + sizeof digits - 1;
  char *place = line, *const last = line + sizeof line - 1;
  uint64_t rest = number < 0 ? (uint64_t)-number : (uint64_t)number;
  *digit = '\0';
  do *--digit = (char)('0' + rest % 10u);
  while ((rest /= 10u) != 0u);
  if (number < 0) *--digit = '-';
  const char *const parts[] = {text, digit, end};
  for (unsigned part = 0; part < 3u; part++)
    for (const char *from = parts[part]; *from != '\0' && place < last;) *place++ = *from++;
  *place = '\0';
  board_print(line);
}
