/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up code of the MPS2 boards: vector table, memory, floating point. */
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "chip.h"
#include "platform.h"

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end;

void reset_handler(void);
void fault_handler(void);

void fault_handler(void) {
  board_print("fault\n");
  board_exit(70);
}

/* By default the dual timer drives the modelled DMA; a program without this DMA may use the timer itself. */
__attribute__((weak)) void board_alarm_interrupt(void) { tide_mps2_dual_timer_interrupt(); }

/* Handlers for the lanes and the Ethernet controller; null in a program without them. */
#pragma weak tide_cortex_m_software_interrupt
#pragma weak tide_lan9118_interrupt
void tide_lan9118_interrupt(void);

void reset_handler(void) {
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* enables the floating-point unit */
  __asm volatile("dsb\n isb");
  uint32_t *from = &__data_load;
  for (uint32_t *to = &__data_start; to < &__data_end;) *to++ = *from++;
  for (uint32_t *to = &__bss_start; to < &__bss_end;) *to++ = 0;
  tide_cortex_m_platform_init();
  board_exit(main());
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16 + (TIDE_LANES ? 32 : 11)])(void) = {
    (void (*)(void))(uintptr_t)&__stack_top,
    reset_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    [11] = fault_handler,
    [14] = fault_handler,
    [15] = fault_handler,
    [16 + 0] = tide_mps2_uart_receive_interrupt,
    [16 + 9] = tide_cortex_m_wakeup_interrupt,
    [16 + 10] = board_alarm_interrupt,
#if TIDE_LANES
    [16 + MPS2_IRQ_ETHERNET] = tide_lan9118_interrupt,
    [16 + TIDE_SOFTWARE_INTERRUPT_FIRST] = tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
#endif
};
