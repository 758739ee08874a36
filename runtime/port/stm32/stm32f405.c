/* SPDX-License-Identifier: Apache-2.0 */
/* An STM32F405 without vendor code: vector table, clocks, pins, and USART1 as the agent's line (PA9, PA10; QEMU's first
 * serial line). USART2 (PA2) prints at 115,200 Bd, and the caller waits for it. A source of the program, not of a
 * library, linked with stm32f405.ld.
 *
 * Definitions: TIDE_STM32_HSE_MHZ is the crystal's frequency in whole MHz, 0: no crystal (default 8). TIDE_STM32_DMA=1
 * drives the line by DMA2 (streams 2 and 7) instead of by interrupts, for more than 230,400 Bd. TIDE_STM32_VENDOR=1
 * compares the registers with the vendor's header stm32f405xx.h. */
#include <stddef.h>

#include "chip.h"
#include "platform.h"
#include "stm32_uart.h"

#ifndef TIDE_STM32_HSE_MHZ
#define TIDE_STM32_HSE_MHZ 8u
#endif
#ifndef TIDE_STM32_DMA
#define TIDE_STM32_DMA 0
#endif

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end;

int main(void);
void reset_handler(void);
void fault_handler(void);
void other_interrupt(void);
/* Functions that a program may define: for its own interrupts, by number; for its end; for its output. */
void board_interrupt(uint32_t number);
void board_exit(int code);
void board_print(const char *line);

/* ---- the line ---- */

#if TIDE_STM32_DMA
#define CHANNEL_4 (4u << 25)
#define LINE_RECEIVE                                                                                                 \
  {                                                                                                                  \
    (tide_stm32_stream_t *)STM32_DMA2_STREAM(2u), &STM32_REGISTER(STM32_DMA2), &STM32_REGISTER(STM32_DMA2 + 8u), 16, \
        CHANNEL_4                                                                                                    \
  }
#define LINE_TRANSMIT                                                                                                  \
  {                                                                                                                    \
    (tide_stm32_stream_t *)STM32_DMA2_STREAM(7u), &STM32_REGISTER(STM32_DMA2 + 4u), &STM32_REGISTER(STM32_DMA2 + 12u), \
        22, CHANNEL_4                                                                                                  \
  }
#else
#define LINE_RECEIVE \
  { 0 }
#define LINE_TRANSMIT \
  { 0 }
#endif

const tide_stm32_line_t tide_stm32_line = {.uart = (tide_stm32_uart_t *)STM32_USART1,
                                           .clock_hz = STM32_APB2_HZ,
                                           .receive = LINE_RECEIVE,
                                           .transmit = LINE_TRANSMIT,
                                           .interrupt = STM32_IRQ_USART1};
static uint8_t piece[32], ring[256];
__attribute__((weak))
const tide_uart_board_t tide_uart_board = {&tide_stm32_driver, piece, sizeof piece, ring, sizeof ring};

/* ---- clocks and pins ---- */

bool tide_stm32_without_crystal;

#define RCC_HSE_ON (1u << 16)
#define RCC_HSE_READY (1u << 17)
#define RCC_PLL_ON (1u << 24)
#define RCC_PLL_READY (1u << 25)
#define PLL_FROM_HSE (1u << 22)
#define CFGR_PLL 2u
#define CFGR_APB1_QUARTER (5u << 10)
#define CFGR_APB2_HALF (4u << 13)
#define HSI_MHZ 16u
#define HSE_TRIES 500000u /* 0.1 s at least; a crystal takes some milliseconds */

/* 1 MHz times 336, halved: 168 MHz for the core, 42 for APB1 (its timers 84), 84 for APB2. A wrong clock would be worse
 * than none: without a PLL the program does not start. */
static void start_clocks(void) {
  const uint32_t crystal_mhz = TIDE_STM32_HSE_MHZ;
  if (crystal_mhz > 0u) STM32_RCC_CR |= RCC_HSE_ON;
  uint32_t tries = crystal_mhz > 0u ? HSE_TRIES : 0u;
  while (tries > 0u && (STM32_RCC_CR & RCC_HSE_READY) == 0u) tries--;
  tide_stm32_without_crystal = tries == 0u;
  STM32_FLASH_ACR = 5u | 7u << 8; /* five wait states; prefetch and both caches */
  STM32_RCC_PLLCFGR = (tries > 0u ? crystal_mhz | PLL_FROM_HSE : HSI_MHZ) | 336u << 6 | 7u << 24;
  STM32_RCC_CR |= RCC_PLL_ON;
  while ((STM32_RCC_CR & RCC_PLL_READY) == 0u) continue;
  STM32_RCC_CFGR = CFGR_PLL | CFGR_APB1_QUARTER | CFGR_APB2_HALF;
  while ((STM32_RCC_CFGR >> 2 & 3u) != CFGR_PLL) continue;
}

