/* SPDX-License-Identifier: Apache-2.0 */
/* A program's support: one session over the static pools. Also the link to the agent, set-up and end, and waiting. */
#include <string.h>

#include "internal.h"
#include "rcl/subscription.h"
#include "rclc/init.h"
#include "rclc/sleep.h"
#include "rmw_microros/custom_transport.h"
#include "rmw_microros/rmw_microros.h"
#include "rmw_microros/timing.h"
#include "tide/link_custom.h"
#include "tide/pool_actions.h"
#include "tide/port.h"
#include "tide/xrce.h"

/* ---- how the agent is reached ---- */

#define DEFAULT_AGENT_HOST "127.0.0.1"
#define DEFAULT_AGENT_PORT 8888
#define DEFAULT_BAUD 115200
#define MTU_BYTES_LEAST 68 /* as for a session */

static rmw_init_options_t default_options(void) {
  rmw_init_options_t options;
  memset(&options, 0, sizeof options);
  options.link = TIDE_LINK_UDP;
  options.link_is_free = true;
  memcpy(options.host, DEFAULT_AGENT_HOST, sizeof DEFAULT_AGENT_HOST);
  options.port = DEFAULT_AGENT_PORT;
  options.baud = DEFAULT_BAUD;
  return options;
}

rmw_init_options_t rmw_get_zero_initialized_init_options(void) {
  rmw_init_options_t options;
  memset(&options, 0, sizeof options);
  return options;
}

rmw_ret_t rmw_init_options_copy(const rmw_init_options_t *src, rmw_init_options_t *dst) {
  if (src == NULL || dst == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RMW_RET_INVALID_ARGUMENT);
  *dst = *src;
  return RMW_RET_OK;
}

rmw_ret_t rmw_init_options_init(rmw_init_options_t *init_options, rcutils_allocator_t allocator) {
  (void)allocator;
  const rmw_init_options_t options = default_options();
  return rmw_init_options_copy(&options, init_options);
}

rmw_ret_t rmw_init_options_fini(rmw_init_options_t *init_options) {
  const rmw_init_options_t options = rmw_get_zero_initialized_init_options();
  return rmw_init_options_copy(&options, init_options);
}

rcl_init_options_t rcl_get_zero_initialized_init_options(void) {
  rcl_init_options_t options;
  memset(&options, 0, sizeof options);
  return options;
}

