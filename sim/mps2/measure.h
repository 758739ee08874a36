/* SPDX-License-Identifier: Apache-2.0 */
/* What programs in QEMU need to measure themselves. */
#ifndef TIDE_FIRMWARE_MEASURE_H
#define TIDE_FIRMWARE_MEASURE_H

#include <stdint.h>

/* Of -icount shift=N: two to the power of N. 32 when it is not told. */
void measure_set_instruction_ns(uint32_t time_ns);
uint32_t measure_instructions(int64_t time_ns);

/* Spend so much of the processor's time, whatever preempts it meanwhile: counted instructions. */
void measure_burn(int64_t time_ns);

/* Mark the main stack below the caller; then the deepest use of it since, in bytes from its top. */
void measure_mark_stack(void);
uint32_t measure_stack_used(void);

/* text, the number, end. */
void measure_print(const char *text, int64_t number, const char *end);

#endif
