/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the processors on which it runs: see tide_processors.h. */
#include <stdio.h>
#include <tide_processors.h>
#include <zephyr/kernel.h>

#define RUNS 20000u
#define INTERRUPT_PERIOD K_USEC(300)
#ifdef CONFIG_SCHED_CPU_MASK
#define PINS true
#else
#define PINS false
#endif

static K_THREAD_STACK_ARRAY_DEFINE(stacks, TIDE_PROCESSORS_THREADS, 4096);
static struct k_thread threads[TIDE_PROCESSORS_THREADS];
static struct k_timer timer;
static void (*entries[TIDE_PROCESSORS_THREADS])(void *argument);
static void (*on_interrupt)(void);

static void busy_us(uint32_t us) { k_busy_wait(us); }
static void sleep_ms(uint32_t ms) { (void)k_msleep((int32_t)ms); }

static void run_entry(void *index, void *argument, void *unused) {
  ARG_UNUSED(unused);
  entries[(uintptr_t)index](argument);
}

static bool start_thread(unsigned index, void (*run)(void *argument), void *argument, bool urgent) {
  if (entries[index] != NULL) (void)k_thread_join(&threads[index], K_FOREVER);
  entries[index] = run;
  (void)k_thread_create(&threads[index], stacks[index], K_THREAD_STACK_SIZEOF(stacks[index]), run_entry,
                        (void *)(uintptr_t)index, argument, NULL, urgent ? 0 : CONFIG_NUM_PREEMPT_PRIORITIES - 2, 0,
                        K_NO_WAIT);
  return true;
}

static void expired(struct k_timer *which) {
  ARG_UNUSED(which);
  on_interrupt();
}

static void start_interrupt(void (*function)(void)) {
  on_interrupt = function;
  k_timer_init(&timer, expired, NULL);
  k_timer_start(&timer, INTERRUPT_PERIOD, INTERRUPT_PERIOD);
}

static void stop_interrupt(void) { k_timer_stop(&timer); }

int main(void) {
  static const tide_processors_board_t board = {.runs = RUNS,
                                                .priorities = {1, 2, 3},
                                                .pins = PINS,
                                                .busy_us = busy_us,
                                                .sleep_ms = sleep_ms,
                                                .start_thread = start_thread,
                                                .start_interrupt = start_interrupt,
                                                .stop_interrupt = stop_interrupt};
  printf("processors: %u\n", (unsigned)arch_num_cpus());
  (void)tide_processors(&board, NULL);
  return 0;
}
