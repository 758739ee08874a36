/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the Pico SDK that the package uses. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

uint32_t time_us_32(void);
typedef uint64_t absolute_time_t;
absolute_time_t make_timeout_time_us(uint64_t us);
absolute_time_t make_timeout_time_ms(uint32_t ms);
bool best_effort_wfe_or_timeout(absolute_time_t end);
void stdio_set_chars_available_callback(void (*call)(void *), void *context);
bool stdio_init_all(void);
void stdio_flush(void);
int putchar_raw(int octet);
int getchar_timeout_us(uint32_t timeout_us);
