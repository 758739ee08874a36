/* SPDX-License-Identifier: Apache-2.0 */
#include "rclc/service.h"

#include <string.h>

#include "internal.h"
#include "tide/message_memory.h"
#include "tide/rclc_service.h"

rcl_service_t rcl_get_zero_initialized_service(void) {
  rcl_service_t service = {NULL};
  return service;
}

rcl_service_options_t rcl_service_get_default_options(void) {
  rcl_service_options_t options;
  options.qos = rmw_qos_profile_services_default;
  options.allocator = rcl_get_default_allocator();
  return options;
}

static void clear(tide_service_handle_t *handle) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  memset(handle, 0, sizeof *handle); /* retry_responses looks at free places, too */
  tide_platform_exit(platform, critical);
}

static tide_service_handle_t *free_place(void) {
  for (size_t i = 0; i < tide_pools.service_count; i++) {
    tide_service_handle_t *handle = &tide_pools.services[i];
    if (handle->end.support != NULL) continue;
    clear(handle);
    handle->end.request_topic = tide_pools.service_names + 2u * i * tide_pools.service_name_bytes;
    handle->end.reply_topic = handle->end.request_topic + tide_pools.service_name_bytes;
    handle->end.reader.samples = tide_pools.service_samples + i * tide_pools.service_depth;
    return handle;
  }
  return NULL;
}

rcl_ret_t rclc_service_init(rcl_service_t *service, const rcl_node_t *node,
                            const rosidl_service_type_support_t *type_support, const char *service_name,
                            const rmw_qos_profile_t *qos_profile) {
  if (service == NULL || type_support == NULL || service_name == NULL || qos_profile == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  if (!TIDE_SERVICE_OBJECTS) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  tide_service_handle_t *handle = free_place();
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_SERVICES);
  const int status =
      tide_compat_open_end(&handle->end, TIDE_XRCE_KIND_REPLIER, node, type_support, service_name, qos_profile);
  if (status == TIDE_OK) service->impl = handle;
  return tide_compat_result_of_service(status);
}

rcl_ret_t rclc_service_init_default(rcl_service_t *service, const rcl_node_t *node,
                                    const rosidl_service_type_support_t *type_support, const char *service_name) {
  return rclc_service_init(service, node, type_support, service_name, &rmw_qos_profile_services_default);
}

rcl_ret_t rclc_service_init_best_effort(rcl_service_t *service, const rcl_node_t *node,
                                        const rosidl_service_type_support_t *type_support, const char *service_name) {
  return rclc_service_init(service, node, type_support, service_name, &rmw_qos_profile_sensor_data);
}

rcl_ret_t rcl_service_init(rcl_service_t *service, const rcl_node_t *node,
                           const rosidl_service_type_support_t *type_support, const char *service_name,
                           const rcl_service_options_t *options) {
  const rmw_qos_profile_t *qos = options == NULL ? &rmw_qos_profile_services_default : &options->qos;
  return rclc_service_init(service, node, type_support, service_name, qos);
}

bool rcl_service_is_valid(const rcl_service_t *service) {
  return service != NULL && service->impl != NULL && service->impl->end.support != NULL;
}

rcl_ret_t rcl_service_fini(rcl_service_t *service, rcl_node_t *node) {
  (void)node;
  if (service == NULL) return tide_compat_refusal(TIDE_ERROR_ARGUMENT, RCL_RET_SERVICE_INVALID);
  if (rcl_service_is_valid(service)) {
    const int status = tide_compat_close_end(&service->impl->end);
    if (status != TIDE_OK) return tide_compat_result(status);
  }
  service->impl = NULL;
  return RCL_RET_OK;
}

/* ---- the sample identity of DDS: GUID of the asking reader, sequence number as high i32 and low u32 ---- */

static rmw_request_id_t read_identity(const uint8_t *bytes) {
  rmw_request_id_t id;
  memcpy(id.writer_guid, bytes, sizeof id.writer_guid);
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, bytes + sizeof id.writer_guid, TIDE_SAMPLE_IDENTITY_BYTES - sizeof id.writer_guid, false);
  const uint64_t high = tide_cdr_get_u32(&cdr);
  id.sequence_number = (int64_t)(high << 32 | tide_cdr_get_u32(&cdr));
  return id;
}

static void put_identity(tide_cdr_t *cdr, const rmw_request_id_t *id) {
  tide_cdr_put_bytes(cdr, (const uint8_t *)id->writer_guid, sizeof id->writer_guid);
  tide_cdr_put_u32(cdr, (uint32_t)((uint64_t)id->sequence_number >> 32));
  tide_cdr_put_u32(cdr, (uint32_t)id->sequence_number);
  tide_cdr_set_origin(cdr);
}

