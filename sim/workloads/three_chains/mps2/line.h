/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIDE_FIRMWARE_LINE_H
#define TIDE_FIRMWARE_LINE_H

#include <stdbool.h>

/* What is at the other end of the line: the simulated world, or an agent. Before the line is opened; a program that
 * does not choose has the world wherever the emulator's command line names its folder. */
void line_choose(bool lockstep);

#endif
