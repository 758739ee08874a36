/* SPDX-License-Identifier: Apache-2.0 */
/* Wait sets, and QoS events, which this runtime does not have. */
#include <string.h>

#include "internal.h"
#include "rcl/event.h"
#include "rcl/wait.h"

struct tide_wait_set {
  rcl_allocator_t allocator;
  tide_support_t *support;
  size_t capacity;                                                           /* the entries follow in memory */
  size_t subscriptions, guard_conditions, timers, clients, services, events; /* number of entries in use */
};

rcl_wait_set_t rcl_get_zero_initialized_wait_set(void) {
  rcl_wait_set_t wait_set;
  memset(&wait_set, 0, sizeof wait_set);
  return wait_set;
}

bool rcl_wait_set_is_valid(const rcl_wait_set_t *wait_set) {
  return wait_set != NULL && wait_set->impl != NULL && wait_set->impl->support->in_use;
}

static void *places(void **next, size_t count) {
  void *first = count == 0 ? NULL : *next;
  *next = (char *)*next + count * sizeof(void *);
  return first;
}

/* Sets these capacities and clears all entries; if they grow, the entries move to new memory. `own` is the present
 * memory, or null. */
static rcl_ret_t set_sizes(rcl_wait_set_t *wait_set, struct tide_wait_set *own, const rcl_allocator_t *allocator,
                           tide_support_t *support, const size_t sizes[6]) {
  size_t count = 0;
  for (size_t kind = 0; kind < 6; kind++) count += sizes[kind];
  if (own == NULL || count > own->capacity) {
    struct tide_wait_set *larger = allocator->allocate(sizeof *own + count * sizeof(void *), allocator->state);
    if (larger == NULL) return RCL_RET_BAD_ALLOC;
    *larger = (struct tide_wait_set){.allocator = *allocator, .support = support, .capacity = count};
    if (own != NULL) larger->allocator.deallocate(own, larger->allocator.state);
    wait_set->impl = larger;
  }
  void *next = wait_set->impl + 1;
  wait_set->subscriptions = places(&next, wait_set->size_of_subscriptions = sizes[0]);
  wait_set->guard_conditions = places(&next, wait_set->size_of_guard_conditions = sizes[1]);
  wait_set->timers = places(&next, wait_set->size_of_timers = sizes[2]);
  wait_set->clients = places(&next, wait_set->size_of_clients = sizes[3]);
  wait_set->services = places(&next, wait_set->size_of_services = sizes[4]);
  wait_set->events = places(&next, wait_set->size_of_events = sizes[5]);
  return rcl_wait_set_clear(wait_set);
}

