/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the published prototype of this interface. Levels and lanes are known only when all subscriptions were
 * added, so the subscriptions are stored until the start. */
#include <string.h>

#include "internal.h"
#include "rclc/executor_sched.h"
#include "tide/rclc.h"
#include "tide/rclc_service.h"

#define NANOSECONDS INT64_C(1000000000)
#define SECONDS_MAXIMUM 1000000

typedef struct sched_record {
  rclc_executor_t *executor;
  void *object; /* the program's subscription, timer, service or guard condition */
  void *message, *response;
  void (*callback)(void); /* cast before the call: its true type depends on the kind of callback */
  rcl_ret_t (*add)(const struct sched_record *record, tide_priority_t priority);
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
    if (records[index].object == record->object) return TIDE_ERROR_EXISTS;
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
  for (*first = 0u; *first < record_count && records[*first].executor != executor; ++*first) {
  }
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

/* Stores a callback until the start, with a lane for it. */
static rcl_ret_t add_sched(const sched_record_t *record, const rclc_executor_sched_parameter_t *sparam) {
  if (tide_rclc_executor_core(record->executor) == NULL || record->callback == NULL || sparam == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_lane_settings_t lane;
  const int status = read_lane(sparam, &lane);
  return tide_compat_result(status == TIDE_OK ? keep(record, &lane) : status);
}

static rcl_ret_t add_subscription(const sched_record_t *record, tide_priority_t priority) {
  const rcl_ret_t result = rclc_executor_add_subscription(record->executor, record->object, record->message,
                                                          (rclc_subscription_callback_t)record->callback, ON_NEW_DATA);
  return result == RCL_RET_OK ? tide_rclc_subscription_set_priority(record->object, priority) : result;
}

rcl_ret_t rclc_executor_add_subscription_sched(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                               rclc_subscription_callback_t callback,
                                               rclc_executor_handle_invocation_t invocation,
                                               const rclc_executor_sched_parameter_t *sparam) {
  if (!rcl_subscription_is_valid(subscription) || msg == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (invocation != ON_NEW_DATA) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  const sched_record_t record = {.executor = executor,
                                 .object = subscription,
                                 .message = msg,
                                 .callback = (void (*)(void))callback,
                                 .add = add_subscription};
  return add_sched(&record, sparam);
}

static rcl_ret_t add_timer(const sched_record_t *record, tide_priority_t priority) {
  const rcl_ret_t result = rclc_executor_add_timer(record->executor, record->object);
  return result == RCL_RET_OK ? tide_rclc_timer_set_priority(record->object, priority) : result;
}

static void its_own(void) {} /* a placeholder, because a timer got its callback in rclc_timer_init */

rcl_ret_t rclc_executor_add_timer_sched(rclc_executor_t *executor, rcl_timer_t *timer,
                                        const rclc_executor_sched_parameter_t *sparam) {
  if (timer == NULL || timer->impl == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const sched_record_t record = {.executor = executor, .object = timer, .callback = its_own, .add = add_timer};
  return add_sched(&record, sparam);
}

static rcl_ret_t add_service(const sched_record_t *record, tide_priority_t priority) {
  const rcl_ret_t result = rclc_executor_add_service(record->executor, record->object, record->message,
                                                     record->response, (rclc_service_callback_t)record->callback);
  return result == RCL_RET_OK ? tide_rclc_service_set_priority(record->object, priority) : result;
}

rcl_ret_t rclc_executor_add_service_sched(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                          void *response_msg, rclc_service_callback_t callback,
                                          const rclc_executor_sched_parameter_t *sparam) {
  if (service == NULL || service->impl == NULL || request_msg == NULL || response_msg == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  const sched_record_t record = {.executor = executor,
                                 .object = service,
                                 .message = request_msg,
                                 .response = response_msg,
                                 .callback = (void (*)(void))callback,
                                 .add = add_service};
  return add_sched(&record, sparam);
}

static rcl_ret_t add_guard_condition(const sched_record_t *record, tide_priority_t priority) {
  rcl_guard_condition_t *condition = record->object;
  const rcl_ret_t result =
      rclc_executor_add_guard_condition(record->executor, condition, (rclc_gc_callback_t)record->callback);
  if (result != RCL_RET_OK) return result;
  return tide_compat_result(
      tide_executor_set_priority(tide_rclc_executor_core(record->executor), &condition->impl->callback, priority));
}

rcl_ret_t rclc_executor_add_guard_condition_sched(rclc_executor_t *executor, rcl_guard_condition_t *gc,
                                                  rclc_gc_callback_t callback,
                                                  const rclc_executor_sched_parameter_t *sparam) {
  if (gc == NULL || gc->impl == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const sched_record_t record = {
      .executor = executor, .object = gc, .callback = (void (*)(void))callback, .add = add_guard_condition};
  return add_sched(&record, sparam);
}

/* Each lane gets its own level, so that no lane runs another lane's callback. */
static rcl_ret_t set_up(rclc_executor_t *executor, size_t first, size_t count) {
  for (size_t index = 0u; index < count; index++) record_lanes[first + index].least_level = (uint8_t)(index + 1u);
  rcl_ret_t result = count == 0u ? RCL_RET_OK : tide_rclc_executor_set_lanes(executor, &record_lanes[first], count);
  for (size_t index = 0u; index < count && result == RCL_RET_OK; index++) {
    const sched_record_t *record = &records[first + index];
    result = record->add(record, TIDE_PRIORITY(index + 1u, 0));
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
