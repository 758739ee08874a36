/* SPDX-License-Identifier: Apache-2.0 */
/* The measurement. Nothing is allocated, printed or written between the first expiry and the last. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tide/executor.h"
#include "tide/port.h"
#include "tide/posix.h"
#include "tide/status.h"
#include "timers.h"

#define STACK_BYTES ((size_t)512 * 1024)
#define STACK_TOUCH_BYTES ((size_t)256 * 1024)

typedef struct sample {
  int64_t measured_ns, reported_ns;
} sample_t;

typedef struct measurement {
  tide_timer_t timer; /* first member */
  tide_executor_t executor;
  tide_callback_t *callbacks[1];
  tide_queue_entry_t *ready_storage[1], *timer_storage[1];
  tide_lane_t lane;
  sample_t *samples;
  uint32_t repetitions;
  _Atomic uint32_t done;
  int64_t start_ns;         /* not before this time */
  int64_t first_ns;         /* of the grid */
  uint32_t skipped;         /* expiries that no callback will answer, up to the latest callback */
  uint64_t early, told_off; /* callbacks before their expiry; told another expiry than that of the grid */
  pthread_t main_thread;
  int status;
} measurement_t;

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  const tide_platform_t *platform = tide_port_platform();
  const int64_t now_ns = platform->now_ns(platform->context);
  (void)since_last_call_ns;
  measurement_t *measurement = (measurement_t *)(void *)timer;
  const uint32_t index = atomic_load_explicit(&measurement->done, memory_order_relaxed);
  const int64_t expiry_ns = measurement->first_ns + ((int64_t)index + (int64_t)measurement->skipped) * timer->period_ns;
  const sample_t sample = {.measured_ns = now_ns - expiry_ns,
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
  (void)pthread_kill(measurement->main_thread, SIGUSR1);
}

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

/* Until the lane has ended: by itself, or because a signal asks for it. True: it was asked. Nothing is printed and
 * nothing wakes up meanwhile: it would be measured. */
static bool supervise(measurement_t *measurement, const sigset_t *signals) {
  bool interrupted = false;
  for (;;) {
    const int number = sigwaitinfo(signals, NULL);
    if (number == SIGUSR1) return interrupted;
    if (number == SIGINT || number == SIGTERM) {
      interrupted = true;
      tide_executor_stop(&measurement->executor);
    }
  }
}

static bool write_samples(const measurement_t *measurement, const char *path) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return false;
  const size_t wrote = fwrite(measurement->samples, sizeof(sample_t), measurement->done, file);
  return fclose(file) == 0 && wrote == measurement->done;
}

static int conclude(const measurement_t *measurement, const timers_options_t *options, bool interrupted) {
  if (measurement->status != TIDE_OK) {
    fprintf(stderr, "tide-timers: the executor ended: %s\n", tide_status_text(measurement->status));
    return TIMERS_FAILED;
  }
  if (!write_samples(measurement, options->out)) {
    fprintf(stderr, "tide-timers: %s could not be written: %s\n", options->out, strerror(errno));
    return TIMERS_FAILED;
  }
  printf("{\"event\": \"done\", \"done\": %" PRIu32 ", \"skipped\": %" PRIu32 ", \"early\": %" PRIu64
         ", \"told_another_expiry\": %" PRIu64 ", \"interrupted\": %s}\n",
         measurement->done, measurement->skipped, measurement->early, measurement->told_off,
         interrupted ? "true" : "false");
  return TIMERS_DONE;
}

static int run(measurement_t *measurement, const timers_options_t *options) {
  sigset_t signals;
  (void)sigemptyset(&signals);
  (void)sigaddset(&signals, SIGINT);
  (void)sigaddset(&signals, SIGTERM);
  (void)sigaddset(&signals, SIGUSR1);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
  measurement->main_thread = pthread_self();
  const bool memory_locked = tide_posix_lock_memory() == TIDE_OK;
  const bool latency_held = tide_posix_hold_cpu_latency(0) >= 0;
  const tide_posix_thread_config_t config = {.scheduling = options->scheduling,
                                             .name = "tide lane",
                                             .stack_bytes = STACK_BYTES,
                                             .stack_touch_bytes = STACK_TOUCH_BYTES,
                                             .function = spin,
                                             .context = measurement};
  tide_posix_thread_t thread;
  const int status = tide_posix_thread_start(&thread, &config);
  if (status != TIDE_OK) {
    fprintf(stderr, "tide-timers: scheduling %s %d: %s\n", options->policy_name, options->scheduling.priority,
            tide_status_text(status));
    return status == TIDE_ERROR_NOT_PERMITTED ? TIMERS_NOT_PERMITTED : TIMERS_FAILED;
  }
  printf("{\"event\": \"started\", \"memory_locked\": %s, \"cpu_latency_held\": %s}\n",
         memory_locked ? "true" : "false", latency_held ? "true" : "false");
  (void)fflush(stdout);
  const bool interrupted = supervise(measurement, &signals);
  tide_posix_thread_join(&thread);
  return conclude(measurement, options, interrupted);
}

/* Every page of the samples is there before the first expiry, locked or not. */
static sample_t *allocate(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  memset(memory, 1, bytes);
  return memory;
}

int timers_measure(const timers_options_t *options) {
  static measurement_t measurement;
  const size_t bytes = options->repetitions * sizeof(sample_t);
  measurement.repetitions = options->repetitions;
  measurement.start_ns = options->start_ns;
  measurement.timer.period_ns = options->period_ns;
  measurement.timer.on_expiry = on_expiry;
  if (options->lead_ns >= 0) tide_posix_set_wake_up_lead(options->lead_ns);
  measurement.samples = allocate(bytes);
  if (measurement.samples == NULL) {
    fprintf(stderr, "tide-timers: no memory for %" PRIu32 " measurements\n", options->repetitions);
    return TIMERS_FAILED;
  }
  const int status = prepare(&measurement);
  if (status != TIDE_OK) {
    fprintf(stderr, "tide-timers: the executor was not made: %s\n", tide_status_text(status));
    return TIMERS_FAILED;
  }
  return run(&measurement, options);
}
