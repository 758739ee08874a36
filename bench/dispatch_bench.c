/* SPDX-License-Identifier: Apache-2.0 */
/* What a dispatch costs: rounds of an executor with many handles of which one is ready. The clock is virtual, so that
 * what is counted is the executor alone. Prints nanoseconds; `--count` runs one case for an instruction counter:
 *
 *   valgrind --tool=callgrind --toggle-collect=measured_rounds build/release/bench/dispatch_bench --count tide 100
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tide/executor.h"
#include "tide/port.h"
#include "tide/status.h"

#define HANDLES_MAXIMUM 1000
#define ROUNDS 10000u
#define PERIOD_NS 1000
#define ATTEMPTS 5

static int64_t virtual_ns;

static int64_t now_ns(void *context) {
  (void)context;
  return virtual_ns;
}

static uintptr_t critical_enter(void *context) {
  (void)context;
  return 0u;
}

static void critical_exit(void *context, uintptr_t state) {
  (void)context;
  (void)state;
}

static void event_init(void *context, tide_event_t *event) {
  (void)context;
  event->state = 0u;
}

static void event_set(void *context, tide_event_t *event) {
  (void)context;
  event->state = 1u;
}

static int event_wait(void *context, tide_event_t *event, int64_t deadline_ns) {
  (void)context;
  const int set = event->state == 1u ? 1 : 0;
  event->state = 0u;
  virtual_ns = set == 0 && deadline_ns > virtual_ns ? deadline_ns : virtual_ns;
  return set;
}

static const tide_platform_t platform = {.now_ns = now_ns,
                                         .critical_enter = critical_enter,
                                         .critical_exit = critical_exit,
                                         .event_init = event_init,
                                         .event_set = event_set,
                                         .event_wait = event_wait};

static tide_callback_t *callbacks[HANDLES_MAXIMUM];
static tide_queue_entry_t *ready_storage[HANDLES_MAXIMUM], *timer_storage[HANDLES_MAXIMUM];
static tide_timer_t timers[HANDLES_MAXIMUM];
static tide_lane_t lane;
static tide_executor_t executor;
static uint64_t expiries;

static void on_expiry(tide_timer_t *timer, int64_t since_last_call_ns) {
  (void)timer;
  (void)since_last_call_ns;
  expiries++;
}

/* Periods are equal and phases spread evenly: one timer is due at a time, as in wire.md's figures. */
static bool prepare(tide_policy_t policy, size_t handles) {
  const tide_executor_config_t config = {.platform = &platform,
                                         .policy = policy,
                                         .callbacks = callbacks,
                                         .ready_storage = ready_storage,
                                         .timer_storage = timer_storage,
                                         .callback_count = HANDLES_MAXIMUM,
                                         .lanes = &lane,
                                         .lane_count = 1};
  bool ready = tide_executor_init(&executor, &config) == TIDE_OK;
  memset(timers, 0, sizeof timers);
  for (size_t index = 0; index < handles; index++) {
    tide_timer_t *timer = &timers[index];
    timer->period_ns = (int64_t)handles * PERIOD_NS;
    timer->on_expiry = on_expiry;
    timer->callback.priority = (tide_priority_t)(index * 7u % handles);
    ready = ready && tide_executor_add_timer(&executor, timer) == TIDE_OK &&
            tide_timer_set_phase(timer, virtual_ns + (int64_t)(index + 1u) * PERIOD_NS) == TIDE_OK;
  }
  return ready;
}

/* Not inlined and not static: callgrind collects inside it. */
uint64_t measured_rounds(uint32_t rounds);
__attribute__((noinline)) uint64_t measured_rounds(uint32_t rounds) {
  uint64_t ran = 0;
  for (uint32_t round = 0; round < rounds; round++) {
    const int result = tide_executor_round(&executor, TIDE_FOREVER);
    ran += result > 0 ? (uint64_t)result : 0u;
  }
  return ran;
}

/* Returns what a round takes, the best of several tries; or -1 when not exactly one callback ran in each. */
static double measure(tide_policy_t policy, size_t handles) {
  const tide_platform_t *host = tide_port_platform();
  int64_t best_ns = TIDE_FOREVER;
  if (!prepare(policy, handles)) {
    return -1.0;
  }
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    const int64_t start_ns = host->now_ns(host->context);
    const uint64_t ran = measured_rounds(ROUNDS);
    const int64_t took_ns = host->now_ns(host->context) - start_ns;
    if (ran != ROUNDS) {
      return -1.0;
    }
    best_ns = took_ns < best_ns ? took_ns : best_ns;
  }
  return (double)best_ns / ROUNDS;
}

static tide_policy_t policy_of(const char *name) {
  return strcmp(name, "batch") == 0      ? TIDE_POLICY_BATCH
         : strcmp(name, "readyset") == 0 ? TIDE_POLICY_READYSET
                                         : TIDE_POLICY_TIDE;
}

static int count_one(const char *policy, const char *handles_text) {
  const size_t handles = (size_t)strtoul(handles_text, NULL, 10);
  if (handles < 1u || handles > HANDLES_MAXIMUM || !prepare(policy_of(policy), handles)) {
    return EXIT_FAILURE;
  }
  const uint64_t ran = measured_rounds(ROUNDS);
  printf("%" PRIu64 " callbacks in %u rounds\n", ran, ROUNDS);
  return ran == ROUNDS ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_table(void) {
  static const size_t sizes[] = {1, 10, 100, 1000};
  bool good = true;
  printf("%8s %12s %12s %12s\n", "timers", "tide ns", "batch ns", "readyset ns");
  for (size_t index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
    const double tide = measure(TIDE_POLICY_TIDE, sizes[index]);
    const double batch = measure(TIDE_POLICY_BATCH, sizes[index]);
    const double readyset = measure(TIDE_POLICY_READYSET, sizes[index]);
    printf("%8zu %12.1f %12.1f %12.1f\n", sizes[index], tide, batch, readyset);
    good = good && tide > 0.0 && batch > 0.0 && readyset > 0.0;
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments) {
  if (count == 4 && strcmp(arguments[1], "--count") == 0) {
    return count_one(arguments[2], arguments[3]);
  }
  if (count != 1) {
    fprintf(stderr, "usage: dispatch_bench [--count tide|batch|readyset HANDLES]\n");
    return 2;
  }
  return print_table();
}
