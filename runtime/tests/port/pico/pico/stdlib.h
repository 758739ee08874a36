/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the Pico SDK that the package uses. */
#ifndef TIDE_TEST_PICO_STDLIB_H
#define TIDE_TEST_PICO_STDLIB_H

#include <stdbool.h>
#include <stdint.h>

uint32_t time_us_32(void);
void tight_loop_contents(void);
bool stdio_init_all(void);
void stdio_flush(void);
int putchar_raw(int octet);
int getchar_timeout_us(uint32_t timeout_us);

#endif
