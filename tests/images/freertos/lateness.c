/* SPDX-License-Identifier: Apache-2.0 */
/* Measures with the board's own timer how late waits end on FreeRTOS, in exact virtual time. There are 400 delays of
 * various lengths, alone and while less urgent tasks wait and compute. Prints the greatest lateness in nanoseconds. It
 * is a failure if a wait ends early. */
#include "board.h"
#include "chip.h"
#include "measure.h"
#include "platform.h"
#include "tide_freertos.h"

void vApplicationIdleHook(void);
/* The idle task does not sleep, because in virtual time QEMU 7.2 runs the tick at half its rate while the processor
 * sleeps. */
void vApplicationIdleHook(void) {}

#define DELAYS 400
#define OTHERS 3

static int64_t true_ns(void) { return (int64_t)(tide_cortex_m_clock() * TIDE_CHIP_TICK_NS); }

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static int64_t wait_for(int64_t delay_ns) {
  const tide_platform_t *platform = tide_port_platform();
  tide_event_t event = {0};
  platform->event_init(platform->context, &event);
  const int64_t begin_ns = true_ns(), deadline_ns = platform->now_ns(platform->context) + delay_ns;
  if (platform->event_wait(platform->context, &event, deadline_ns) != 0) board_exit(3);
  if (platform->now_ns(platform->context) < deadline_ns) board_exit(4);
  return true_ns() - begin_ns - delay_ns;
}

static void other_task(void *argument) {
  uint32_t seed = (uint32_t)(uintptr_t)argument;
  for (;;) {
    (void)wait_for((int64_t)(next_random(&seed) % 3000000u));
    measure_burn((int64_t)(next_random(&seed) % 2000000u));
  }
}

static int64_t latest(uint32_t *seed) {
  int64_t latest_ns = INT64_MIN;
  for (unsigned count = 0; count < DELAYS; count++) {
    const int64_t late_ns = wait_for((int64_t)(next_random(seed) % 5000000u));
    if (late_ns > latest_ns) latest_ns = late_ns;
  }
  return latest_ns;
}

int main(void) {
  uint32_t seed = 1;
  measure_print("alone: latest ns ", latest(&seed), "\n");
  for (uintptr_t other = 1; other <= OTHERS; other++)
    if (xTaskCreate(other_task, "other", 512, (void *)other, (UBaseType_t)other, NULL) != pdPASS) return 5;
  measure_print("beside others: latest ns ", latest(&seed), "\n");
  return 0;
}
