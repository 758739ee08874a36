/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIDE_FIRMWARE_LINE_H
#define TIDE_FIRMWARE_LINE_H

#include <stdbool.h>

/* Chooses the other end of the line: the simulated world, or an agent. Call it before the line is opened; by default
 * the world is used if the emulator's command line names its folder. */
void line_choose(bool lockstep);

#endif
