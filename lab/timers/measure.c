/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a timer of an executor with one lane. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "run.h"
#include "tide/executor.h"
#include "tide/port.h"
#include "tide/posix.h"
#include "tide/status.h"

typedef struct measurement {
  tide_timer_t timer; /* first member */
  tide_executor_t executor;
  tide_callback_t *callbacks[1];
  tide_queue_entry_t *ready_storage[1], *timer_storage[1];
  tide_lane_t lane;
  timers_sample_t *samples;
  uint32_t repetitions;
  _Atomic uint32_t done;
  int64_t start_ns;         /* the first expiry is a period after this time, or after the start */
  int64_t first_ns;         /* the first expiry */
  uint32_t skipped;         /* expiries without a callback up to the last callback */
  uint64_t early, told_off; /* callbacks that began too early; callbacks whose reported expiry is wrong */
  int status;
} measurement_t;

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  const tide_platform_t *platform = tide_port_platform();
  const int64_t now_ns = platform->now_ns(platform->context);
  (void)since_last_call_ns;
  measurement_t *measurement = (measurement_t *)(void *)timer;
  const uint32_t index = atomic_load_explicit(&measurement->done, memory_order_relaxed);
  const int64_t expiry_ns = measurement->first_ns + ((int64_t)index + (int64_t)measurement->skipped) * timer->period_ns;
  const timers_sample_t sample = {.measured_ns = now_ns - expiry_ns,
                                  .reported_ns = timer->callback.start_ns - timer->callback.ready_ns};
  measurement->samples[index] = sample;
  measurement->early += now_ns < expiry_ns ? 1u : 0u;
  measurement->told_off += timer->callback.ready_ns != expiry_ns ? 1u : 0u;
  measurement->skipped = timer->skipped;
  atomic_store_explicit(&measurement->done, index + 1u, memory_order_release);
  if (index + 1u == measurement->repetitions) tide_executor_stop(&measurement->executor);
}

static void spin(void *context) {
  measurement_t *measurement = context;
  const tide_platform_t *platform = tide_port_platform();
  const int64_t now_ns = platform->now_ns(platform->context);
  measurement->first_ns =
      (measurement->start_ns > now_ns ? measurement->start_ns : now_ns) + measurement->timer.period_ns;
  measurement->status = tide_timer_set_phase(&measurement->timer, measurement->first_ns);
  if (measurement->status == TIDE_OK) measurement->status = tide_executor_spin(&measurement->executor);
}

static void stop(void *context) { tide_executor_stop(&((measurement_t *)context)->executor); }

static int prepare(measurement_t *measurement) {
  const tide_executor_config_t config = {.platform = tide_port_platform(),
                                         .policy = TIDE_POLICY_TIDE,
                                         .callbacks = measurement->callbacks,
                                         .ready_storage = measurement->ready_storage,
                                         .timer_storage = measurement->timer_storage,
                                         .callback_count = 1u,
                                         .lanes = &measurement->lane,
                                         .lane_count = 1u};
  const int status = tide_executor_init(&measurement->executor, &config);
  return status == TIDE_OK ? tide_executor_add_timer(&measurement->executor, &measurement->timer) : status;
}

static int conclude(const measurement_t *measurement, const timers_options_t *options, bool interrupted) {
  if (measurement->status != TIDE_OK) {
    fprintf(stderr, "tide-timers: the executor ended: %s\n", tide_status_text(measurement->status));
    return TIMERS_FAILED;
  }
  if (!timers_write(measurement->samples, measurement->done, options->out)) return TIMERS_FAILED;
  printf("{\"event\": \"done\", \"done\": %" PRIu32 ", \"skipped\": %" PRIu32 ", \"early\": %" PRIu64
         ", \"told_another_expiry\": %" PRIu64 ", \"interrupted\": %s}\n",
         measurement->done, measurement->skipped, measurement->early, measurement->told_off,
         interrupted ? "true" : "false");
  return TIMERS_DONE;
}

int timers_measure(const timers_options_t *options) {
  static measurement_t measurement;
  measurement.repetitions = options->repetitions;
  measurement.start_ns = options->start_ns;
  measurement.timer.period_ns = options->period_ns;
  measurement.timer.on_expiry = on_expiry;
  if (options->lead_ns >= 0) tide_posix_set_wake_up_lead(options->lead_ns);
  measurement.samples = timers_allocate(options->repetitions);
  if (measurement.samples == NULL) return TIMERS_FAILED;
  const int status = prepare(&measurement);
  if (status != TIDE_OK) {
    fprintf(stderr, "tide-timers: the executor was not made: %s\n", tide_status_text(status));
    return TIMERS_FAILED;
  }
  const timers_run_t run = {.spin = spin, .stop = stop, .context = &measurement};
  bool interrupted = false;
  const int ended = timers_run(&run, options, &interrupted);
  return ended == TIMERS_DONE ? conclude(&measurement, options, interrupted) : ended;
}
