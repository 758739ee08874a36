/* SPDX-License-Identifier: Apache-2.0 */
/* The support of a program: one session over the static pools. */
#include <string.h>

#include "internal.h"
#include "rclc/init.h"
#include "rclc/sleep.h"
#include "rmw_microros/timing.h"
#include "tide/pool_actions.h"

#define ENTITY_TIMEOUT_MS 1000
#define GOODBYE_MS 300
#define LEAVE_MS 100 /* of executors; the callback that ends the support cannot leave before */
#define HEARTBEAT_DELAY_MAXIMUM_NS INT64_C(1000000000)

static uintptr_t enter(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_enter(platform);
}

static void leave(uintptr_t critical) {
  const tide_platform_t *platform = tide_port_platform();
  tide_platform_exit(platform, critical);
}

static void wake_waiters_locked(tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  for (tide_waiter_t *waiter = support->waiters; waiter != NULL; waiter = waiter->next) {
    platform->event_set(platform->context, &waiter->event);
  }
}

void tide_compat_wake_waiters(tide_support_t *support) {
  const uintptr_t critical = enter();
  wake_waiters_locked(support);
  leave(critical);
}

static void wake_executors_locked(const tide_support_t *support, void (*wake)(tide_executor_t *executor),
                                  const tide_executor_handle_t *except) {
  for (size_t i = 0; i < tide_pools.executor_count; i++) {
    tide_executor_handle_t *handle = &tide_pools.executors[i];
    if (handle->support == support && handle != except) wake(&handle->core);
  }
}

void tide_compat_wake_others(const tide_executor_handle_t *handle) {
  if (tide_pools.executor_count < 2) return;
  const uintptr_t critical = enter();
  wake_executors_locked(handle->support, tide_executor_wake_for_frames, handle);
  leave(critical);
}

bool tide_compat_begin_digest(tide_support_t *support) {
  if (!__atomic_exchange_n(&support->digesting, true, __ATOMIC_ACQ_REL)) return true;
  __atomic_store_n(&support->digest_refused, true, __ATOMIC_RELEASE);
  return !__atomic_exchange_n(&support->digesting, true, __ATOMIC_ACQ_REL);
}

void tide_compat_end_digest(tide_support_t *support) {
  __atomic_store_n(&support->digesting, false, __ATOMIC_RELEASE);
  if (__atomic_exchange_n(&support->digest_refused, false, __ATOMIC_ACQ_REL)) tide_compat_wake_waiters(support);
}

static bool has_frames(tide_support_t *support) {
  return tide_daemon_most_urgent(&support->session.daemon) != TIDE_PRIORITY_NONE;
}

static tide_session_state_t state_of(const tide_support_t *support) {
  const uintptr_t critical = enter();
  const tide_session_state_t state = support->session.state;
  leave(critical);
  return state;
}

bool tide_compat_is_ready(tide_support_t *support) { return state_of(support) == TIDE_SESSION_READY; }

/* No sample comes before all objects exist, so nothing is taken from an executor. */
static void digest_answers(tide_support_t *support) {
  while (state_of(support) == TIDE_SESSION_CREATING && has_frames(support) && tide_compat_begin_digest(support)) {
    tide_daemon_process_oldest(&support->session.daemon);
    tide_compat_end_digest(support);
  }
}

/* An executor has nothing to do with acknowledgments, and would be woken for each of them. */
static void on_activity(void *context) {
  tide_support_t *support = context;
  void (*retry)(tide_support_t *) = __atomic_load_n(&support->retry_responses, __ATOMIC_ACQUIRE);
  if (retry != NULL) retry(support);
  if (tide_compat_pump(support) == NULL) digest_answers(support);
  const bool polled = tide_compat_pump(support) != NULL; /* by the executor */
  const uintptr_t critical = enter();
  wake_executors_locked(support, polled ? tide_executor_wake : tide_executor_wake_for_frames, NULL);
  wake_waiters_locked(support);
  leave(critical);
}

