/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements for programs in QEMU. */
#pragma once

#include <stdint.h>

/* Sets the nanoseconds per instruction, which are two to the power of N for QEMU's -icount shift=N; 32 if it is not
 * called. */
void measure_set_instruction_ns(uint32_t time_ns);
uint32_t measure_instructions(int64_t time_ns);

/* Uses this much processor time by counting instructions, whatever preempts it. */
void measure_burn(int64_t time_ns);

/* measure_mark_stack marks the main stack below the caller. measure_stack_used returns the deepest use since the mark,
 * in bytes from the top of the stack. */
void measure_mark_stack(void);
uint32_t measure_stack_used(void);

/* Writes the text, the number and `end`. */
void measure_print(const char *text, int64_t number, const char *end);
