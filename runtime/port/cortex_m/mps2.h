/* SPDX-License-Identifier: Apache-2.0 */
/* The few registers of the ARM MPS2 boards (AN386: Cortex-M4F, AN500: Cortex-M7) that the port uses. */
#pragma once

#include <stdint.h>

#define MPS2_CLOCK_HZ 25000000u
#define TIDE_CHIP_TICK_NS 40
#define TIDE_CHIP_CORE_HZ MPS2_CLOCK_HZ

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
#define MPS2_TIMER_RUN 0x01u
#define MPS2_TIMER_INTERRUPT 0x08u

/* Each half of the dual timer: counts down from load, once, with interrupt. */
typedef struct mps2_dual_timer {
  volatile uint32_t load, value, control, clear, raw_status, masked_status;
} mps2_dual_timer_t;
#define MPS2_DUAL1 ((mps2_dual_timer_t *)0x40002000u)
#define MPS2_DUAL2 ((mps2_dual_timer_t *)0x40002020u)
#define MPS2_DUAL_ONE_SHOT 0x63u /* counts once from load, with interrupt, 32 bits */
#define MPS2_DUAL_RUN 0x80u

#define MPS2_IRQ_UART0_RX 0u
#define MPS2_IRQ_UART0_TX 1u
#define MPS2_IRQ_TIMER0 8u
#define MPS2_IRQ_TIMER1 9u
#define MPS2_IRQ_DUAL_TIMER 10u
#define MPS2_IRQ_ETHERNET 13u

#define MPS2_ETHERNET_AN386 0x40200000u /* a LAN9118, runtime/port/lwip */
#define MPS2_ETHERNET_AN500 0xA0000000u

/* Interrupt numbers unused by devices, pended by software. */
#define TIDE_SOFTWARE_INTERRUPT_FIRST 24u
#define TIDE_SOFTWARE_INTERRUPTS 8u

static inline void tide_chip_init(void) {
  MPS2_TIMER0->value = UINT32_MAX;
  MPS2_TIMER0->reload = UINT32_MAX;
  MPS2_TIMER0->control = MPS2_TIMER_RUN;
  NVIC_PRIORITY[MPS2_IRQ_TIMER1] = TIDE_INTERRUPT_PRIORITY;
  NVIC_ENABLE[0] = 1u << MPS2_IRQ_TIMER1;
}

static inline uint32_t tide_chip_ticks(void) { return ~MPS2_TIMER0->value; } /* the hardware counter counts down */

/* Arms the one-shot timer for the first tick after the time, so it is never early. */
static inline void tide_chip_arm(uint32_t left_ns) {
  MPS2_TIMER1->control = 0;
  MPS2_TIMER1->reload = 0;
  MPS2_TIMER1->value = left_ns / TIDE_CHIP_TICK_NS + 1u;
  MPS2_TIMER1->control = MPS2_TIMER_RUN | MPS2_TIMER_INTERRUPT;
}

static inline void tide_chip_disarm(void) {
  MPS2_TIMER1->control = 0;
  MPS2_TIMER1->interrupts = 1;
}