/* Where the link has a context of its own, that one polls the session; else whoever executes or waits does. */
static void on_work(void *context) {
  tide_support_t *support = context;
  tide_port_wake_link(&support->session);
  if (tide_compat_pump(support) == NULL) return;
  const uintptr_t critical = enter();
  wake_executors_locked(support, tide_executor_wake, NULL);
  wake_waiters_locked(support);
  leave(critical);
}

/* Programs that set no key: boards that boot alike must still differ, so the clock is mixed with the address of a
 * variable; a program that has a serial number of its hardware uses rmw_uros_options_set_client_key. */
static uint32_t client_key(const tide_support_t *support, const tide_platform_t *platform) {
  if (support->options.client_key != 0) return support->options.client_key;
  uint64_t mixed = (uint64_t)tide_platform_now_ns(platform) ^ (uint64_t)(uintptr_t)&mixed;
  if (platform->wall_ns != NULL) mixed ^= (uint64_t)platform->wall_ns(platform->context);
  mixed *= 0x9E3779B97F4A7C15u;
  uint32_t key = (uint32_t)(mixed >> 32);
  return key == 0 ? 1 : key;
}

static void configure_transmitter(tide_transmitter_config_t *config, uint16_t mtu_bytes) {
  config->nodes = tide_pools.data_nodes;
  config->execution_storage = tide_pools.execution_storage;
  config->pending_storage = tide_pools.pending_storage;
  config->node_count = tide_pools.data_node_count;
  config->classes = tide_pools.classes;
  config->class_count = tide_pools.class_count;
  config->streams = tide_pools.output_streams;
  config->stream_count = tide_pools.stream_count;
  config->message_bytes = (uint32_t)mtu_bytes - 4u;
  config->window = tide_pools.window;
  config->pad_last = true;
  config->heartbeat_delay_ns = -1;
}

static void configure_receiver(tide_receiver_config_t *config, uint16_t mtu_bytes) {
  config->slots = tide_pools.slots;
  config->slot_count = tide_pools.slot_count;
  config->storage = tide_pools.slot_storage;
  config->slot_bytes = mtu_bytes;
  config->noted_storage = tide_pools.noted_storage;
  config->streams = tide_pools.input_streams;
  config->stream_count = tide_pools.stream_count;
  config->window = tide_pools.window;
  config->reassemblies = tide_pools.reassemblies;
  config->reassembly_count = tide_pools.reassembly_count;
  for (size_t i = 0; i < tide_pools.reassembly_count; i++) {
    tide_reassembly_t *reassembly = &tide_pools.reassemblies[i];
    memset(reassembly, 0, sizeof *reassembly);
    reassembly->bytes = tide_pools.reassembly_storage + i * tide_pools.reassembly_bytes;
    reassembly->capacity = tide_pools.reassembly_bytes;
  }
}

