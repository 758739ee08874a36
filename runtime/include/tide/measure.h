/* SPDX-License-Identifier: Apache-2.0 */
/* Execution times of callbacks, measured on the target while the program runs: number of runs, shortest, longest and
 * total time of each callback. The results are input for `tide check`.
 *
 *   static tide_measure_t measure;
 *   static tide_measurement_t of_sample = {.name = "brake/sample"};        chain and callback, as in system.toml
 *   tide_measure_init(&measure, tide_port_measure_clock());
 *   executor_config.measure = &measure;                     rclc: tide_rclc_executor_core(&executor)->config.measure
 *   sample_timer.callback.measurement = &of_sample;         rclc: tide_rclc_timer_callback(&timer)->measurement
 *   ...
 *   tide_measurement_line(&of_sample, &measure, line, sizeof line);        and print it
 *
 * `tide check system.toml --measured lines.txt` uses the longest times, `tide trace times system.toml lines.txt` writes
 * them into the description. `tide run` writes such lines for the programs that it simulates.
 *
 * A run counts the time of the callback itself and the decoding of its message. A thread's processor clock (POSIX)
 * excludes preemption. A cycle counter includes preemption, so the runs of other measured callbacks within a run are
 * subtracted. This subtraction is exact when callbacks preempt each other like nested calls, as lanes with different
 * priorities on one processor do. Interrupts that run no measured callback are included. With several processors, or
 * with time slicing, use a thread clock.
 *
 * Cost of a run: two readings of the clock and two critical sections of a dozen instructions. Without a measurement a
 * callback costs one comparison. In a lean runtime (tide/options.h) nothing is measured, at no cost. Memory, the
 * program's: 40 bytes per callback, or 32 on a 32-bit board. No function here allocates or fails. */
#ifndef TIDE_MEASURE_H
#define TIDE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

typedef struct tide_measure_clock {
  uint64_t (*now)(void *context); /* ticks; counts up and wraps at mask. Called in every context that runs callbacks */
  void *context;
  uint64_t mask;  /* UINT32_MAX for a counter of 32 bits; no run may last longer than one wrap */
  uint32_t hertz; /* ticks a second */
  bool of_thread; /* a thread's own clock, which stops while the thread is not running */
} tide_measure_clock_t;

typedef struct tide_measure {
  tide_measure_clock_t clock;
  uint64_t inner; /* ticks of measured runs nested in the present run */
} tide_measure_t;

/* Times in ticks of the clock. Zero all members but the name before first use, and to restart the measurement. */
typedef struct tide_measurement {
  const char *name; /* "chain/callback", for tide_measurement_line; must outlive the measurement */
  uint32_t count;
  uint64_t minimum, maximum, sum;
} tide_measurement_t;

void tide_measure_init(tide_measure_t *measure, const tide_measure_clock_t *clock);
/* Ticks as nanoseconds, rounded up. */
uint64_t tide_measure_ns(const tide_measure_t *measure, uint64_t ticks);

#define TIDE_MEASUREMENT_LINE_BYTES 128u
/* Write "tide-execution NAME COUNT MINIMUM MAXIMUM SUM\n", with times in nanoseconds, and a NUL, truncated to `bytes`.
 * Returns the number of characters written. Call it while the callback does not run, or pass a copy. */
size_t tide_measurement_line(const tide_measurement_t *measurement, const tide_measure_t *measure, char *text,
                             size_t bytes);

TIDE_EXTERN_C_END
#endif
