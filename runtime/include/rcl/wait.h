/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCL__WAIT_H_
#define RCL__WAIT_H_

#include "rcl/client.h"
#include "rcl/guard_condition.h"
#include "rcl/service.h"
#include "rcl/subscription.h"
#include "rcl/timer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For programs that declare one. rcl_wait itself is not there: executors wait. */
typedef struct rcl_wait_set_s {
  const rcl_subscription_t **subscriptions;
  size_t size_of_subscriptions;
  const rcl_guard_condition_t **guard_conditions;
  size_t size_of_guard_conditions;
  const rcl_timer_t **timers;
  size_t size_of_timers;
  const rcl_client_t **clients;
  size_t size_of_clients;
  const rcl_service_t **services;
  size_t size_of_services;
  void *impl;
} rcl_wait_set_t;

#ifdef __cplusplus
}
#endif

#endif
