/* SPDX-License-Identifier: Apache-2.0 */
/* The few registers of the ARM MPS2 boards (AN386: Cortex-M4F, AN500: Cortex-M7) that the port uses. */
#ifndef TIDE_PORT_MPS2_H
#define TIDE_PORT_MPS2_H

#include <stdint.h>

#define MPS2_CLOCK_HZ 25000000u
#define MPS2_TICK_NS 40

typedef struct mps2_uart {
  volatile uint32_t data, state, control, interrupts, divider;
} mps2_uart_t;
#define MPS2_UART0 ((mps2_uart_t *)0x40004000u)
#define MPS2_UART_TX_FULL 1u
#define MPS2_UART_RX_FULL 2u
#define MPS2_UART_TRANSMIT 0x01u
#define MPS2_UART_RECEIVE 0x02u
#define MPS2_UART_RECEIVE_INTERRUPT 0x08u
#define MPS2_UART_RX_INTERRUPT 2u

typedef struct mps2_timer {
  volatile uint32_t control, value, reload, interrupts;
} mps2_timer_t;
#define MPS2_TIMER0 ((mps2_timer_t *)0x40000000u)
#define MPS2_TIMER1 ((mps2_timer_t *)0x40001000u)
#define MPS2_TIMER_RUN 0x09u /* counting, with interrupt */

/* Each half of the dual timer: counts down from load, once, with interrupt. */
typedef struct mps2_dual_timer {
  volatile uint32_t load, value, control, clear, raw_status, masked_status;
} mps2_dual_timer_t;
#define MPS2_DUAL1 ((mps2_dual_timer_t *)0x40002000u)
#define MPS2_DUAL2 ((mps2_dual_timer_t *)0x40002020u)
#define MPS2_DUAL_ONE_SHOT 0x63u /* from load, once, interrupt, 32 bits */
#define MPS2_DUAL_RUN 0x80u

#define MPS2_IRQ_UART0_RX 0u
#define MPS2_IRQ_UART0_TX 1u
#define MPS2_IRQ_TIMER0 8u
#define MPS2_IRQ_TIMER1 9u
#define MPS2_IRQ_DUAL_TIMER 10u

/* Numbers that no device of the board uses: pended by software. */
#define TIDE_SOFTWARE_INTERRUPT_FIRST 24u
#define TIDE_SOFTWARE_INTERRUPTS 8u

#define NVIC_ENABLE ((volatile uint32_t *)0xE000E100u)
#define NVIC_DISABLE ((volatile uint32_t *)0xE000E180u)
#define NVIC_PENDING ((volatile uint32_t *)0xE000E200u)
#define NVIC_ACTIVE ((volatile uint32_t *)0xE000E300u)
#define NVIC_PRIORITY ((volatile uint8_t *)0xE000E400u)

/* Interrupts of the runtime have this priority; critical sections mask it and what is less urgent, so interrupts of
 * the application with a smaller number are never delayed by the runtime (and must not call it). */
#define TIDE_INTERRUPT_PRIORITY 0x40u
/* Below them the link (it lets the session's time pass), below that the lanes, in steps that four bits of priority can
 * tell apart; the main program is below all. */
#define TIDE_LINK_PRIORITY 0x50u
#define TIDE_LANE_PRIORITY_MOST 0x60u
#define TIDE_LANE_PRIORITY_LEAST 0xF0u
#define TIDE_LANE_PRIORITY_STEP 0x10u

#endif
