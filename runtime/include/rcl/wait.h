/* SPDX-License-Identifier: Apache-2.0 */
/* Wait sets, for entities that are in no executor. Only one thread at a time may use a wait set. Several threads may
 * wait with separate wait sets for separate entities, even while executors spin. */
#ifndef RCL__WAIT_H_
#define RCL__WAIT_H_

#include "rcl/client.h"
#include "rcl/event.h"
#include "rcl/guard_condition.h"
#include "rcl/service.h"
#include "rcl/subscription.h"
#include "rcl/timer.h"

TIDE_EXTERN_C_BEGIN

struct tide_wait_set;

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
  const rcl_event_t **events; /* never ready */
  size_t size_of_events;
  struct tide_wait_set *impl;
} rcl_wait_set_t;

rcl_wait_set_t rcl_get_zero_initialized_wait_set(void);
bool rcl_wait_set_is_valid(const rcl_wait_set_t *wait_set);
/* Takes one block from the allocator: a pointer for each entry. RCL_RET_BAD_ALLOC: the allocator refused. */
rcl_ret_t rcl_wait_set_init(rcl_wait_set_t *wait_set, size_t number_of_subscriptions, size_t number_of_guard_conditions,
                            size_t number_of_timers, size_t number_of_clients, size_t number_of_services,
                            size_t number_of_events, rcl_context_t *context, rcl_allocator_t allocator);
rcl_ret_t rcl_wait_set_fini(rcl_wait_set_t *wait_set);
/* Call it before adding entities again, because rcl_wait leaves only the ready entities in the set. */
rcl_ret_t rcl_wait_set_clear(rcl_wait_set_t *wait_set);
/* Change the capacities and clear all entries. A new block is allocated only if the present one is too small;
 * RCL_RET_BAD_ALLOC: nothing changed. */
rcl_ret_t rcl_wait_set_resize(rcl_wait_set_t *wait_set, size_t subscriptions_size, size_t guard_conditions_size,
                              size_t timers_size, size_t clients_size, size_t services_size, size_t events_size);
rcl_ret_t rcl_wait_set_get_allocator(const rcl_wait_set_t *wait_set, rcl_allocator_t *allocator);
/* *index (may be null): index of the entry. RCL_RET_WAIT_SET_FULL: no entry for this kind of entity is free. */
rcl_ret_t rcl_wait_set_add_subscription(rcl_wait_set_t *wait_set, const rcl_subscription_t *subscription,
                                        size_t *index);
rcl_ret_t rcl_wait_set_add_guard_condition(rcl_wait_set_t *wait_set, const rcl_guard_condition_t *guard_condition,
                                           size_t *index);
rcl_ret_t rcl_wait_set_add_timer(rcl_wait_set_t *wait_set, const rcl_timer_t *timer, size_t *index);
rcl_ret_t rcl_wait_set_add_client(rcl_wait_set_t *wait_set, const rcl_client_t *client, size_t *index);
rcl_ret_t rcl_wait_set_add_service(rcl_wait_set_t *wait_set, const rcl_service_t *service, size_t *index);
/* RCL_RET_ERROR: no event is ever valid. */
rcl_ret_t rcl_wait_set_add_event(rcl_wait_set_t *wait_set, const rcl_event_t *event, size_t *index);
/* Sleeps until an entity is ready or timeout_ns has passed (RCL_RET_TIMEOUT); 0: does not wait; negative: for ever. The
 * entries of entities that are not ready are then null. There are no spurious wake-ups. An entity stays ready until it
 * is taken or called (rcl_take, rcl_timer_call ...). A guard condition is ready once, however often it was triggered.
 * RCL_RET_SUBSCRIPTION_INVALID, RCL_RET_CLIENT_INVALID, RCL_RET_SERVICE_INVALID: an entity was finalised after it was
 * added. RCL_RET_WAIT_SET_EMPTY: a wait set of capacity 0. */
rcl_ret_t rcl_wait(rcl_wait_set_t *wait_set, int64_t timeout_ns);

TIDE_EXTERN_C_END

#endif
