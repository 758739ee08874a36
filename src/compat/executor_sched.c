/* SPDX-License-Identifier: Apache-2.0 */
/* The published prototype's calls. Levels and lanes are known only when all subscriptions are, so that they are kept
 * until the start. */
#include "rclc/executor_sched.h"

#include "internal.h"
#include "tide/rclc.h"

#define NANOSECONDS INT64_C(1000000000)
#define SECONDS_MAXIMUM 1000000

typedef struct record {
  rclc_executor_t *executor; /* null: free */
  rcl_subscription_t *subscription;
  void *message;
  rclc_subscription_callback_t callback;
  tide_lane_settings_t lane;
} record_t;

static record_t records[RCLC_SCHED_SUBSCRIPTIONS];

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
  const bool valid = param->sched_ss_max_repl >= 1 && param->sched_ss_max_repl <= UINT16_MAX &&
                     read_time(&param->sched_ss_init_budget, &lane->runtime_ns) &&
                     read_time(&param->sched_ss_repl_period, &lane->period_ns) && lane->runtime_ns > 0 &&
                     lane->runtime_ns <= lane->period_ns && lane->low_priority < lane->priority;
  return valid ? TIDE_OK : TIDE_ERROR_ARGUMENT;
}

static int keep(const record_t *record) {
  record_t *place = NULL;
  for (record_t *other = records; other < records + RCLC_SCHED_SUBSCRIPTIONS; other++) {
    if (other->executor == NULL) {
      place = place == NULL ? other : place;
    } else if (other->subscription == record->subscription) {
      return TIDE_ERROR_EXISTS;
    }
  }
  if (place == NULL) return TIDE_ERROR_CAPACITY_HANDLES;
  *place = *record;
  return TIDE_OK;
}

void rclc_executor_real_time_scheduling_init(rclc_executor_t *executor) {
  for (record_t *record = records; record < records + RCLC_SCHED_SUBSCRIPTIONS; record++) {
    if (record->executor == executor) record->executor = NULL;
  }
}

rcl_ret_t rclc_executor_add_subscription_sched(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                               rclc_subscription_callback_t callback,
                                               rclc_executor_handle_invocation_t invocation,
                                               const rclc_executor_sched_parameter_t *sparam) {
  if (tide_rclc_executor_core(executor) == NULL || !rcl_subscription_is_valid(subscription) || msg == NULL ||
      callback == NULL || sparam == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (invocation != ON_NEW_DATA) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  record_t record = {.executor = executor, .subscription = subscription, .message = msg, .callback = callback};
  const int status = read_lane(sparam, &record.lane);
  return tide_compat_result(status == TIDE_OK ? keep(&record) : status);
}

/* Those of the executor, rising in priority; they leave the table. */
static size_t take_records(const rclc_executor_t *executor, record_t *taken) {
  size_t count = 0u;
  for (record_t *record = records; record < records + RCLC_SCHED_SUBSCRIPTIONS; record++) {
    if (record->executor != executor) continue;
    size_t place = count++;
    for (; place > 0u && taken[place - 1u].lane.priority > record->lane.priority; place--) {
      taken[place] = taken[place - 1u];
    }
    taken[place] = *record;
    record->executor = NULL;
  }
  return count;
}

/* Each its own level, so that no lane runs another one's callback. */
static rcl_ret_t add(const record_t *record) {
  const tide_priority_t priority = TIDE_PRIORITY(record->lane.least_level, 0);
  const rcl_ret_t result = rclc_executor_add_subscription(record->executor, record->subscription, record->message,
                                                          record->callback, ON_NEW_DATA);
  return result == RCL_RET_OK ? tide_rclc_subscription_set_priority(record->subscription, priority) : result;
}

rcl_ret_t rclc_executor_start_multi_threading_for_nuttx(rclc_executor_t *executor) {
  record_t taken[RCLC_SCHED_SUBSCRIPTIONS];
  tide_lane_settings_t lanes[RCLC_SCHED_SUBSCRIPTIONS];
  if (tide_rclc_executor_core(executor) == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const size_t count = take_records(executor, taken);
  for (size_t index = 0u; index < count; index++) {
    taken[index].lane.least_level = (uint8_t)(index + 1u);
    lanes[index] = taken[index].lane;
  }
  rcl_ret_t result = count == 0u ? RCL_RET_OK : tide_rclc_executor_set_lanes(executor, lanes, count);
  for (size_t index = 0u; index < count && result == RCL_RET_OK; index++) result = add(&taken[index]);
  return result == RCL_RET_OK ? rclc_executor_spin(executor) : result;
}

rcl_ret_t rclc_executor_publish(const rcl_publisher_t *publisher, const void *ros_message,
                                rmw_publisher_allocation_t *allocation) {
  return rcl_publish(publisher, ros_message, allocation);
}