rcl_ret_t rcl_wait_set_init(rcl_wait_set_t *wait_set, size_t number_of_subscriptions, size_t number_of_guard_conditions,
                            size_t number_of_timers, size_t number_of_clients, size_t number_of_services,
                            size_t number_of_events, rcl_context_t *context, rcl_allocator_t allocator) {
  if (wait_set == NULL || allocator.allocate == NULL || allocator.deallocate == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (rcl_wait_set_is_valid(wait_set)) return tide_compat_result(TIDE_ERROR_EXISTS);
  if (!rcl_context_is_valid(context)) return RCL_RET_NOT_INIT;
  const size_t sizes[] = {number_of_subscriptions, number_of_guard_conditions, number_of_timers,
                          number_of_clients,       number_of_services,         number_of_events};
  return set_sizes(wait_set, NULL, &allocator, context->impl, sizes);
}

rcl_ret_t rcl_wait_set_resize(rcl_wait_set_t *wait_set, size_t subscriptions_size, size_t guard_conditions_size,
                              size_t timers_size, size_t clients_size, size_t services_size, size_t events_size) {
  if (wait_set == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_wait_set_is_valid(wait_set)) return RCL_RET_WAIT_SET_INVALID;
  struct tide_wait_set *own = wait_set->impl;
  const rcl_allocator_t allocator = own->allocator;
  const size_t sizes[] = {subscriptions_size, guard_conditions_size, timers_size,
                          clients_size,       services_size,         events_size};
  return set_sizes(wait_set, own, &allocator, own->support, sizes);
}

rcl_ret_t rcl_wait_set_get_allocator(const rcl_wait_set_t *wait_set, rcl_allocator_t *allocator) {
  if (wait_set == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_wait_set_is_valid(wait_set)) return RCL_RET_WAIT_SET_INVALID;
  if (allocator == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *allocator = wait_set->impl->allocator;
  return RCL_RET_OK;
}

rcl_ret_t rcl_wait_set_fini(rcl_wait_set_t *wait_set) {
  if (wait_set == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (wait_set->impl != NULL) {
    const rcl_allocator_t allocator = wait_set->impl->allocator;
    allocator.deallocate(wait_set->impl, allocator.state);
  }
  *wait_set = rcl_get_zero_initialized_wait_set();
  return RCL_RET_OK;
}

#define CLEAR(kind)                                                                 \
  do {                                                                              \
    for (size_t i = 0; i < wait_set->size_of_##kind; i++) wait_set->kind[i] = NULL; \
    wait_set->impl->kind = 0;                                                       \
  } while (0)

rcl_ret_t rcl_wait_set_clear(rcl_wait_set_t *wait_set) {
  if (wait_set == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_wait_set_is_valid(wait_set)) return RCL_RET_WAIT_SET_INVALID;
  CLEAR(subscriptions);
  CLEAR(guard_conditions);
  CLEAR(timers);
  CLEAR(clients);
  CLEAR(services);
  CLEAR(events);
  return RCL_RET_OK;
}

static rcl_ret_t next_place(const void *entity, size_t *used, size_t size, size_t *index) {
  if (entity == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (*used == size) return RCL_RET_WAIT_SET_FULL;
  if (index != NULL) *index = *used;
  (*used)++;
  return RCL_RET_OK;
}

#define ADD(kind, entity)                                                                     \
  do {                                                                                        \
    if (wait_set == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);                     \
    if (!rcl_wait_set_is_valid(wait_set)) return RCL_RET_WAIT_SET_INVALID;                    \
    struct tide_wait_set *own = wait_set->impl;                                               \
    const rcl_ret_t result = next_place(entity, &own->kind, wait_set->size_of_##kind, index); \
    if (result == RCL_RET_OK) wait_set->kind[own->kind - 1u] = (entity);                      \
    return result;                                                                            \
  } while (0)

rcl_ret_t rcl_wait_set_add_subscription(rcl_wait_set_t *wait_set, const rcl_subscription_t *subscription,
                                        size_t *index) {
  if (subscription != NULL && !rcl_subscription_is_valid(subscription)) return RCL_RET_SUBSCRIPTION_INVALID;
  ADD(subscriptions, subscription);
}

rcl_ret_t rcl_wait_set_add_guard_condition(rcl_wait_set_t *wait_set, const rcl_guard_condition_t *guard_condition,
                                           size_t *index) {
  ADD(guard_conditions, guard_condition);
}

rcl_ret_t rcl_wait_set_add_timer(rcl_wait_set_t *wait_set, const rcl_timer_t *timer, size_t *index) {
  ADD(timers, timer);
}

rcl_ret_t rcl_wait_set_add_client(rcl_wait_set_t *wait_set, const rcl_client_t *client, size_t *index) {
  if (client != NULL && !rcl_client_is_valid(client)) return RCL_RET_CLIENT_INVALID;
  ADD(clients, client);
}

rcl_ret_t rcl_wait_set_add_service(rcl_wait_set_t *wait_set, const rcl_service_t *service, size_t *index) {
  if (service != NULL && !rcl_service_is_valid(service)) return RCL_RET_SERVICE_INVALID;
  ADD(services, service);
}

rcl_ret_t rcl_wait_set_add_event(rcl_wait_set_t *wait_set, const rcl_event_t *event, size_t *index) {
  (void)index;
  if (wait_set == NULL || event == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_wait_set_is_valid(wait_set)) return RCL_RET_WAIT_SET_INVALID;
  return tide_compat_refusal(TIDE_ERROR_UNSUPPORTED, RCL_RET_ERROR);
}

/* ---- what is ready ---- */

static bool has_sample(const tide_reader_t *reader) {
  const uintptr_t critical = tide_compat_enter();
  const bool any = reader->count > 0 || reader->current.memory != NULL;
  tide_compat_leave(critical);
  return any;
}

/* An entity that has ended is never ready. */
static bool is_subscription_ready(const rcl_subscription_t *subscription) {
  const tide_subscription_handle_t *handle = subscription->impl;
  if (handle == NULL) return false;
  return has_sample(&handle->reader) || (handle->local != NULL && handle->local->waiting(handle) > 0);
}

static bool is_client_ready(const rcl_client_t *client) {
  return client->impl != NULL && has_sample(&client->impl->end.reader);
}

static bool is_service_ready(const rcl_service_t *service) {
  return service->impl != NULL && has_sample(&service->impl->end.reader);
}

static bool is_timer_ready(const rcl_timer_t *timer) {
  bool ready = false;
  return rcl_timer_is_ready(timer, &ready) == RCL_RET_OK && ready;
}

static bool is_guard_condition_ready(const rcl_guard_condition_t *guard) {
  return guard->impl != NULL && __atomic_load_n(&guard->impl->triggered_early, __ATOMIC_ACQUIRE);
}

#define ANY(kind, is_ready)                                                      \
  do {                                                                           \
    for (size_t i = 0; i < wait_set->size_of_##kind; i++) {                      \
      if (wait_set->kind[i] != NULL && is_ready(wait_set->kind[i])) return true; \
    }                                                                            \
  } while (0)

static bool is_any_ready(tide_support_t *support, void *context) {
  (void)support;
  const rcl_wait_set_t *wait_set = context;
  ANY(subscriptions, is_subscription_ready);
  ANY(guard_conditions, is_guard_condition_ready);
  ANY(timers, is_timer_ready);
  ANY(clients, is_client_ready);
  ANY(services, is_service_ready);
  return false;
}

static bool take_trigger(const rcl_guard_condition_t *guard) {
  return guard->impl != NULL && __atomic_exchange_n(&guard->impl->triggered_early, false, __ATOMIC_ACQ_REL);
}

#define LEAVE(kind, is_ready)                                                                  \
  do {                                                                                         \
    for (size_t i = 0; i < wait_set->size_of_##kind; i++) {                                    \
      if (wait_set->kind[i] != NULL && !is_ready(wait_set->kind[i])) wait_set->kind[i] = NULL; \
      any = any || wait_set->kind[i] != NULL;                                                  \
    }                                                                                          \
  } while (0)

static bool leave_ready_ones(rcl_wait_set_t *wait_set) {
  bool any = false;
  LEAVE(subscriptions, is_subscription_ready);
  LEAVE(guard_conditions, take_trigger);
  LEAVE(timers, is_timer_ready);
  LEAVE(clients, is_client_ready);
  LEAVE(services, is_service_ready);
  return any;
}

/* ---- waiting ---- */

/* As in rcl, a wait set counts as empty if its capacity is 0; one that has capacity but no entries waits for its
 * timeout. */
static bool is_empty(const rcl_wait_set_t *wait_set) {
  return wait_set->size_of_subscriptions + wait_set->size_of_guard_conditions + wait_set->size_of_timers +
             wait_set->size_of_clients + wait_set->size_of_services + wait_set->size_of_events ==
         0;
}

#define REQUIRE_VALID(kind, is_valid, result)                                         \
  do {                                                                                \
    for (size_t i = 0; i < wait_set->size_of_##kind; i++) {                           \
      if (wait_set->kind[i] != NULL && !is_valid(wait_set->kind[i])) return (result); \
    }                                                                                 \
  } while (0)

/* Finds an entity that has ended since it was added. */
static rcl_ret_t look_for_ended(const rcl_wait_set_t *wait_set) {
  REQUIRE_VALID(subscriptions, rcl_subscription_is_valid, RCL_RET_SUBSCRIPTION_INVALID);
  REQUIRE_VALID(clients, rcl_client_is_valid, RCL_RET_CLIENT_INVALID);
  REQUIRE_VALID(services, rcl_service_is_valid, RCL_RET_SERVICE_INVALID);
  return RCL_RET_OK;
}

static int64_t first_expiry(const rcl_wait_set_t *wait_set, int64_t deadline_ns, int64_t now_ns) {
  for (size_t i = 0; i < wait_set->size_of_timers; i++) {
    int64_t left_ns = 0;
    if (wait_set->timers[i] == NULL) continue;
    rcl_timer_t timer = *wait_set->timers[i];
    if (rcl_timer_get_time_until_next_call(&timer, &left_ns) != RCL_RET_OK) continue;
    if (left_ns < deadline_ns - now_ns) deadline_ns = now_ns + left_ns;
  }
  return deadline_ns;
}

rcl_ret_t rcl_wait(rcl_wait_set_t *wait_set, int64_t timeout_ns) {
  if (wait_set == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_wait_set_is_valid(wait_set)) return RCL_RET_WAIT_SET_INVALID;
  if (is_empty(wait_set)) return RCL_RET_WAIT_SET_EMPTY;
  const rcl_ret_t ended = look_for_ended(wait_set);
  if (ended != RCL_RET_OK) return ended;
  const int64_t now_ns = tide_compat_now_ns();
  const bool forever = timeout_ns < 0 || timeout_ns > TIDE_FOREVER - now_ns;
  const int64_t deadline_ns = first_expiry(wait_set, forever ? TIDE_FOREVER : now_ns + timeout_ns, now_ns);
  (void)tide_compat_wait(wait_set->impl->support, is_any_ready, wait_set, deadline_ns, true);
  return leave_ready_ones(wait_set) ? RCL_RET_OK : RCL_RET_TIMEOUT;
}

/* ---- events ---- */

rcl_event_t rcl_get_zero_initialized_event(void) {
  const rcl_event_t event = {NULL};
  return event;
}

static rcl_ret_t refuse(const rcl_event_t *event, bool is_of_something, int type, int last_type) {
  if (event == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_EVENT_INVALID);
  if (!is_of_something || type < 0 || type > last_type) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
}

rcl_ret_t rcl_publisher_event_init(rcl_event_t *event, const rcl_publisher_t *publisher,
                                   const rcl_publisher_event_type_t event_type) {
  return refuse(event, rcl_publisher_is_valid(publisher), (int)event_type, RCL_PUBLISHER_MATCHED);
}

rcl_ret_t rcl_subscription_event_init(rcl_event_t *event, const rcl_subscription_t *subscription,
                                      const rcl_subscription_event_type_t event_type) {
  return refuse(event, rcl_subscription_is_valid(subscription), (int)event_type, RCL_SUBSCRIPTION_MATCHED);
}

bool rcl_event_is_valid(const rcl_event_t *event) {
  (void)event;
  return false;
}

rcl_ret_t rcl_take_event(const rcl_event_t *event, void *event_info) {
  (void)event;
  (void)event_info;
  return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_EVENT_INVALID);
}

rcl_ret_t rcl_event_fini(rcl_event_t *event) {
  return event == NULL ? tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_EVENT_INVALID) : RCL_RET_OK;
}