int tide_compat_open(tide_support_t *support, const rmw_init_options_t *options) {
  const tide_platform_t *platform = tide_port_platform();
  memset(support, 0, sizeof *support);
  support->options = *options;
  if (options->link_is_free && tide_compat_has_custom_transport()) support->options.link = TIDE_LINK_CUSTOM;
  support->creation_timeout_ms = ENTITY_TIMEOUT_MS;
  support->destroy_timeout_ms = ENTITY_TIMEOUT_MS;

  tide_session_config_t config;
  memset(&config, 0, sizeof config);
  config.daemon.platform = platform;
  const uint16_t mtu_bytes = options->mtu_bytes != 0 ? options->mtu_bytes : tide_pools.mtu_bytes;
  configure_transmitter(&config.daemon.transmitter, mtu_bytes);
  configure_receiver(&config.daemon.receiver, mtu_bytes);
  config.daemon.on_activity = on_activity;
  config.daemon.context = support;
  config.key = client_key(support, platform);
  config.session = 0x81;
  config.objects = tide_pools.objects;
  config.object_count = tide_pools.object_count;
  config.mtu = mtu_bytes;
  config.on_work = on_work;
  config.context = support;
  int status = tide_session_init(&support->session, &config);
  if (status != TIDE_OK) return status;
  support->in_use = true;

  tide_link_address_t address;
  memset(&address, 0, sizeof address);
  address.kind = (tide_link_kind_t)support->options.link;
  address.device = options->device;
  address.baud = options->baud;
  address.host = support->options.host;
  address.port = options->port;
  address.thread_priority = options->thread_priority;
  address.busy_poll_us = options->busy_poll_us;
  address.custom = tide_compat_custom_functions();
  address.storage = tide_pools.custom_storage;
  address.storage_bytes = tide_pools.custom_bytes;
  status = tide_port_open_link(&support->session, &address);
  if (status == TIDE_ERROR_UNSUPPORTED && address.kind == TIDE_LINK_CUSTOM) status = tide_compat_open_custom(support);
  if (status != TIDE_OK) support->in_use = false;
  return status;
}

void tide_compat_close(tide_support_t *support) {
  if (support->custom) {
    tide_compat_close_custom(support);
  } else {
    tide_port_close_link(&support->session);
  }
  support->in_use = false;
}

tide_support_t *tide_compat_support(void) { return tide_pools.support->in_use ? tide_pools.support : NULL; }

int64_t tide_compat_deadline(int64_t timeout_ms) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_now_ns(platform) + timeout_ms * 1000000;
}

static void add_waiter(tide_support_t *support, tide_waiter_t *waiter) {
  const tide_platform_t *platform = tide_port_platform();
  memset(waiter, 0, sizeof *waiter);
  platform->event_init(platform->context, &waiter->event);
  const uintptr_t critical = enter();
  waiter->next = support->waiters;
  support->waiters = waiter;
  leave(critical);
}

static void remove_waiter(tide_support_t *support, tide_waiter_t *waiter) {
  const uintptr_t critical = enter();
  tide_waiter_t **place = &support->waiters;
  while (*place != waiter) place = &(*place)->next;
  *place = waiter->next;
  leave(critical);
}

static void digest_frames(tide_support_t *support) {
  while (has_frames(support) && tide_compat_begin_digest(support)) {
    tide_daemon_process_oldest(&support->session.daemon);
    tide_compat_end_digest(support);
  }
}

static bool may_digest(tide_support_t *support, void *context) {
  (void)context;
  return tide_compat_begin_digest(support);
}

int tide_compat_wait_session(tide_support_t *support, tide_object_t *object, tide_session_state_t state,
                             int64_t deadline_ns) {
  int status = tide_compat_wait(support, may_digest, NULL, deadline_ns, false);
  if (status != TIDE_OK) return status;
  const tide_pump_t *pump = tide_compat_pump(support);
  status = object != NULL ? tide_session_wait_object(&support->session, object, deadline_ns, pump)
                          : tide_session_wait_state(&support->session, state, deadline_ns, pump);
  tide_compat_end_digest(support);
  return status;
}

int tide_compat_wait(tide_support_t *support, bool (*done)(tide_support_t *support, void *context), void *context,
                     int64_t deadline_ns, bool digest) {
  const tide_platform_t *platform = tide_port_platform();
  tide_waiter_t waiter;
  add_waiter(support, &waiter);
  int status = TIDE_OK;
  for (;;) {
    if (digest) digest_frames(support);
    if (done(support, context)) break;
    if (tide_platform_now_ns(platform) >= deadline_ns) {
      status = TIDE_ERROR_TIMEOUT;
      break;
    }
    const tide_pump_t *pump = tide_compat_pump(support);
    if (pump != NULL) {
      pump->run(pump->context, deadline_ns);
    } else {
      tide_daemon_wait(&support->session.daemon, &waiter.event, deadline_ns);
    }
  }
  remove_waiter(support, &waiter);
  return status;
}

