/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up code of the MPS2 boards for FreeRTOS, which runs the program's main as a task. Clock and alarm use two
 * timers, as in the port without an operating system. This file also defines the functions that programs of
 * sim/workloads expect from that port. */
#include "board.h"

#include <stdbool.h>
#include <stddef.h>

#include "chip.h"
#include "lanes.h"
#include "platform.h"
#include "tide_freertos.h"

#define MAIN_STACK_BYTES 16384u
#define MAIN_PRIORITY (configMAX_PRIORITIES - 2)
#define SLEEP_MAXIMUM_NS (INT64_C(4) << 30) /* longest alarm whose ticks fit 32 bits; longer sleeps use several */

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end;

void reset_handler(void);
void vPortSVCHandler(void);
void xPortPendSVHandler(void);
void xPortSysTickHandler(void);
void board_assert(const char *file, int line);
void vApplicationStackOverflowHook(TaskHandle_t task, char *name);
void vApplicationMallocFailedHook(void);
void vApplicationIdleHook(void);

static void fault_handler(void) {
  board_print("fault\n");
  board_exit(70);
}

static void print_number(int number) {
  char digits[12], *digit = digits + sizeof digits - 1;
  *digit = '\0';
  do *--digit = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  board_print(digit);
}

void board_assert(const char *file, int line) {
  board_print("configASSERT: ");
  board_print(file);
  board_print(":");
  print_number(line);
  board_print("\n");
  board_exit(74);
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name) {
  (void)task;
  board_print("stack overflow: ");
  board_print(name);
  board_print("\n");
  board_exit(75);
}

void vApplicationMallocFailedHook(void) {
  board_print("the kernel's heap is full\n");
  board_exit(76);
}

/* Lets the processor sleep; otherwise the emulator's time would drift away from the agent's. A program without an agent
 * may define its own hook. */
__attribute__((weak)) void vApplicationIdleHook(void) { __asm volatile("wfi"); }

/* ---- clock and alarm ---- */

static volatile uint32_t clock_high;

static void clock_interrupt(void) {
  MPS2_TIMER0->interrupts = 1;
  clock_high++;
}

uint64_t tide_cortex_m_clock(void) {
  const UBaseType_t before = portSET_INTERRUPT_MASK_FROM_ISR();
  uint32_t high = clock_high, low = ~MPS2_TIMER0->value; /* counts down */
  if (MPS2_TIMER0->interrupts != 0) { /* the counter has wrapped around, which clock_high does not include yet */
    low = ~MPS2_TIMER0->value;
    high++;
  }
  portCLEAR_INTERRUPT_MASK_FROM_ISR(before);
  return ((uint64_t)high << 32) | low;
}

#if TIDE_FREERTOS_CLOCK
int64_t tide_freertos_clock_ns(void) { return (int64_t)(tide_cortex_m_clock() * TIDE_CHIP_TICK_NS); }
#endif

#if TIDE_FREERTOS_ALARM
void tide_freertos_set_alarm(int64_t time_ns) {
  int64_t left_ns = time_ns - tide_freertos_clock_ns();
  if (left_ns >= SLEEP_MAXIMUM_NS) left_ns = SLEEP_MAXIMUM_NS - 1;
  if (left_ns < 0) left_ns = 0;
  MPS2_TIMER1->control = 0;
  MPS2_TIMER1->reload = 0;
  MPS2_TIMER1->value = (uint32_t)left_ns / TIDE_CHIP_TICK_NS + 1u;
  MPS2_TIMER1->control = MPS2_TIMER_RUN | MPS2_TIMER_INTERRUPT;
}

static void alarm_interrupt(void) {
  MPS2_TIMER1->control = 0;
  MPS2_TIMER1->interrupts = 1;
  tide_freertos_alarm();
}
#else
static void alarm_interrupt(void) { MPS2_TIMER1->interrupts = 1; }
#endif

void tide_cortex_m_enable_interrupt(uint32_t number) {
  NVIC_PRIORITY[number] = TIDE_INTERRUPT_PRIORITY;
  NVIC_ENABLE[number / 32u] = 1u << (number % 32u);
}

/* ---- measurements, as in the port without an operating system ---- */

uint32_t tide_cortex_m_masked_maximum(void) { return 0u; }
#if !TIDE_FREERTOS_BUDGETS
void tide_freertos_switched_in(void) {}
#endif

/* ---- start ---- */

__attribute__((weak)) void board_alarm_interrupt(void) { tide_mps2_dual_timer_interrupt(); }

static void main_task(void *argument) {
  (void)argument;
  board_exit(main());
}

void reset_handler(void) {
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20; /* enables the floating-point unit */
  __asm volatile("dsb\n isb");
  uint32_t *from = &__data_load;
  for (uint32_t *to = &__data_start; to < &__data_end;) *to++ = *from++;
  for (uint32_t *to = &__bss_start; to < &__bss_end;) *to++ = 0;
  MPS2_TIMER0->value = UINT32_MAX;
  MPS2_TIMER0->reload = UINT32_MAX;
  MPS2_TIMER0->control = MPS2_TIMER_RUN | MPS2_TIMER_INTERRUPT;
  tide_cortex_m_enable_interrupt(MPS2_IRQ_TIMER0);
  tide_cortex_m_enable_interrupt(MPS2_IRQ_TIMER1);
  if (xTaskCreate(main_task, "main", MAIN_STACK_BYTES / sizeof(StackType_t), NULL, MAIN_PRIORITY, NULL) == pdPASS)
    vTaskStartScheduler();
  board_exit(77);
}

#pragma weak tide_lan9118_interrupt /* null in a program without Ethernet */
void tide_lan9118_interrupt(void);

__attribute__((section(".vectors"), used)) static void (*const vectors[16 + 32])(void) = {
    (void (*)(void))(uintptr_t)&__stack_top,
    reset_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    fault_handler,
    [11] = vPortSVCHandler,
    [14] = xPortPendSVHandler,
    [15] = xPortSysTickHandler,
    [16 + 0] = tide_mps2_uart_receive_interrupt,
    [16 + 8] = clock_interrupt,
    [16 + 9] = alarm_interrupt,
    [16 + 10] = board_alarm_interrupt,
    [16 + MPS2_IRQ_ETHERNET] = tide_lan9118_interrupt,
};
