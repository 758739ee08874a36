/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIDE_FIRMWARE_BOARD_H
#define TIDE_FIRMWARE_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* The program's entry. Its result is the exit code of the emulator. */
int main(void);
/* Ends the emulation with an exit code. */
void board_exit(int code) __attribute__((noreturn));
/* Two one-shot alarms, 0 and 1, with the runtime's interrupt priority, for programs that simulate a device. After the
 * given time (negative: never), board_alarm_interrupt is called; the program defines it, and calls board_alarm_due in
 * it once for each alarm. On the MPS2 boards, the modelled UART needs both alarms. */
void board_alarm(unsigned which, int64_t left_ns);
bool board_alarm_due(unsigned which);
void board_alarm_interrupt(void);
/* A call of the emulator (ARM semihosting); returns its result. Callable from any context; takes only the virtual time
 * of its instructions.
 */
int board_semihosting(uint32_t operation, const void *argument);
/* Writes a line to the emulator's standard error. */
void board_print(const char *line);

#endif