static void start_pins(void) {
  STM32_RCC_AHB1ENR |= 1u << 0 | (uint32_t)TIDE_STM32_DMA << 22; /* GPIOA, DMA2 */
  STM32_RCC_APB1ENR |= 1u << 0 | 1u << 17;                       /* TIM2, USART2 */
  STM32_RCC_APB2ENR |= 1u << 4;                                  /* USART1 */
  (void)STM32_RCC_APB2ENR;                                       /* the clock runs two cycles later */
  STM32_GPIOA_AFRL = (STM32_GPIOA_AFRL & ~(0xFu << 8)) | 7u << 8;
  STM32_GPIOA_AFRH = (STM32_GPIOA_AFRH & ~(0xFFu << 4)) | 0x77u << 4;
  STM32_GPIOA_OSPEEDR |= 1u << 4 | 1u << 18;
  STM32_GPIOA_PUPDR |= 1u << 20; /* PA10: an open line is idle */
  STM32_GPIOA_MODER = (STM32_GPIOA_MODER & ~(3u << 4 | 0xFu << 18)) | 2u << 4 | 0xAu << 18;
}

void tide_stm32_start(void) {
  const bool emulated = STM32_RCC_CR == 0u;
  if (!emulated) start_clocks();
  start_pins();
  STM32_TIM2_PSC = (emulated ? 1000u : 84u) * TIDE_CHIP_TICK_NS / 1000u - 1u;
  STM32_TIM2_ARR = UINT32_MAX;
  STM32_TIM2_EGR = 1u; /* loads the prescaler */
  STM32_TIM2_CR1 = 1u;
  STM32_REGISTER(STM32_USART2 + 8u) = STM32_APB2_HZ / 2u / 115200u;
  STM32_REGISTER(STM32_USART2 + 12u) = 1u << 13 | 1u << 3; /* on, transmitter */
}

__attribute__((weak)) void board_print(const char *line) {
  for (; *line != '\0'; line++) {
    while ((STM32_REGISTER(STM32_USART2) & 1u << 7) == 0u) continue;
    STM32_REGISTER(STM32_USART2 + 4u) = (uint8_t)*line;
  }
}

/* ---- start, ends and interrupts ---- */

__attribute__((weak)) void board_exit(int code) {
  (void)code;
  for (;;) __asm volatile("wfi");
}

/* An interrupt without a handler would recur for ever. */
__attribute__((weak)) void board_interrupt(uint32_t number) { NVIC_DISABLE[number / 32u] = 1u << (number % 32u); }

void fault_handler(void) {
  board_print("fault\n");
  board_exit(70);
}

void other_interrupt(void) {
  uint32_t exception;
  __asm volatile("mrs %0, ipsr" : "=r"(exception));
  board_interrupt(exception - 16u);
}

void reset_handler(void) {
  STM32_REGISTER(0xE000ED88u) |= 0xFu << 20; /* floating point unit */
  __asm volatile("dsb\n isb");
  uint32_t *from = &__data_load;
  for (uint32_t *to = &__data_start; to < &__data_end;) *to++ = *from++;
  for (uint32_t *to = &__bss_start; to < &__bss_end;) *to++ = 0;
  tide_stm32_start();
  tide_cortex_m_platform_init();
  tide_cortex_m_enable_interrupt(STM32_IRQ_USART1);
  if (TIDE_STM32_DMA) tide_cortex_m_enable_interrupt(STM32_IRQ_DMA2_STREAM2);
  board_exit(main());
}

/* Handler of the lanes; null in a program that has no lanes. */
#pragma weak tide_cortex_m_software_interrupt

