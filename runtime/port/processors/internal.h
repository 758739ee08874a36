/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the program share. */
#ifndef TIDE_PROCESSORS_INTERNAL_H
#define TIDE_PROCESSORS_INTERNAL_H

#include "tide_processors.h"

/* Print a figure, and whether it is what it has to be. */
void processors_tell(const char *what, uint32_t found, uint32_t wanted);

/* Start them all, and wait until the first `awaited` have returned or nothing happens any more: *progress is what they
 * count. False then. */
bool processors_start(unsigned index, void (*run)(void *argument), void *argument, bool urgent);
bool processors_await(unsigned first, unsigned end, const uint32_t *progress);

void processors_try_platform(const tide_processors_board_t *board);

#endif
