/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions that lwIP needs from compiler and board, beyond the standard headers. */
#pragma once

#include <stdint.h>

uint32_t ethernet_random(void);
void board_print(const char *line);
void board_exit(int code) __attribute__((noreturn));
#define LWIP_RAND() ethernet_random()
#define LWIP_PLATFORM_DIAG(message)
#define LWIP_PLATFORM_ASSERT(message) (board_print("lwIP: " message "\n"), board_exit(78))
