/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The program's entry point. Its result is the exit code of the emulator. */
int main(void);
/* Ends the emulation with an exit code. */
void board_exit(int code) __attribute__((noreturn));
/* Two one-shot alarms, 0 and 1, with the runtime's interrupt priority, for programs that simulate a device. After
 * left_ns (negative: never), an alarm calls board_alarm_interrupt, which the program defines. That function must call
 * board_alarm_due once for each alarm, which returns whether the alarm has expired. On the MPS2 boards, the modelled
 * UART needs both alarms. */
void board_alarm(unsigned which, int64_t left_ns);
bool board_alarm_due(unsigned which);
void board_alarm_interrupt(void);
/* Time spent so far to emulate the line for bytes that were sent (line.c), in ticks of the chip's timer. A driver of a
 * real UART only starts its DMA instead. */
uint32_t board_line_ticks(void);
/* A call of the emulator (ARM semihosting); returns its result. Callable from any context; takes only the virtual time
 * of its instructions.
 */
int board_semihosting(uint32_t operation, const void *argument);
/* Writes a line to the emulator's standard error. */
void board_print(const char *line);
