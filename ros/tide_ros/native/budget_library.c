/* SPDX-License-Identifier: Apache-2.0 */
/* The budgets of tide/budget_posix.h for tide_ros.budget. The interface has handles and numbers instead of structures.
 * A function that can fail returns a tide_status_t. The functions start and attach store a handle in *made; they
 * allocate memory, which stop and detach free. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "tide/budget_posix.h"
#include "tide/status.h"

#define EXPORTED __attribute__((visibility("default")))

typedef struct lane {
  tide_posix_budget_t budget;
  tide_replenishment_t replenishments[];
} lane_t;

EXPORTED int tide_ros_supervisor_start(int priority, tide_posix_budgets_t **made);
EXPORTED void tide_ros_supervisor_stop(tide_posix_budgets_t *supervisor);
EXPORTED int tide_ros_budget_attach(tide_posix_budgets_t *supervisor, const int64_t numbers[5], lane_t **made);
EXPORTED void tide_ros_budget_detach(lane_t *lane);
EXPORTED void tide_ros_budget_ready(lane_t *lane);
EXPORTED void tide_ros_budget_block(lane_t *lane);
EXPORTED int tide_ros_budget_counters(lane_t *lane, uint64_t numbers[8]);
EXPORTED const char *tide_ros_budget_advice(int status);

int tide_ros_supervisor_start(int priority, tide_posix_budgets_t **made) {
  tide_posix_budgets_t *const supervisor = calloc(1, sizeof *supervisor);
  if (supervisor == NULL) return TIDE_ERROR_FULL;
  const int status = tide_posix_budgets_start(supervisor, priority, TIDE_POSIX_ANY_CPU);
  if (status != TIDE_OK) {
    free(supervisor);
    return status;
  }
  *made = supervisor;
  return TIDE_OK;
}

void tide_ros_supervisor_stop(tide_posix_budgets_t *supervisor) {
  tide_posix_budgets_stop(supervisor);
  free(supervisor);
}

/* Attaches the calling thread. `numbers` are its priority, its low priority, the budget and the period in ns, and the
 * greatest number of pending replenishments. */
int tide_ros_budget_attach(tide_posix_budgets_t *supervisor, const int64_t numbers[5], lane_t **made) {
  if (numbers[4] < 1 || numbers[4] > UINT16_MAX) return TIDE_ERROR_ARGUMENT;
  lane_t *const lane = calloc(1, sizeof *lane + (size_t)numbers[4] * sizeof lane->replenishments[0]);
  if (lane == NULL) return TIDE_ERROR_FULL;
  const tide_budget_config_t config = {.priority = (int32_t)numbers[0],
                                       .low_priority = (int32_t)numbers[1],
                                       .budget_ns = numbers[2],
                                       .period_ns = numbers[3],
                                       .replenishments = lane->replenishments,
                                       .maximum_replenishments = (uint16_t)numbers[4]};
  const int status = tide_posix_budget_attach(supervisor, &lane->budget, pthread_self(), &config);
  if (status != TIDE_OK) {
    free(lane);
    return status;
  }
  *made = lane;
  return TIDE_OK;
}

void tide_ros_budget_detach(lane_t *lane) {
  (void)tide_posix_budget_detach(&lane->budget);
  free(lane);
}

void tide_ros_budget_ready(lane_t *lane) { tide_posix_budget_ready(&lane->budget); }

void tide_ros_budget_block(lane_t *lane) { tide_posix_budget_block(&lane->budget); }

/* Writes the counters into `numbers` in the order of tide_budget_counters_t. */
int tide_ros_budget_counters(lane_t *lane, uint64_t numbers[8]) {
  tide_budget_counters_t counters;
  const int status = tide_posix_budget_counters(&lane->budget, &counters);
  if (status != TIDE_OK) return status;
  const uint64_t ordered[8] = {counters.activations, counters.exhaustions, counters.replenishments,
                               counters.denied,      counters.forgiven,    counters.used_ns,
                               counters.low_ns,      counters.overrun_ns};
  for (size_t index = 0; index < 8; index++) numbers[index] = ordered[index];
  return TIDE_OK;
}

const char *tide_ros_budget_advice(int status) { return tide_posix_budget_advice(status); }
