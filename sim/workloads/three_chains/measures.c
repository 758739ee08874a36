/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "measures.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <tide/budget_posix.h>
#include <tide/measure.h>
#include <tide/port.h>
#include <tide/rclc.h>
#include <tide/status.h>

#include "plan.h"

enum { SAMPLE, ACT, CALLBACKS, REPLENISHMENTS = 16 };

static tide_measure_t measure;
static struct {
  tide_measurement_t times;
  char name[PLAN_NAME_BYTES + 8];
} measured[PLAN_CHAINS][CALLBACKS];
static size_t chain_count;

static struct {
  unsigned level;
  tide_budget_counters_t counters;
} noted[PLAN_CHAINS];
static size_t noted_count;
static tide_posix_budgets_t supervisor;
static tide_posix_budget_t own;
static tide_replenishment_t replenishments[REPLENISHMENTS];

static void name_and_link(size_t chain, int which, const char *name, const char *callback, tide_callback_t *runtime) {
  snprintf(measured[chain][which].name, sizeof measured[chain][which].name, "%s/%s", name, callback);
  measured[chain][which].times.name = measured[chain][which].name;
  runtime->measurement = &measured[chain][which].times;
}

void measures_times_of(rclc_executor_t *executor, size_t chain, const char *name, const rcl_timer_t *sample,
                       const rcl_subscription_t *act) {
  tide_measure_init(&measure, tide_port_measure_clock());
  tide_rclc_executor_core(executor)->config.measure = &measure;
  name_and_link(chain, SAMPLE, name, "sample", tide_rclc_timer_callback(sample));
  name_and_link(chain, ACT, name, "act", tide_rclc_subscription_callback(act));
  chain_count = chain + 1;
}

void measures_print_times(void) {
  char line[TIDE_MEASUREMENT_LINE_BYTES];
  for (size_t chain = 0; chain < chain_count; chain++) {
    for (int which = 0; which < CALLBACKS; which++) {
      (void)tide_measurement_line(&measured[chain][which].times, &measure, line, sizeof line);
      fputs(line, stdout);
    }
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
