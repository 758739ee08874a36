/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up code of the MPS2 boards for FreeRTOS, or ThreadX (BOARD_THREADX), which runs the program's main as a task.
 * Clock and alarm use two timers, as in the port without an operating system. This file also defines the functions that
 * programs of sim/workloads expect from that port. */
#include "board.h"

#include <stdbool.h>
#include <stddef.h>

#include "chip.h"
#include "lanes.h"
#include "platform.h"
#if BOARD_THREADX
#include "tide_kernel.h"
#else
#include "tide_freertos.h"
#endif

#define MAIN_STACK_BYTES 16384u
#define SLEEP_MAXIMUM_NS (INT64_C(4) << 30) /* longest alarm whose ticks fit 32 bits; longer sleeps use several */

extern uint32_t __stack_top, __data_load, __data_start, __data_end, __bss_start, __bss_end;

void reset_handler(void);

static void fault_handler(void) {
  board_print("fault\n");
  board_exit(70);
}

/* ---- clock and alarm ---- */

static volatile uint32_t clock_high;

static void clock_interrupt(void) {
  MPS2_TIMER0->interrupts = 1;
  clock_high++;
}

uint64_t tide_cortex_m_clock(void) {
  uint32_t before;
  __asm volatile("mrs %0, primask\n cpsid i" : "=r"(before)::"memory");
  uint32_t high = clock_high, low = ~MPS2_TIMER0->value; /* counts down */
  if (MPS2_TIMER0->interrupts != 0) { /* the counter has wrapped around, which clock_high does not include yet */
    low = ~MPS2_TIMER0->value;
    high++;
  }
  __asm volatile("msr primask, %0" ::"r"(before) : "memory");
  return ((uint64_t)high << 32) | low;
}

#if BOARD_THREADX
#define BOARD_ALARM 1
#define clock_ns tide_threadx_clock_ns
#define set_alarm tide_threadx_set_alarm
#define alarm_due tide_threadx_alarm
#else
#define BOARD_ALARM TIDE_FREERTOS_ALARM
#define clock_ns tide_freertos_clock_ns
#define set_alarm tide_freertos_set_alarm
#define alarm_due tide_freertos_alarm
#endif

#if BOARD_ALARM
int64_t clock_ns(void) { return (int64_t)(tide_cortex_m_clock() * TIDE_CHIP_TICK_NS); }

void set_alarm(int64_t time_ns) {
  int64_t left_ns = time_ns - clock_ns();
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
  alarm_due();
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

/* ---- the kernel ---- */

#if BOARD_THREADX

#define SYSTICK ((volatile uint32_t *)0xE000E010u)
#define svc_handler fault_handler /* ThreadX makes no supervisor calls */
#define pend_sv_handler PendSV_Handler
#define sys_tick_handler _tx_timer_interrupt

void PendSV_Handler(void);
void _tx_timer_interrupt(void);
void _tx_initialize_low_level(void);

/* Called by tx_kernel_enter, which expects that interrupts stay disabled. */
void _tx_initialize_low_level(void) {
  __asm volatile("cpsid i");
  *(volatile uint32_t *)0xE000ED20u = TIDE_INTERRUPT_PRIORITY << 24 | 0xFFu << 16; /* of SysTick and PendSV */
  SYSTICK[1] = MPS2_CLOCK_HZ / TX_TIMER_TICKS_PER_SECOND - 1u;
  SYSTICK[0] = 7u;
}

static void main_thread(ULONG argument) {
  (void)argument;
  board_exit(main());
}

void tx_application_define(void *unused_memory) {
  static TX_THREAD thread;
  static ULONG64 stack[MAIN_STACK_BYTES / sizeof(ULONG64)];
  static char name[] = "main";
  (void)unused_memory;
  (void)tx_thread_create(&thread, name, main_thread, 0u, stack, sizeof stack, 1u, 1u, TX_NO_TIME_SLICE, TX_AUTO_START);
}

static void start_kernel(void) { tx_kernel_enter(); }

#else

#define MAIN_PRIORITY (configMAX_PRIORITIES - 2)
#define svc_handler vPortSVCHandler
#define pend_sv_handler xPortPendSVHandler
#define sys_tick_handler xPortSysTickHandler

void vPortSVCHandler(void);
void xPortPendSVHandler(void);
void xPortSysTickHandler(void);
void board_assert(const char *file, int line);
void vApplicationStackOverflowHook(TaskHandle_t task, char *name);
void vApplicationMallocFailedHook(void);
void vApplicationIdleHook(void);

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

#if !TIDE_FREERTOS_BUDGETS
void tide_freertos_switched_in(void) {}
#endif

static void main_task(void *argument) {
  (void)argument;
  board_exit(main());
}

static void start_kernel(void) {
  if (xTaskCreate(main_task, "main", MAIN_STACK_BYTES / sizeof(StackType_t), NULL, MAIN_PRIORITY, NULL) == pdPASS)
    vTaskStartScheduler();
}
#endif

/* ---- start ---- */

__attribute__((weak)) void board_alarm_interrupt(void) { tide_mps2_dual_timer_interrupt(); }

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
  start_kernel();
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
    [11] = svc_handler,
    [14] = pend_sv_handler,
    [15] = sys_tick_handler,
    [16 + 0] = tide_mps2_uart_receive_interrupt,
    [16 + 8] = clock_interrupt,
    [16 + 9] = alarm_interrupt,
    [16 + 10] = board_alarm_interrupt,
    [16 + MPS2_IRQ_ETHERNET] = tide_lan9118_interrupt,
};
