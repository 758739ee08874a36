/* SPDX-License-Identifier: Apache-2.0 */
/* What programs in QEMU need to measure themselves. */
#ifndef TIDE_FIRMWARE_MEASURE_H
#define TIDE_FIRMWARE_MEASURE_H

#include <stdint.h>

/* With -icount shift=5. */
#define MEASURE_INSTRUCTION_NS 32

/* Spend so much of the processor's time, whatever preempts it meanwhile. */
void measure_burn(int64_t time_ns);

/* Mark the main stack below the caller; then the deepest use of it since, in bytes from its top. */
void measure_mark_stack(void);
uint32_t measure_stack_used(void);

/* text, the number, end. */
void measure_print(const char *text, int64_t number, const char *end);

#endif
