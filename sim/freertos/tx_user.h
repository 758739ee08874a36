/* SPDX-License-Identifier: Apache-2.0 */
/* ThreadX for the MPS2 boards in QEMU. */
#define TX_TIMER_TICKS_PER_SECOND 1000UL
#define TX_ENABLE_WFI /* otherwise the emulator's time would drift away from the agent's */
#define TX_ENABLE_STACK_CHECKING