rcl_ret_t rcl_init_options_init(rcl_init_options_t *init_options, rcl_allocator_t allocator) {
  (void)allocator;
  if (init_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (init_options->initialized) return tide_compat_result(TIDE_ERROR_EXISTS);
  init_options->rmw = default_options();
  init_options->initialized = true;
  return RCL_RET_OK;
}

rcl_ret_t rcl_init_options_fini(rcl_init_options_t *init_options) {
  if (init_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *init_options = rcl_get_zero_initialized_init_options();
  return RCL_RET_OK;
}

rcl_ret_t rcl_init_options_get_domain_id(const rcl_init_options_t *init_options, size_t *domain_id) {
  if (init_options == NULL || domain_id == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *domain_id = init_options->rmw.domain_id;
  return RCL_RET_OK;
}

rcl_ret_t rcl_init_options_set_domain_id(rcl_init_options_t *init_options, size_t domain_id) {
  const bool is_agents = domain_id == 255; /* as in the stock client: the agent's own domain */
  if (init_options == NULL || (domain_id > 232 && !is_agents)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  init_options->rmw.domain_id = domain_id;
  return RCL_RET_OK;
}

rmw_init_options_t *rcl_init_options_get_rmw_init_options(rcl_init_options_t *init_options) {
  return init_options == NULL ? NULL : &init_options->rmw;
}

static int parse_port(const char *text, uint16_t *port) {
  uint32_t value = 0;
  if (*text == '\0') return TIDE_ERROR_ARGUMENT;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return TIDE_ERROR_ARGUMENT;
    value = value * 10u + (uint32_t)(*text - '0');
    if (value > 65535u) return TIDE_ERROR_ARGUMENT;
  }
  *port = (uint16_t)value;
  return value == 0 ? TIDE_ERROR_ARGUMENT : TIDE_OK;
}

rmw_ret_t rmw_uros_options_set_udp_address(const char *ip, const char *port, rmw_init_options_t *rmw_options) {
  if (ip == NULL || port == NULL || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (strlen(ip) >= sizeof rmw_options->host) return tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  int status = parse_port(port, &rmw_options->port);
  if (status != TIDE_OK) return tide_compat_result(status);
  memcpy(rmw_options->host, ip, strlen(ip) + 1);
  rmw_options->link = TIDE_LINK_UDP;
  rmw_options->link_is_free = false;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_serial(rmw_init_options_t *options, const char *device, uint32_t baud) {
  if (options == NULL || device == NULL || baud == 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->link = TIDE_LINK_SERIAL;
  options->link_is_free = false;
  options->device = device;
  options->baud = baud;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_link_priority(rmw_init_options_t *options, int priority) {
  if (options == NULL || priority < TIDE_LINK_PRIORITY_INHERIT) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->thread_priority = priority;
  return RMW_RET_OK;
}

rmw_ret_t tide_rclc_options_set_mtu(rmw_init_options_t *options, size_t bytes) {
  const bool fits = bytes >= MTU_BYTES_LEAST && bytes <= tide_pools.mtu_bytes;
  if (options == NULL || !fits) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  options->mtu_bytes = (uint16_t)bytes;
  return RMW_RET_OK;
}

rmw_ret_t rmw_uros_options_set_serial_device(const char *dev, rmw_init_options_t *rmw_options) {
  return tide_rclc_options_set_serial(rmw_options, dev, DEFAULT_BAUD);
}

rmw_ret_t rmw_uros_options_set_client_key(uint32_t client_key, rmw_init_options_t *rmw_options) {
  if (client_key == 0 || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rmw_options->client_key = client_key;
  return RMW_RET_OK;
}

rmw_ret_t rmw_uros_init_options(int argc, const char *const argv[], rmw_init_options_t *rmw_options) {
  if (argv == NULL || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (argc == 3) return rmw_uros_options_set_udp_address(argv[1], argv[2], rmw_options);
  if (argc == 2) return rmw_uros_options_set_serial_device(argv[1], rmw_options);
  return tide_compat_result(TIDE_ERROR_ARGUMENT);
}

rmw_ret_t rmw_uros_options_set_custom_transport(bool framing, void *args, open_custom_func open_cb,
                                                close_custom_func close_cb, write_custom_func write_cb,
                                                read_custom_func read_cb, rmw_init_options_t *rmw_options) {
  if (rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rmw_ret_t result = rmw_uros_set_custom_transport(framing, args, open_cb, close_cb, write_cb, read_cb);
  if (result != RMW_RET_OK) return result;
  rmw_options->link = TIDE_LINK_CUSTOM;
  rmw_options->link_is_free = false;
  return RMW_RET_OK;
}

rcl_ret_t rcl_init_options_copy(const rcl_init_options_t *src, rcl_init_options_t *dst) {
  if (src == NULL || !src->initialized || dst == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (dst->initialized) return tide_compat_result(TIDE_ERROR_EXISTS);
  *dst = *src;
  return RCL_RET_OK;
}

rcl_ret_t rcl_context_fini(rcl_context_t *context) {
  return context == NULL || rcl_context_is_valid(context) ? tide_compat_result(TIDE_ERROR_ARGUMENT) : RCL_RET_OK;
}

rcl_ret_t rcl_context_get_domain_id(rcl_context_t *context, size_t *domain_id) {
  if (!rcl_context_is_valid(context) || domain_id == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *domain_id = context->impl->options.domain_id;
  return RCL_RET_OK;
}

#define DISCOVERY_MS 1000 /* duration of one query, as in the stock client */

/* Finds an agent in this network. */
rmw_ret_t rmw_uros_discover_agent(rmw_init_options_t *rmw_options) {
  if (rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
#if TIDE_SOCKETS
  const int status =
      tide_port_discover_agent(TIDE_XRCE_DISCOVERY_PORT, DISCOVERY_MS, rmw_options->host, &rmw_options->port);
  if (status != TIDE_OK) return tide_compat_result(status);
  rmw_options->link = TIDE_LINK_UDP;
  rmw_options->link_is_free = false;
  return RMW_RET_OK;
#else
  return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
#endif
}

/* ---- a custom transport: the program's own functions, run in a context of the port or by the waiting caller ---- */

/* The executor sleeps at most this long before it checks the transport for received bytes again. */
#define POLL_NS 1000000

static uxrCustomTransport transport;
static tide_custom_link_t custom_link;
static tide_pump_t custom_pump = {tide_custom_link_run, &custom_link};

rmw_ret_t rmw_uros_set_custom_transport(bool framing, void *args, open_custom_func open_cb, close_custom_func close_cb,
                                        write_custom_func write_cb, read_custom_func read_cb) {
  if (open_cb == NULL || close_cb == NULL || write_cb == NULL || read_cb == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  transport.framing = framing;
  transport.args = args;
  transport.open = open_cb;
  transport.close = close_cb;
  transport.write = write_cb;
  transport.read = read_cb;
  transport.wake = NULL;
  return RMW_RET_OK;
}

static bool has_custom_transport(void) { return !TIDE_LEAN && transport.open != NULL; }

static bool open_transport(void *context) { return transport.open(context); }

static bool close_transport(void *context) { return transport.close(context); }

static size_t write_transport(void *context, const uint8_t *bytes, size_t count, uint8_t *error) {
  return transport.write(context, bytes, count, error);
}

static size_t read_transport(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *error) {
  return transport.read(context, bytes, count, timeout_ms, error);
}

static bool wake_transport(void *context) {
  if (transport.wake == NULL) return false;
  transport.wake(context);
  return true;
}

static const tide_custom_transport_t *custom_functions(void) {
  static tide_custom_transport_t functions = {&transport,      false,          open_transport, close_transport,
                                              write_transport, read_transport, wake_transport};
  if (!has_custom_transport()) return NULL;
  functions.framed = transport.framing;
  return &functions;
}

static int open_custom(tide_support_t *support) {
  if (TIDE_LEAN) return TIDE_ERROR_UNSUPPORTED;
  if (!has_custom_transport()) return TIDE_ERROR_LINK;
  if (tide_pools.custom_storage == NULL) return TIDE_ERROR_UNSUPPORTED;
  tide_custom_transport_t functions = *custom_functions();
  functions.wake = NULL; /* the waiting caller runs the link, so no other context could end its read */
  int status = tide_custom_link_open(&custom_link, &support->session, &functions, tide_pools.custom_storage,
                                     tide_pools.custom_bytes);
  support->custom = status == TIDE_OK;
  return status;
}

static void close_custom(tide_support_t *support) {
  if (!TIDE_LEAN && support->custom) tide_custom_link_close(&custom_link);
  support->custom = false;
}

static const tide_pump_t *pump_of(tide_support_t *support) {
  return !TIDE_LEAN && support->custom ? &custom_pump : tide_port_pump(&support->session);
}

int64_t tide_compat_poll(tide_support_t *support) {
  if (TIDE_SINGLE_CONTEXT) tide_port_serve_link(&support->session);
  if (TIDE_LEAN || !support->custom)
    return tide_port_pump(&support->session) == NULL ? TIDE_FOREVER : tide_session_poll(&support->session);
  int64_t now_ns = tide_compat_now_ns();
  tide_custom_link_run(&custom_link, now_ns);
  return now_ns + POLL_NS;
}

/* ---- waiting, and being woken ---- */

#define ENTITY_TIMEOUT_MS 1000
#define GOODBYE_MS 300
#define LEAVE_MS 100 /* time for executors to stop; an executor whose callback ends the support cannot */
#define HEARTBEAT_DELAY_MAXIMUM_NS INT64_C(1000000000)

static void wake_waiters_locked(tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  for (tide_waiter_t *waiter = support->waiters; waiter != NULL; waiter = waiter->next) {
    platform->event_set(platform->context, &waiter->event);
  }
}

void tide_compat_wake_waiters(tide_support_t *support) {
  const uintptr_t critical = tide_compat_enter();
  wake_waiters_locked(support);
  tide_compat_leave(critical);
}

static void wake_executors_locked(const tide_support_t *support, void (*wake)(tide_executor_t *executor),
                                  const tide_executor_handle_t *except) {
  for (size_t i = 0; i < tide_pools.executor_count; i++) {
    tide_executor_handle_t *handle = &tide_pools.executors[i];
    if (handle->support == support && handle != except) wake(&handle->core);
  }
}

void tide_compat_wake_others(const tide_executor_handle_t *handle) {
  const tide_support_t *support = __atomic_load_n(&handle->support, __ATOMIC_RELAXED);
  if (tide_pools.executor_count < 2 || support == NULL ||
      tide_queue_looks_empty(&support->session.daemon.receiver.noted)) {
    return;
  }
  const uintptr_t critical = tide_compat_enter();
  wake_executors_locked(support, tide_executor_wake_for_frames, handle);
  tide_compat_leave(critical);
}

static bool begin_digest(tide_support_t *support) {
  if (!__atomic_exchange_n(&support->digesting, true, __ATOMIC_ACQ_REL)) return true;
  __atomic_store_n(&support->digest_refused, true, __ATOMIC_RELEASE);
  return !__atomic_exchange_n(&support->digesting, true, __ATOMIC_ACQ_REL);
}

static void end_digest(tide_support_t *support) {
  __atomic_store_n(&support->digesting, false, __ATOMIC_RELEASE);
  if (__atomic_exchange_n(&support->digest_refused, false, __ATOMIC_ACQ_REL)) tide_compat_wake_waiters(support);
}

static bool has_frames(tide_support_t *support) {
  return tide_daemon_most_urgent(&support->session.daemon) != TIDE_PRIORITY_NONE;
}

static tide_session_state_t state_of(const tide_support_t *support) {
  return __atomic_load_n(&support->session.state, __ATOMIC_ACQUIRE);
}

bool tide_compat_is_ready(tide_support_t *support) { return state_of(support) == TIDE_SESSION_READY; }

/* answers_only: processes frames only until all objects exist. Later frames are left to the executors, so that no
 * executor misses a sample. */
static void digest_frames(tide_support_t *support, bool answers_only) {
  while ((!answers_only || state_of(support) == TIDE_SESSION_CREATING) && has_frames(support) &&
         begin_digest(support)) {
    tide_daemon_process_oldest(&support->session.daemon);
    end_digest(support);
  }
}

static void wake_all(tide_support_t *support, void (*wake)(tide_executor_t *executor)) {
  const uintptr_t critical = tide_compat_enter();
  wake_executors_locked(support, wake, NULL);
  wake_waiters_locked(support);
  tide_compat_leave(critical);
}

/* True if nobody waits for what on_activity reports. This is usual if the report is only that a message was sent or
 * acknowledged. Read outside the critical section: a waiting thread registers before it checks its condition, so it
 * either sees the change or is found here. Executors do not wait for acknowledgments, so an acknowledgment does not
 * wake them. */
static bool is_for_nobody(tide_support_t *support) {
  return __atomic_load_n(&support->retry_responses, __ATOMIC_ACQUIRE) == NULL &&
         __atomic_load_n(&support->waiters, __ATOMIC_RELAXED) == NULL &&
         tide_queue_looks_empty(&support->session.daemon.receiver.noted) &&
         state_of(support) != TIDE_SESSION_CREATING && pump_of(support) == NULL;
}

__attribute__((noinline)) static void report_activity(tide_support_t *support) {
  void (*retry)(tide_support_t *) = __atomic_load_n(&support->retry_responses, __ATOMIC_ACQUIRE);
  if (retry != NULL) retry(support);
  const bool polled = pump_of(support) != NULL; /* the executor polls the link */
  if (!polled) digest_frames(support, true);
  wake_all(support, polled ? tide_executor_wake : tide_executor_wake_for_frames);
}

static void on_activity(void *context) {
  if (!is_for_nobody(context)) report_activity(context);
}

/* A link with its own context polls the session; without one, the executor or the waiting caller does. */
static void on_work(void *context) {
  tide_support_t *support = context;
  tide_port_wake_link(&support->session);
  if (pump_of(support) != NULL) wake_all(support, tide_executor_wake);
}

/* The key of a program that sets none. Boards that boot identically must still get different keys, so the clock is
 * mixed with the address of a variable. If the hardware has a serial number, use rmw_uros_options_set_client_key. */
static uint32_t client_key(const tide_support_t *support, const tide_platform_t *platform) {
  if (support->options.client_key != 0) return support->options.client_key;
  uint64_t mixed = (uint64_t)tide_compat_now_ns() ^ (uint64_t)(uintptr_t)&mixed;
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

static int open_support(tide_support_t *support, const rmw_init_options_t *options) {
  const tide_platform_t *platform = tide_port_platform();
  memset(support, 0, sizeof *support);
  support->options = *options;
  if (options->link_is_free && has_custom_transport()) support->options.link = TIDE_LINK_CUSTOM;
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
  address.custom = custom_functions();
  address.storage = tide_pools.custom_storage;
  address.storage_bytes = tide_pools.custom_bytes;
  status = tide_port_open_link(&support->session, &address);
  if (status == TIDE_ERROR_UNSUPPORTED && address.kind == TIDE_LINK_CUSTOM) status = open_custom(support);
  if (status != TIDE_OK) support->in_use = false;
  return status;
}

static void close_support(tide_support_t *support) {
  if (support->custom) {
    close_custom(support);
  } else {
    tide_port_close_link(&support->session);
  }
  support->in_use = false;
}

static tide_support_t *current_support(void) { return tide_pools.support->in_use ? tide_pools.support : NULL; }

int64_t tide_compat_deadline(int64_t timeout_ms) { return tide_compat_now_ns() + timeout_ms * 1000000; }

static bool may_digest(tide_support_t *support, void *context) {
  (void)context;
  return begin_digest(support);
}

int tide_compat_wait_session(tide_support_t *support, tide_object_t *object, tide_session_state_t state,
                             int64_t deadline_ns) {
  int status = tide_compat_wait(support, may_digest, NULL, deadline_ns, false);
  if (status != TIDE_OK) return status;
  const tide_pump_t *pump = pump_of(support);
  status = object != NULL ? tide_session_wait_object(&support->session, object, deadline_ns, pump)
                          : tide_session_wait_state(&support->session, state, deadline_ns, pump);
  end_digest(support);
  return status;
}

int tide_compat_wait(tide_support_t *support, bool (*done)(tide_support_t *support, void *context), void *context,
                     int64_t deadline_ns, bool digest) {
  const tide_platform_t *platform = tide_port_platform();
  tide_waiter_t waiter;
  memset(&waiter, 0, sizeof waiter);
  platform->event_init(platform->context, &waiter.event);
  uintptr_t critical = tide_compat_enter();
  waiter.next = support->waiters;
  __atomic_store_n(&support->waiters, &waiter, __ATOMIC_RELAXED);
  tide_compat_leave(critical);
  int status = TIDE_OK;
  for (;;) {
    if (digest) digest_frames(support, false);
    if (done(support, context)) break;
    if (tide_compat_now_ns() >= deadline_ns) {
      status = TIDE_ERROR_TIMEOUT;
      break;
    }
    const tide_pump_t *pump = pump_of(support);
    if (pump != NULL) {
      pump->run(pump->context, deadline_ns);
    } else {
      tide_daemon_wait(&support->session.daemon, &waiter.event, deadline_ns, TIDE_WAIT_ANSWER);
    }
  }
  critical = tide_compat_enter();
  tide_waiter_t **place = &support->waiters;
  while (*place != &waiter) place = &(*place)->next;
  __atomic_store_n(place, waiter.next, __ATOMIC_RELAXED);
  tide_compat_leave(critical);
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
  rmw_init_options_t defaults = default_options();
  int status = open_support(support, options != NULL ? &options->rmw : &defaults);
  if (status != TIDE_OK) return tide_compat_result(status);
  tide_session_open(&support->session);
  status = tide_compat_wait_session(support, NULL, TIDE_SESSION_READY,
                                    tide_compat_deadline((int64_t)tide_pools.connect_timeout_ms));
  if (status != TIDE_OK) {
    close_support(support);
    return tide_compat_result(status == TIDE_ERROR_TIMEOUT ? TIDE_ERROR_DISCONNECTED : status);
  }
  context->impl = support;
  context->rmw.impl = support;
  return RCL_RET_OK;
}

/* Objects that the program has not finished end with the support: their entries are freed, and the program's structures
 * become invalid. */
static void release_places(void) {
  const uintptr_t critical = tide_compat_enter();
  for (size_t i = 0; i < tide_pools.executor_count; i++) tide_pools.executors[i].support = NULL;
  tide_compat_leave(critical);
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
  for (size_t i = 0; i < tide_pools.executor_count; i++) { /* spins of other threads return after the running
                                                              callback */
    if (tide_pools.executors[i].support != NULL) tide_executor_stop(&tide_pools.executors[i].core);
  }
  tide_compat_wait(support, is_idle, NULL, tide_compat_deadline(support->destroy_timeout_ms), false);
  tide_session_close(&support->session);
  tide_compat_wait_session(support, NULL, TIDE_SESSION_IDLE, tide_compat_deadline(GOODBYE_MS));
  for (int waited_ms = 0; is_spinning() && waited_ms < LEAVE_MS; waited_ms++) rclc_sleep_ms(1);
  close_support(support);
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

/* ---- pings and the agent's time ---- */

#define SYNC_ATTEMPTS 4
#define SYNC_SLICE_LEAST_MS 50

/* Number of answers to pings, both within and outside a session. The answers are handled where they are received, so
 * waiting for them takes no frame from an executor. */
static uint32_t answers(tide_support_t *support) {
  const uintptr_t critical = tide_compat_enter();
  const uint32_t count = support->session.ping_answers;
  tide_compat_leave(critical);
  return count;
}

/* Another thread may already have sent the next ping, so the number of answers is compared instead of a flag. */
static bool is_pinged(tide_support_t *support, void *context) {
  const uint32_t *before = context;
  return answers(support) != *before;
}

static int ping(tide_support_t *support, int timeout_ms, uint8_t attempts) {
  int status = TIDE_ERROR_TIMEOUT;
  for (uint8_t i = 0; i < attempts && status != TIDE_OK; i++) {
    uint32_t before = answers(support);
    status = tide_session_ping(&support->session);
    if (status == TIDE_OK) {
      status = tide_compat_wait(support, is_pinged, &before, tide_compat_deadline(timeout_ms), false);
    }
  }
  return status;
}

static tide_time_sync_t time_sync_of(tide_support_t *support) {
  const uintptr_t critical = tide_compat_enter();
  const tide_time_sync_t sync = support->session.time_sync;
  tide_compat_leave(critical);
  return sync;
}

static bool is_synchronised(tide_support_t *support, void *context) {
  const uint32_t *before = context;
  return time_sync_of(support).exchanges != *before;
}

/* A lost exchange is repeated until the timeout has passed. */
static int synchronise(tide_support_t *support, int timeout_ms) {
  const int64_t deadline_ns = tide_compat_deadline(timeout_ms);
  const int64_t slice_ms =
      timeout_ms < SYNC_ATTEMPTS * SYNC_SLICE_LEAST_MS ? SYNC_SLICE_LEAST_MS : timeout_ms / SYNC_ATTEMPTS;
  uint32_t before = time_sync_of(support).exchanges;
  int status = TIDE_ERROR_TIMEOUT;
  do {
    const int64_t slice_ns = tide_compat_deadline(slice_ms);
    status = tide_session_synchronise(&support->session);
    if (status != TIDE_OK) return status;
    status =
        tide_compat_wait(support, is_synchronised, &before, slice_ns < deadline_ns ? slice_ns : deadline_ns, false);
  } while (status == TIDE_ERROR_TIMEOUT && tide_compat_now_ns() < deadline_ns);
  return status;
}

rmw_ret_t rmw_uros_ping_agent_options(const int timeout_ms, const uint8_t attempts, rmw_init_options_t *rmw_options) {
  if (timeout_ms < 0 || attempts == 0 || rmw_options == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_support_t *support = current_support();
  int status = TIDE_OK;
  if (support != NULL) {
    status = ping(support, timeout_ms, attempts);
  } else {
    support = tide_pools.support;
    status = open_support(support, rmw_options);
    if (status == TIDE_OK) {
      status = ping(support, timeout_ms, attempts);
      close_support(support);
    }
  }
  if (status == TIDE_OK) return RMW_RET_OK;
  tide_compat_result(status);
  return RMW_RET_ERROR;
}

rmw_ret_t rmw_uros_ping_agent(const int timeout_ms, const uint8_t attempts) {
  rmw_init_options_t options = default_options();
  return rmw_uros_ping_agent_options(timeout_ms, attempts, &options);
}

rmw_ret_t rmw_uros_sync_session(const int timeout_ms) {
  tide_support_t *support = current_support();
  if (support == NULL) return tide_compat_result(TIDE_ERROR_STATE);
  if (timeout_ms < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(synchronise(support, timeout_ms));
}

bool rmw_uros_epoch_synchronized(void) {
  tide_support_t *support = current_support();
  return support != NULL && time_sync_of(support).exchanges > 0;
}

int64_t rmw_uros_epoch_nanos(void) {
  tide_support_t *support = current_support();
  if (support == NULL) return 0;
  const tide_time_sync_t sync = time_sync_of(support);
  return sync.exchanges > 0 ? tide_compat_now_ns() + sync.offset_ns : 0;
}

int64_t rmw_uros_epoch_millis(void) { return rmw_uros_epoch_nanos() / 1000000; }