static rcl_ret_t take(tide_service_handle_t *service, rmw_service_info_t *info, void *request) {
  const tide_sample_t *sample = tide_compat_peek_end(&service->end, TIDE_SAMPLE_IDENTITY_BYTES);
  if (sample == NULL) return RCL_RET_SERVICE_TAKE_FAILED;
  info->source_timestamp = 0;
  info->received_timestamp = sample->arrived_ns;
  info->request_id = read_identity(sample->bytes);
  return tide_compat_result(
      tide_compat_decode_end(&service->end, sample, TIDE_SAMPLE_IDENTITY_BYTES, service->end.type->request, request));
}

rcl_ret_t rcl_take_request_with_info(const rcl_service_t *service, rmw_service_info_t *request_header,
                                     void *ros_request) {
  if (!rcl_service_is_valid(service) || request_header == NULL || ros_request == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return take(service->impl, request_header, ros_request);
}

rcl_ret_t rcl_take_request(const rcl_service_t *service, rmw_request_id_t *request_header, void *ros_request) {
  rmw_service_info_t info;
  if (request_header == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t result = rcl_take_request_with_info(service, &info, ros_request);
  if (result == RCL_RET_OK) *request_header = info.request_id;
  return result;
}

static int begin(tide_service_handle_t *service, const rmw_request_id_t *request_id, tide_write_t *write, size_t bytes,
                 int32_t wait_ms) {
  const int status = tide_compat_begin_end(&service->end, write, TIDE_SAMPLE_IDENTITY_BYTES + bytes, wait_ms);
  if (status == TIDE_OK) put_identity(&write->cdr, request_id);
  return status;
}

int tide_compat_begin_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, tide_write_t *write,
                               size_t bytes) {
  return begin(service, request_id, write, bytes, 0);
}

static int send(tide_service_handle_t *service, const rmw_request_id_t *request_id, const void *response,
                int32_t wait_ms) {
  const tide_message_type_t *type = service->end.type->response;
  tide_write_t write;
  const int status = begin(service, request_id, &write, tide_message_size(type, response), wait_ms);
  if (status != TIDE_OK) return status;
  type->encode(&write.cdr, response);
  return tide_compat_write_end(service->end.support, &write);
}

int tide_compat_send_response(tide_service_handle_t *service, const rmw_request_id_t *request_id,
                              const void *response) {
  return send(service, request_id, response, service->end.wait_ms);
}

rcl_ret_t rcl_send_response(const rcl_service_t *service, rmw_request_id_t *response_header, void *ros_response) {
  if (!rcl_service_is_valid(service) || response_header == NULL || ros_response == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return tide_compat_result(tide_compat_send_response(service->impl, response_header, ros_response));
}

/* ---- in an executor ---- */

static bool some_wait; /* of the services, since they were last gone through */

static bool waits_locked(const tide_service_handle_t *service, const tide_support_t *support) {
  return service->end.support == support && __atomic_load_n(&service->response_waits, __ATOMIC_ACQUIRE) &&
         !tide_callback_is_ready(&service->end.callback);
}

/* The next one from a place on, in one critical section with those that do not wait. False: none does. */
static bool retry_next(tide_support_t *support, size_t *place) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  while (*place < tide_pools.service_count && !waits_locked(&tide_pools.services[*place], support)) ++*place;
  const bool found = *place < tide_pools.service_count;
  if (found) tide_executor_notify(&tide_pools.services[(*place)++].end.callback);
  tide_platform_exit(platform, critical);
  return found;
}

/* In the link's context, while the program may create or finish services. Who begins to wait says so after this has
 * taken the word, or is seen in the list; who has a run before him says so again in that run. */
void tide_compat_retry_services(tide_support_t *support) {
  if (!__atomic_exchange_n(&some_wait, false, __ATOMIC_ACQ_REL)) return;
  for (size_t place = 0; retry_next(support, &place);) continue;
}

/* Actions have set one that does this, too. */
static void set_retry(tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  if (support->retry_responses == NULL) support->retry_responses = tide_compat_retry_services;
  tide_platform_exit(platform, critical);
}

static void set_waiting(tide_service_handle_t *service, bool waits) {
  __atomic_store_n(&service->response_waits, waits, __ATOMIC_RELEASE);
  if (waits) __atomic_store_n(&some_wait, true, __ATOMIC_RELEASE);
}

static int send_now(tide_service_handle_t *service) {
  return send(service, &service->request_id, service->response, 0);
}

/* False: there is no node; the link's context calls again. It is told before the last attempt, so that a node which
 * becomes free after it is not missed. */
static bool respond(tide_service_handle_t *service) {
  int status = send_now(service);
  if (status == TIDE_ERROR_FULL) {
    set_retry(service->end.support);
    set_waiting(service, true);
    status = send_now(service);
  }
  if (status == TIDE_ERROR_FULL) return false;
  set_waiting(service, false);
  if (status != TIDE_OK) {
    (void)__atomic_add_fetch(&service->responses_lost, 1u, __ATOMIC_RELAXED);
    (void)tide_compat_result(status); /* nobody called for it, so the program's error handler hears of it */
  }
  return true;
}

static void call(const rclc_executor_handle_t *handle, tide_service_handle_t *service) {
  switch (handle->type) {
    case RCLC_SERVICE_WITH_REQUEST_ID: {
      rmw_request_id_t id = service->request_id;
      handle->service_callback_with_request_id(handle->data, &id, service->response);
      break;
    }
    case RCLC_SERVICE_WITH_CONTEXT:
      handle->service_callback_with_context(handle->data, service->response, handle->callback_context);
      break;
    default:
      handle->service_callback(handle->data, service->response);
      break;
  }
}

/* A run that finds its response still waiting leaves the request where it is: it has a run of its own again when the
 * response has gone. */
static void execute(tide_callback_t *callback, void *context) {
  rclc_executor_handle_t *handle = context;
  tide_service_handle_t *service = handle->impl;
  if (__atomic_load_n(&service->response_waits, __ATOMIC_ACQUIRE)) {
    if (!respond(service)) return;
    for (uint8_t i = 1; i < service->end.reader.count; i++) tide_executor_notify(callback);
  }
  rmw_service_info_t info;
  if (take(service, &info, handle->data) != RCL_RET_OK) return;
  service->request_id = info.request_id;
  service->deferred = false;
  call(handle, service);
  if (!service->deferred && service->end.support != NULL) (void)respond(service);
}

static rclc_executor_handle_t *new_handle(rclc_executor_t *executor, rcl_service_t *service, void *request,
                                          void *response, rclc_executor_handle_type_t type, rcl_ret_t *result) {
  if (!rcl_service_is_valid(service) || request == NULL || response == NULL) {
    *result = tide_compat_result(TIDE_ERROR_ARGUMENT);
    return NULL;
  }
  rclc_executor_handle_t *handle = tide_compat_new_end_handle(executor, &service->impl->end, type, result);
  if (handle == NULL) return NULL;
  handle->service = service;
  handle->data = request;
  service->impl->response = response;
  return handle;
}

static rcl_ret_t add(rclc_executor_t *executor, rclc_executor_handle_t *handle) {
  tide_service_handle_t *service = handle->impl;
  service->end.callback.kind = TIDE_CALLBACK_SERVICE;
  service->end.callback.execute = execute;
  service->end.callback.handle = handle->service;
  const rcl_ret_t result = tide_compat_add_end_handle(executor, handle);
  if (result == RCL_RET_OK && service->response_waits) tide_executor_notify(&service->end.callback);
  return result;
}

rcl_ret_t rclc_executor_add_service(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                    void *response_msg, rclc_service_callback_t callback) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle = new_handle(executor, service, request_msg, response_msg, RCLC_SERVICE, &result);
  if (handle == NULL) return result;
  handle->service_callback = callback;
  return add(executor, handle);
}

