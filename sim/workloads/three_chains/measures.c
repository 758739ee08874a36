/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "measures.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <tide/budget_posix.h>
#include <tide/measure.h>
#include <tide/rclc.h>
#include <tide/status.h>

enum { REPLENISHMENTS = 16 };

static tide_measure_t measure;
static struct {
  tide_measurement_t times;
  char name[2 * PLAN_NAME_BYTES];
} measured[PLAN_CALLBACKS];
static size_t measured_count;

static struct {
  unsigned level;
  tide_budget_counters_t counters;
} noted[PLAN_CHAINS];
static size_t noted_count;
static tide_posix_budgets_t supervisor;
static tide_posix_budget_t own;
static tide_replenishment_t replenishments[REPLENISHMENTS];

static uint64_t executed(void *read_ns) { return (uint64_t)((measures_clock_t *)read_ns)->now_ns(); }

void measures_begin(measures_clock_t *clock) {
  const tide_measure_clock_t ours = {
      .now = executed, .context = clock, .mask = UINT64_MAX, .hertz = 1000000000u, .of_thread = true};
  tide_measure_init(&measure, &ours);
}

void measures_times_of(rclc_executor_t *executor, size_t number, const plan_t *plan, tide_callback_t *callback) {
  tide_rclc_executor_core(executor)->config.measure = &measure;
  const plan_callback_t *described = &plan->callbacks[number];
  snprintf(measured[number].name, sizeof measured[number].name, "%s/%s", plan->chains[described->chain].name,
           described->name);
  measured[number].times.name = measured[number].name;
  callback->measurement = &measured[number].times;
  measured_count = number + 1;
}

void measures_print_times(void) {
  char line[TIDE_MEASUREMENT_LINE_BYTES];
  for (size_t number = 0; number < measured_count; number++) {
    if (measured[number].times.name == NULL) continue; /* of a service that a callback before it has */
    (void)tide_measurement_line(&measured[number].times, &measure, line, sizeof line);
    fputs(line, stdout);
  }
  fflush(stdout);
}

bool measures_take_budget(int priority, int64_t budget_ns, int64_t period_ns) {
  const tide_budget_config_t config = {.priority = priority,
                                       .budget_ns = budget_ns,
                                       .period_ns = period_ns,
                                       .replenishments = replenishments,
                                       .maximum_replenishments = REPLENISHMENTS};
  int status = tide_posix_budgets_start(&supervisor, priority + 1, TIDE_POSIX_ANY_CPU);
  if (status == TIDE_OK) status = tide_posix_budget_attach(&supervisor, &own, pthread_self(), &config);
  if (status != TIDE_OK) fprintf(stderr, "chain_client: no budget: %s\n", tide_posix_budget_advice(status));
  return status == TIDE_OK;
}

static void note(unsigned level, tide_posix_budget_t *budget) {
  if (noted_count == PLAN_CHAINS) return;
  noted[noted_count].level = level;
  if (tide_posix_budget_counters(budget, &noted[noted_count].counters) == TIDE_OK) noted_count++;
}

void measures_note_budgets(rclc_executor_t *executor) {
  const tide_executor_config_t *config = &tide_rclc_executor_core(executor)->config;
  if (own.owner != NULL) note(0, &own);
  for (size_t lane = 0; lane < config->lane_count; lane++) {
    tide_posix_budget_t *budget = config->lanes[lane].budget.context; /* what tide_posix_budget_hooks has set */
    if (budget != NULL) note(config->lanes[lane].settings.least_level, budget);
  }
}

void measures_print_budgets(void) {
  putchar('[');
  for (size_t index = 0; index < noted_count; index++) {
    const tide_budget_counters_t *counters = &noted[index].counters;
    printf("%s{\"level\": %u, \"exhaustions\": %" PRIu64 ", \"used_ns\": %" PRIu64 ", \"low_ns\": %" PRIu64
           ", \"overrun_ns\": %" PRIu64 "}",
           index == 0 ? "" : ", ", noted[index].level, counters->exhaustions, counters->used_ns, counters->low_ns,
           counters->overrun_ns);
  }
  putchar(']');
}
