/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a published prototype (rclc/executor_sched.h) on top of lanes. Levels and lanes are known only when
 * all subscriptions were added, so the subscriptions are stored until the start. */
#include <string.h>

#include "internal.h"
#include "rclc/executor_sched.h"
#include "tide/rclc.h"

#define NANOSECONDS INT64_C(1000000000)
#define SECONDS_MAXIMUM 1000000

typedef struct sched_record {
  rclc_executor_t *executor;
  rcl_subscription_t *subscription;
  void *message;
  rclc_subscription_callback_t callback;
} sched_record_t;

/* The records of one executor are adjacent and in rising priority, so that its lanes can be passed without a copy,
 * which would be too large for a board's stack. */
static sched_record_t records[RCLC_SCHED_SUBSCRIPTIONS];
static tide_lane_settings_t record_lanes[RCLC_SCHED_SUBSCRIPTIONS]; /* one for each record */
static size_t record_count;

static bool read_time(const rclc_sched_time_t *time, int64_t *time_ns) {
  const bool valid =
      time->tv_sec >= 0 && time->tv_sec <= SECONDS_MAXIMUM && time->tv_nsec >= 0 && time->tv_nsec < NANOSECONDS;
  if (valid) *time_ns = time->tv_sec * NANOSECONDS + time->tv_nsec;
  return valid;
}

static int read_lane(const rclc_executor_sched_parameter_t *parameter, tide_lane_settings_t *lane) {
  const rclc_sched_param_t *param = &parameter->param;
  *lane = (tide_lane_settings_t){.scheduling = TIDE_SCHEDULING_FIFO, .priority = param->sched_priority};
  if (parameter->policy == SCHED_FIFO) return TIDE_OK;
  if (parameter->policy != SCHED_SPORADIC) return TIDE_ERROR_UNSUPPORTED;
  lane->scheduling = TIDE_SCHEDULING_SPORADIC;
  lane->low_priority = param->sched_ss_low_priority;
  lane->maximum_replenishments = (uint16_t)param->sched_ss_max_repl;
  const bool valid = param->sched_ss_max_repl >= 1 && param->sched_ss_max_repl <= (int)UINT16_MAX &&
                     read_time(&param->sched_ss_init_budget, &lane->runtime_ns) &&
                     read_time(&param->sched_ss_repl_period, &lane->period_ns) && lane->runtime_ns > 0 &&
                     lane->runtime_ns <= lane->period_ns && lane->low_priority < lane->priority;
  return valid ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

static int keep(const sched_record_t *record, const tide_lane_settings_t *lane) {
  size_t place = record_count;
  bool placed = false;
  for (size_t index = 0u; index < record_count; index++) {
    if (records[index].subscription == record->subscription) return TIDE_ERROR_EXISTS;
    if (placed || records[index].executor != record->executor) continue;
    placed = record_lanes[index].priority > lane->priority;
    place = placed ? index : index + 1u;
  }
  if (record_count == RCLC_SCHED_SUBSCRIPTIONS) return TIDE_ERROR_CAPACITY_HANDLES;
  const size_t after = record_count++ - place;
  memmove(&records[place + 1u], &records[place], after * sizeof records[0]);
  memmove(&record_lanes[place + 1u], &record_lanes[place], after * sizeof record_lanes[0]);
  records[place] = *record;
  record_lanes[place] = *lane;
  return TIDE_OK;
}

static size_t find(const rclc_executor_t *executor, size_t *first) {
  size_t count = 0u;
  for (*first = 0u; *first < record_count && records[*first].executor != executor; ++*first) {}
  while (*first + count < record_count && records[*first + count].executor == executor) count++;
  return count;
}

static void forget(size_t first, size_t count) {
  const size_t after = record_count - first - count;
  memmove(&records[first], &records[first + count], after * sizeof records[0]);
  memmove(&record_lanes[first], &record_lanes[first + count], after * sizeof record_lanes[0]);
  record_count -= count;
}

void rclc_executor_real_time_scheduling_init(rclc_executor_t *executor) {
  size_t first;
  const size_t count = find(executor, &first);
  forget(first, count);
}

/* Stores a subscription until the start, with a lane for it. */
rcl_ret_t rclc_executor_add_subscription_sched(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                               rclc_subscription_callback_t callback,
                                               rclc_executor_handle_invocation_t invocation,
                                               const rclc_executor_sched_parameter_t *sparam) {
  if (!rcl_subscription_is_valid(subscription) || msg == NULL || callback == NULL || sparam == NULL ||
      tide_rclc_executor_core(executor) == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (invocation != ON_NEW_DATA) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  const sched_record_t record = {executor, subscription, msg, callback};
  tide_lane_settings_t lane;
  const int status = read_lane(sparam, &lane);
  return tide_compat_result(status == TIDE_OK ? keep(&record, &lane) : status);
}

/* Each lane gets its own level, so that no lane runs another lane's callback. */
static rcl_ret_t set_up(rclc_executor_t *executor, size_t first, size_t count) {
  for (size_t index = 0u; index < count; index++) record_lanes[first + index].least_level = (uint8_t)(index + 1u);
  rcl_ret_t result = count == 0u ? RCL_RET_OK : tide_rclc_executor_set_lanes(executor, &record_lanes[first], count);
  for (size_t index = 0u; index < count && result == RCL_RET_OK; index++) {
    const sched_record_t *record = &records[first + index];
    result =
        rclc_executor_add_subscription(executor, record->subscription, record->message, record->callback, ON_NEW_DATA);
    if (result == RCL_RET_OK)
      result = tide_rclc_subscription_set_priority(record->subscription, TIDE_PRIORITY(index + 1u, 0));
  }
  return result;
}

rcl_ret_t rclc_executor_start_multi_threading_for_nuttx(rclc_executor_t *executor) {
  if (tide_rclc_executor_core(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  size_t first;
  const size_t count = find(executor, &first);
  const rcl_ret_t result = set_up(executor, first, count);
  forget(first, count);
  return result == RCL_RET_OK ? rclc_executor_spin(executor) : result;
}

rcl_ret_t rclc_executor_publish(const rcl_publisher_t *publisher, const void *ros_message,
                                rmw_publisher_allocation_t *allocation) {
  return rcl_publish(publisher, ros_message, allocation);
}
