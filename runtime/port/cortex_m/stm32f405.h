/* SPDX-License-Identifier: Apache-2.0 */
/* The STM32F405 for the port without an operating system, from the reference manual RM0090 and the data sheet: the few
 * registers that are used here, 168 MHz, TIM2 as the clock, SysTick as the wake-up.
 *
 * QEMU's netduinoplus2 runs the same image. QEMU emulates no DMA and no RCC. The RCC reads 0, which reveals the
 * emulator, because on a chip an oscillator is on after a reset. QEMU's TIM2 counts at 1 GHz instead of 84 MHz;
 * tide_stm32_start sets the prescaler accordingly.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STM32_REGISTER(address) (*(volatile uint32_t *)(address))

#define STM32_TIM2_CR1 STM32_REGISTER(0x40000000u)
#define STM32_TIM2_EGR STM32_REGISTER(0x40000014u)
#define STM32_TIM2_CNT STM32_REGISTER(0x40000024u)
#define STM32_TIM2_PSC STM32_REGISTER(0x40000028u)
#define STM32_TIM2_ARR STM32_REGISTER(0x4000002Cu)
#define STM32_USART2 0x40004400u
#define STM32_USART1 0x40011000u
#define STM32_GPIOA_MODER STM32_REGISTER(0x40020000u)
#define STM32_GPIOA_OSPEEDR STM32_REGISTER(0x40020008u)
#define STM32_GPIOA_PUPDR STM32_REGISTER(0x4002000Cu)
#define STM32_GPIOA_AFRL STM32_REGISTER(0x40020020u)
#define STM32_GPIOA_AFRH STM32_REGISTER(0x40020024u)
#define STM32_RCC_CR STM32_REGISTER(0x40023800u)
#define STM32_RCC_PLLCFGR STM32_REGISTER(0x40023804u)
#define STM32_RCC_CFGR STM32_REGISTER(0x40023808u)
#define STM32_RCC_AHB1ENR STM32_REGISTER(0x40023830u)
#define STM32_RCC_APB1ENR STM32_REGISTER(0x40023840u)
#define STM32_RCC_APB2ENR STM32_REGISTER(0x40023844u)
#define STM32_FLASH_ACR STM32_REGISTER(0x40023C00u)
#define STM32_DMA2 0x40026400u
#define STM32_DMA2_STREAM(number) (STM32_DMA2 + 0x10u + 0x18u * (number))

#define STM32_IRQ_USART1 37u
#define STM32_IRQ_DMA2_STREAM2 58u
#define STM32_IRQ_COUNT 82u

#define STM32_SYSTICK_CTRL STM32_REGISTER(0xE000E010u)
#define STM32_SYSTICK_LOAD STM32_REGISTER(0xE000E014u)
#define STM32_SYSTICK_VAL STM32_REGISTER(0xE000E018u)
#define STM32_SYSTICK_PRIORITY (*(volatile uint8_t *)0xE000ED23u)
#define STM32_SYSTICK_MAXIMUM 0xFFFFFFu

#define TIDE_CHIP_CORE_HZ 168000000u
#define TIDE_CHIP_TICK_NS 250 /* tick of TIM2, which wraps after 17.9 minutes */
#define STM32_APB2_HZ 84000000u

/* Interrupt numbers pended by software: those of OTG_HS, the camera, the cryptographic processor, the random number
 * generator and the floating-point unit. A program that needs these interrupts defines another number, the first of
 * eight free interrupts. */
#ifndef TIDE_SOFTWARE_INTERRUPT_FIRST
#define TIDE_SOFTWARE_INTERRUPT_FIRST 74u
#define TIDE_SOFTWARE_INTERRUPTS 8u
#endif

/* Clocks, TIM2 and pins; called by the start-up code (port/stm32/stm32f405.c) before anything else. */
void tide_stm32_start(void);
/* True if the crystal (TIDE_STM32_HSE_MHZ) does not oscillate, or if there is none. Then the internal oscillator runs,
 * which is up to 1 % off and unsuitable for measurements. */
extern bool tide_stm32_without_crystal;

static inline void tide_chip_init(void) { STM32_SYSTICK_PRIORITY = TIDE_INTERRUPT_PRIORITY; }

static inline uint32_t tide_chip_ticks(void) { return STM32_TIM2_CNT; }

/* SysTick at an eighth of the core's clock: 21 ticks a microsecond, 0.8 s at most. If LOAD is set to 0, SysTick stops
 * at the end of its present period, when it loads that value. This takes a tick or, in an emulator in real time, until
 * the emulator's thread runs again. The stop is not worth waiting for, because the interrupt stops SysTick, too. */
static inline void tide_chip_arm(uint32_t left_ns) {
  uint32_t ticks = left_ns / 1000u * 21u + left_ns % 1000u * 21u / 1000u + 2u;
  if (ticks > STM32_SYSTICK_MAXIMUM) ticks = STM32_SYSTICK_MAXIMUM;
  STM32_SYSTICK_CTRL = 0;
  STM32_SYSTICK_LOAD = ticks;
  STM32_SYSTICK_VAL = 0;
  STM32_SYSTICK_CTRL = 3u; /* on, with interrupt */
  for (uint32_t tries = 16; tries > 0u; tries--) {
    if (STM32_SYSTICK_VAL == 0u) continue;
    STM32_SYSTICK_LOAD = 0;
    break;
  }
}

static inline void tide_chip_disarm(void) { STM32_SYSTICK_CTRL = 0; }