rcl_context_t rcl_get_zero_initialized_context(void) {
  rcl_context_t context;
  memset(&context, 0, sizeof context);
  return context;
}

bool rcl_context_is_valid(const rcl_context_t *context) {
  return context != NULL && context->impl != NULL && context->impl->in_use;
}

rmw_context_t *rcl_context_get_rmw_context(rcl_context_t *context) {
  return rcl_context_is_valid(context) ? &context->rmw : NULL;
}

rcl_ret_t rcl_init(int argc, char const *const *argv, const rcl_init_options_t *options, rcl_context_t *context) {
  (void)argc;
  (void)argv;
  if (context == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_support_t *support = tide_pools.support;
  if (support->in_use) return tide_compat_result(TIDE_ERROR_EXISTS);
  rmw_init_options_t defaults = tide_compat_default_options();
  int status = tide_compat_open(support, options != NULL ? &options->rmw : &defaults);
  if (status != TIDE_OK) return tide_compat_result(status);
  tide_session_open(&support->session);
  status = tide_compat_wait_session(support, NULL, TIDE_SESSION_READY,
                                    tide_compat_deadline((int64_t)tide_pools.connect_timeout_ms));
  if (status != TIDE_OK) {
    tide_compat_close(support);
    return tide_compat_result(status == TIDE_ERROR_TIMEOUT ? TIDE_ERROR_DISCONNECTED : status);
  }
  context->impl = support;
  context->rmw.impl = support;
  return RCL_RET_OK;
}

/* What the program has not finished ends with the support: its places are free, its structures are invalid. */
static void release_places(void) {
  const uintptr_t critical = enter();
  for (size_t i = 0; i < tide_pools.executor_count; i++) tide_pools.executors[i].support = NULL;
  leave(critical);
  for (size_t i = 0; i < tide_pools.node_count; i++) tide_pools.nodes[i].support = NULL;
  for (size_t i = 0; i < tide_pools.publisher_count; i++) tide_pools.publishers[i].support = NULL;
  for (size_t i = 0; i < tide_pools.subscription_count; i++) tide_pools.subscriptions[i].support = NULL;
  for (size_t i = 0; i < tide_pools.service_count; i++) tide_pools.services[i].end.support = NULL;
  for (size_t i = 0; i < tide_pools.client_count; i++) tide_pools.clients[i].end.support = NULL;
  if (tide_pools.actions != NULL) tide_pools.actions->release();
  for (size_t i = 0; i < tide_pools.timer_count; i++) tide_pools.timers[i].support = NULL;
  for (size_t i = 0; i < tide_pools.guard_count; i++) tide_pools.guards[i].support = NULL;
  for (size_t i = 0; i < tide_pools.group_count; i++) tide_pools.groups[i].in_use = false;
  for (size_t i = 0; i < tide_pools.local_topic_count; i++) tide_pools.local_topics[i].open = false;
  for (size_t i = 0; i < tide_pools.local_end_count; i++) tide_pools.local_ends[i].topic = NULL;
  if (tide_pools.local_pool != NULL) tide_pools.local_pool->platform = NULL;
}

/* Spins of other threads return, behind the callback that runs. */
static void stop_executors(void) {
  for (size_t i = 0; i < tide_pools.executor_count; i++)
    if (tide_pools.executors[i].support != NULL) tide_executor_stop(&tide_pools.executors[i].core);
}

static bool is_spinning(void) {
  for (size_t i = 0; i < tide_pools.executor_count; i++) {
    const tide_executor_config_t *config = &tide_pools.executors[i].core.config;
    for (size_t lane = 0; tide_pools.executors[i].support != NULL && lane < config->lane_count; lane++)
      if (__atomic_load_n(&config->lanes[lane].busy, __ATOMIC_ACQUIRE)) return true;
  }
  return false;
}

static bool is_idle(tide_support_t *support, void *context) {
  (void)context;
  return !tide_compat_is_ready(support) || tide_session_is_idle(&support->session, 0);
}

rcl_ret_t rcl_shutdown(rcl_context_t *context) {
  if (context == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(context)) return RCL_RET_ALREADY_INIT;
  tide_support_t *support = context->impl;
  stop_executors();
  tide_compat_wait(support, is_idle, NULL, tide_compat_deadline(support->destroy_timeout_ms), false);
  tide_session_close(&support->session);
  tide_compat_wait_session(support, NULL, TIDE_SESSION_IDLE, tide_compat_deadline(GOODBYE_MS));
  for (int waited_ms = 0; is_spinning() && waited_ms < LEAVE_MS; waited_ms++) rclc_sleep_ms(1);
  tide_compat_close(support);
  release_places();
  *context = rcl_get_zero_initialized_context();
  return RCL_RET_OK;
}

rcl_ret_t rclc_support_init_with_options(rclc_support_t *support, int argc, char const *const *argv,
                                         rcl_init_options_t *init_options, rcl_allocator_t *allocator) {
  if (support == NULL || allocator == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  support->context = rcl_get_zero_initialized_context();
  support->allocator = allocator;
  support->clock.type = RCL_STEADY_TIME;
  return rcl_init(argc, argv, init_options, &support->context);
}

rcl_ret_t rclc_support_init(rclc_support_t *support, int argc, char const *const *argv, rcl_allocator_t *allocator) {
  return rclc_support_init_with_options(support, argc, argv, NULL, allocator);
}

rcl_ret_t rclc_support_fini(rclc_support_t *support) {
  if (support == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return rcl_shutdown(&support->context);
}

rcl_ret_t tide_rclc_support_set_send(rclc_support_t *support, tide_send_t send) {
  if (support == NULL || send > TIDE_SEND_STOCK_BLOCKING) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (!rcl_context_is_valid(&support->context)) return tide_compat_result(TIDE_ERROR_STATE);
  support->context.impl->send = send;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_support_set_heartbeat_delay(rclc_support_t *support, int64_t delay_ns) {
  if (delay_ns > HEARTBEAT_DELAY_MAXIMUM_NS) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_session_t *session = tide_rclc_support_session(support);
  if (session == NULL) return tide_compat_result(TIDE_ERROR_STATE);
  return tide_compat_result(tide_daemon_set_heartbeat_delay(&session->daemon, delay_ns));
}

rcl_ret_t tide_rclc_support_set_packing(rclc_support_t *support, bool pack) {
  tide_session_t *session = tide_rclc_support_session(support);
  if (session == NULL) return tide_compat_result(TIDE_ERROR_STATE);
  return tide_compat_result(tide_daemon_set_packing(&session->daemon, pack));
}

rcl_ret_t tide_rclc_support_hold_level(rclc_support_t *support, uint8_t level, bool hold) {
  tide_session_t *session = tide_rclc_support_session(support);
  if (session == NULL) return tide_compat_result(TIDE_ERROR_STATE);
  return tide_compat_result(tide_daemon_hold_level(&session->daemon, level, hold));
}

tide_session_t *tide_rclc_support_session(rclc_support_t *support) {
  return support != NULL && rcl_context_is_valid(&support->context) ? &support->context.impl->session : NULL;
}

rmw_ret_t rmw_uros_set_context_entity_creation_session_timeout(rmw_context_t *context, int session_timeout) {
  if (context == NULL || context->impl == NULL || session_timeout < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  ((tide_support_t *)context->impl)->creation_timeout_ms = session_timeout;
  return RMW_RET_OK;
}

rmw_ret_t rmw_uros_set_context_entity_destroy_session_timeout(rmw_context_t *context, int session_timeout) {
  if (context == NULL || context->impl == NULL || session_timeout < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  ((tide_support_t *)context->impl)->destroy_timeout_ms = session_timeout;
  return RMW_RET_OK;
}
