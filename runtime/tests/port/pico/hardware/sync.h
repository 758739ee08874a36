/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the Pico SDK that the package uses. */
#ifndef TIDE_TEST_PICO_SYNC_H
#define TIDE_TEST_PICO_SYNC_H

#include <stdint.h>

uint32_t save_and_disable_interrupts(void);
void restore_interrupts(uint32_t state);

#endif
