/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIDE_FIRMWARE_BOARD_H
#define TIDE_FIRMWARE_BOARD_H

#include <stdint.h>

/* The program. Its result is the exit code of the emulator. */
int main(void);
/* End the emulation with an exit code. */
void board_exit(int code) __attribute__((noreturn));
/* Interrupt of the dual timer: a program that does not use the UART may define its own. */
void board_dual_timer_interrupt(void);
/* A call of the emulator (ARM semihosting): its result. From any context; takes no virtual time but its instructions.
 */
int board_semihosting(uint32_t operation, const void *argument);
/* A line on the emulator's standard error. */
void board_print(const char *line);

#endif