#define EIGHT(handler) handler, handler, handler, handler, handler, handler, handler, handler
/* A later entry replaces an earlier one. */
#pragma GCC diagnostic ignored "-Woverride-init"
__attribute__((section(".vectors"), used)) static void (*const vectors[16u + STM32_IRQ_COUNT])(void) = {
    (void (*)(void))(uintptr_t)&__stack_top,
    reset_handler,
    EIGHT(fault_handler),
    [10] = fault_handler,
    [11] = fault_handler,
    [12] = fault_handler,
    [14] = fault_handler,
    [15] = tide_cortex_m_wakeup_interrupt, /* SysTick */
    [16] = EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    EIGHT(other_interrupt),
    other_interrupt,
    other_interrupt,
    [16u + STM32_IRQ_USART1] = tide_stm32_uart_interrupt,
    [16u + STM32_IRQ_DMA2_STREAM2] = TIDE_STM32_DMA ? tide_stm32_receive_interrupt : other_interrupt,
#if TIDE_LANES
    [16u + TIDE_SOFTWARE_INTERRUPT_FIRST] = EIGHT(tide_cortex_m_software_interrupt),
#if TIDE_SOFTWARE_INTERRUPTS > 8u
    tide_cortex_m_software_interrupt,
    tide_cortex_m_software_interrupt,
#endif
#endif
};

/* ---- comparison with the vendor's header, if the program has it ---- */

#if TIDE_STM32_VENDOR
#include <stm32f405xx.h>
#define SAME(mine, vendors) _Static_assert((mine) == (vendors), #mine " is not the vendor's " #vendors)
#define SAME_REGISTER(mine, block, field) SAME((uintptr_t) & (mine), block##_BASE + offsetof(__typeof__(*block), field))
SAME_REGISTER(STM32_TIM2_CR1, TIM2, CR1);
SAME_REGISTER(STM32_TIM2_EGR, TIM2, EGR);
SAME_REGISTER(STM32_TIM2_CNT, TIM2, CNT);
SAME_REGISTER(STM32_TIM2_PSC, TIM2, PSC);
SAME_REGISTER(STM32_TIM2_ARR, TIM2, ARR);
SAME_REGISTER(STM32_GPIOA_MODER, GPIOA, MODER);
SAME_REGISTER(STM32_GPIOA_OSPEEDR, GPIOA, OSPEEDR);
SAME_REGISTER(STM32_GPIOA_PUPDR, GPIOA, PUPDR);
SAME_REGISTER(STM32_GPIOA_AFRL, GPIOA, AFR[0]);
SAME_REGISTER(STM32_GPIOA_AFRH, GPIOA, AFR[1]);
SAME_REGISTER(STM32_RCC_CR, RCC, CR);
SAME_REGISTER(STM32_RCC_PLLCFGR, RCC, PLLCFGR);
SAME_REGISTER(STM32_RCC_CFGR, RCC, CFGR);
SAME_REGISTER(STM32_RCC_AHB1ENR, RCC, AHB1ENR);
SAME_REGISTER(STM32_RCC_APB1ENR, RCC, APB1ENR);
SAME_REGISTER(STM32_RCC_APB2ENR, RCC, APB2ENR);
SAME((uintptr_t)&STM32_FLASH_ACR, FLASH_R_BASE + offsetof(FLASH_TypeDef, ACR));
SAME_REGISTER(STM32_SYSTICK_CTRL, SysTick, CTRL);
SAME_REGISTER(STM32_SYSTICK_LOAD, SysTick, LOAD);
SAME_REGISTER(STM32_SYSTICK_VAL, SysTick, VAL);
SAME(STM32_USART1, USART1_BASE);
SAME(STM32_USART2, USART2_BASE);
SAME(offsetof(tide_stm32_uart_t, data), offsetof(USART_TypeDef, DR));
SAME(offsetof(tide_stm32_uart_t, baud), offsetof(USART_TypeDef, BRR));
SAME(offsetof(tide_stm32_uart_t, control3), offsetof(USART_TypeDef, CR3));
SAME(STM32_DMA2_STREAM(2u), DMA2_Stream2_BASE);
SAME(STM32_DMA2_STREAM(7u), DMA2_Stream7_BASE);
SAME(offsetof(tide_stm32_stream_t, fifo), offsetof(DMA_Stream_TypeDef, FCR));
SAME(STM32_IRQ_USART1, USART1_IRQn);
SAME(STM32_IRQ_DMA2_STREAM2, DMA2_Stream2_IRQn);
SAME(STM32_IRQ_COUNT, FPU_IRQn + 1);
SAME(RCC_HSE_ON, RCC_CR_HSEON);
SAME(RCC_HSE_READY, RCC_CR_HSERDY);
SAME(RCC_PLL_ON, RCC_CR_PLLON);
SAME(RCC_PLL_READY, RCC_CR_PLLRDY);
SAME(PLL_FROM_HSE, RCC_PLLCFGR_PLLSRC_HSE);
SAME(CFGR_APB1_QUARTER, RCC_CFGR_PPRE1_DIV4);
SAME(CFGR_APB2_HALF, RCC_CFGR_PPRE2_DIV2);
#endif