rcl_ret_t rclc_executor_add_service_with_request_id(rclc_executor_t *executor, rcl_service_t *service,
                                                    void *request_msg, void *response_msg,
                                                    rclc_service_callback_with_request_id_t callback) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle =
      new_handle(executor, service, request_msg, response_msg, RCLC_SERVICE_WITH_REQUEST_ID, &result);
  if (handle == NULL) return result;
  handle->service_callback_with_request_id = callback;
  return add(executor, handle);
}

rcl_ret_t rclc_executor_add_service_with_context(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                                 void *response_msg, rclc_service_callback_with_context_t callback,
                                                 void *context) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle =
      new_handle(executor, service, request_msg, response_msg, RCLC_SERVICE_WITH_CONTEXT, &result);
  if (handle == NULL) return result;
  handle->service_callback_with_context = callback;
  handle->callback_context = context;
  return add(executor, handle);
}

rcl_ret_t tide_rclc_service_defer(const rcl_service_t *service) {
  if (!rcl_service_is_valid(service)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  service->impl->deferred = true;
  return RCL_RET_OK;
}

/* ---- chains ---- */

rcl_ret_t tide_rclc_service_set_priority(rcl_service_t *service, tide_priority_t priority) {
  if (!rcl_service_is_valid(service)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_compat_set_end_priority(&service->impl->end, priority));
}

tide_callback_t *tide_rclc_service_callback(const rcl_service_t *service) {
  return rcl_service_is_valid(service) ? tide_compat_callback_of_end(&service->impl->end) : NULL;
}

rcl_ret_t tide_rclc_chain_add_service(tide_chain_t *chain, rcl_service_t *service) {
  if (!rcl_service_is_valid(service)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_compat_add_end_to_chain(chain, &service->impl->end));
}

rcl_ret_t tide_rclc_service_get_counters(const rcl_service_t *service, tide_service_counters_t *counters) {
  if (!rcl_service_is_valid(service) || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_service_handle_t *handle = service->impl;
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  counters->received = handle->end.reader.received;
  counters->dropped = handle->end.reader.dropped;
  counters->decode_errors = __atomic_load_n(&handle->end.decode_errors, __ATOMIC_RELAXED);
  counters->responses_lost = __atomic_load_n(&handle->responses_lost, __ATOMIC_RELAXED);
  tide_platform_exit(platform, critical);
  return RCL_RET_OK;
}
