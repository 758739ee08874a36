/* SPDX-License-Identifier: Apache-2.0 */
/* Services and clients. Both use an "end": an object on the agent (replier or requester) with a writer and a reader. */
#include <string.h>

#include "internal.h"
#include "rclc/client.h"
#include "rclc/service.h"
#include "rmw_microros/timing.h"
#include "tide/message_memory.h"
#include "tide/rclc_service.h"

/* ---- ends ---- */

static tide_text_t text_of(const char *characters) {
  const tide_text_t text = {characters, strlen(characters)};
  return text;
}

static void describe(tide_service_end_t *end, uint8_t kind, const tide_node_handle_t *node) {
  memset(&end->object, 0, sizeof end->object);
  tide_xrce_object_t *description = &end->object.description;
  description->kind = kind;
  description->representation = TIDE_XRCE_BY_BINARY;
  description->parent = node->participant.id;
  /* The service's name is the text between the topic's prefix and suffix. */
  description->name = (tide_text_t){end->request_topic + 2, strlen(end->request_topic) - strlen("rqRequest")};
  description->request_type = text_of(end->type->request->dds_name);
  description->reply_type = text_of(end->type->response->dds_name);
  description->has_request_topic = description->has_reply_topic = true;
  description->request_topic = text_of(end->request_topic);
  description->reply_topic = text_of(end->reply_topic);
}

static void on_sample(void *context, tide_reader_t *reader) {
  (void)reader;
  tide_service_end_t *end = context;
  if (end->handle != NULL) tide_executor_notify(&end->callback);
}

static int open_on_agent(tide_service_end_t *end, uint8_t kind, const tide_node_handle_t *node,
                         const char *service_name, const rmw_qos_profile_t *qos) {
  if (!TIDE_RELIABLE_STREAMS && tide_compat_is_reliable(qos)) return TIDE_ERROR_UNSUPPORTED;
  int status = tide_compat_service_names(end->request_topic, end->reply_topic, service_name, node);
  if (status != TIDE_OK) return status;
  describe(end, kind, node);
  status = tide_compat_create_object(end->support, &end->object, true);
  if (status != TIDE_OK) return status;
  end->reader.object = end->object.id;
  end->reader.reliable = tide_compat_is_reliable(qos);
  end->reader.depth = tide_pools.service_depth;
  end->reader.keep_all = qos->history == RMW_QOS_POLICY_HISTORY_KEEP_ALL;
  end->reader.on_sample = on_sample;
  end->reader.context = end;
  return tide_session_add_reader(&end->support->session, &end->reader);
}

/* Locked, because the link's context searches for services with waiting responses. */
static void set_support(tide_service_end_t *end, tide_support_t *support) {
  const uintptr_t critical = tide_compat_enter();
  end->support = support;
  tide_compat_leave(critical);
}

/* Creates a replier or requester with its reader. `place` is the index in the common pools, where services precede
 * clients. If it fails, it undoes what it has created. */
static int open_end(tide_service_end_t *end, size_t place, uint8_t kind, const rcl_node_t *node,
                    const rosidl_service_type_support_t *type_support, const char *service_name,
                    const rmw_qos_profile_t *qos) {
  end->request_topic = tide_pools.service_names + 2u * place * tide_pools.service_name_bytes;
  end->reply_topic = end->request_topic + tide_pools.service_name_bytes;
  end->reader.samples = tide_pools.service_samples + place * tide_pools.service_depth;
  set_support(end, node->impl->support);
  end->type = (const tide_service_type_t *)type_support->data;
  const int status = open_on_agent(end, kind, node->impl, service_name, qos);
  if (status != TIDE_OK && tide_compat_delete_object(end->support, &end->object) == TIDE_OK) set_support(end, NULL);
  return status;
}

/* Removes the end from its executor and from the agent, and frees its entry. Errors as in rcl_publisher_fini. */
static int close_end(tide_service_end_t *end) {
  tide_support_t *support = end->support;
  int status = tide_compat_leave_executor(&end->callback, &end->handle);
  if (status != TIDE_OK) return status;
  tide_session_remove_reader(&support->session, &end->reader);
  tide_compat_await_delivery(support, end->reader.reliable, end->callback.priority);
  status = tide_compat_delete_object(support, &end->object);
  if (status == TIDE_OK) set_support(end, NULL);
  return status;
}

/* Begins a sample with the callback's priority; waits up to wait_ms for a free node. */
static int begin_end(tide_service_end_t *end, tide_write_t *write, size_t bytes, int32_t wait_ms) {
  return tide_compat_write_begin(end->support, write, end->object.id, end->reader.reliable, end->callback.priority,
                                 (uint32_t)bytes, wait_ms);
}

/* Returns the oldest sample, or null if there is none. Samples shorter than their header are dropped and counted.
 * Reports the end's own messages that the agent dropped, because their sender made no call that could return it. */
static const tide_sample_t *peek_end(tide_service_end_t *end, uint32_t header_bytes) {
  tide_session_t *session = &end->support->session;
  const char *sent = header_bytes == TIDE_REPLY_HEADER_BYTES ? end->request_topic : end->reply_topic;
  while (!TIDE_LEAN && end->told != __atomic_load_n(&end->reader.undelivered, __ATOMIC_RELAXED)) {
    tide_compat_unread(TIDE_ERROR_EXPIRED, &end->told, sent, NULL);
    (void)tide_compat_refusal(TIDE_ERROR_EXPIRED, RCL_RET_ERROR);
  }
  for (;;) {
    const tide_sample_t *sample = tide_session_peek(session, &end->reader);
    if (sample == NULL || sample->length >= header_bytes) return sample;
    (void)__atomic_add_fetch(&end->decode_errors, 1u, __ATOMIC_RELAXED);
    tide_session_take_done(session, &end->reader);
  }
}

/* Decodes and releases the sample. */
static int decode_end(tide_service_end_t *end, const tide_sample_t *sample, uint32_t header_bytes,
                      const tide_message_type_t *type, void *message) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample->bytes + header_bytes, sample->length - header_bytes, sample->big_endian);
  type->decode(&cdr, message);
  tide_session_take_done(&end->support->session, &end->reader);
  const char *topic = header_bytes == TIDE_REPLY_HEADER_BYTES ? end->reply_topic : end->request_topic;
  if (cdr.status != TIDE_OK) tide_compat_unread(cdr.status, &end->decode_errors, topic, end->handle);
  return cdr.status;
}

int tide_compat_set_end_priority(tide_service_end_t *end, tide_priority_t priority) {
  if (TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (end->callback.executor != NULL) tide_executor_set_priority(end->callback.executor, &end->callback, priority);
  end->callback.priority = priority;
  return tide_session_set_reader_priority(&end->support->session, &end->reader, priority);
}

static tide_callback_t *callback_of_end(tide_service_end_t *end) {
  return end->callback.executor == NULL ? NULL : &end->callback;
}

static int add_end_to_chain(tide_chain_t *chain, tide_service_end_t *end) {
  if (chain == NULL || end->callback.executor == NULL) return TIDE_ERROR_ARGUMENT;
  const int position = tide_chain_add(chain, &end->callback);
  return position < 0 ? position : tide_compat_set_end_priority(end, end->callback.priority);
}

/* ---- services ---- */

/* Translates the result of an init call: rcl has a separate code for an invalid service name. */
static rcl_ret_t result_of_init(int status) {
  return status == TIDE_ERROR_NAME || status == TIDE_ERROR_CAPACITY_NAMES
             ? tide_compat_refusal(status, RCL_RET_SERVICE_NAME_INVALID)
             : tide_compat_result(status);
}

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

rcl_ret_t rclc_service_init(rcl_service_t *service, const rcl_node_t *node,
                            const rosidl_service_type_support_t *type_support, const char *service_name,
                            const rmw_qos_profile_t *qos_profile) {
  if (service == NULL || type_support == NULL || service_name == NULL || qos_profile == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  size_t place = 0;
  while (place < tide_pools.service_count && tide_pools.services[place].end.support != NULL) place++;
  if (place == tide_pools.service_count) return tide_compat_result(TIDE_ERROR_CAPACITY_SERVICES);
  tide_service_handle_t *handle = &tide_pools.services[place];
  const uintptr_t critical = tide_compat_enter();
  memset(handle, 0, sizeof *handle); /* because tide_compat_retry_services also reads free entries */
  tide_compat_leave(critical);
  const int status =
      open_end(&handle->end, place, TIDE_XRCE_KIND_REPLIER, node, type_support, service_name, qos_profile);
  if (status == TIDE_OK) service->impl = handle;
  return result_of_init(status);
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
    const int status = close_end(&service->impl->end);
    if (status != TIDE_OK) return tide_compat_result(status);
  }
  service->impl = NULL;
  return RCL_RET_OK;
}

/* ---- the sample identity of DDS: GUID of the requesting reader, sequence number as high i32 and low u32 ---- */

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

static rcl_ret_t take_request(tide_service_handle_t *service, rmw_service_info_t *info, void *request) {
  const tide_sample_t *sample = peek_end(&service->end, TIDE_SAMPLE_IDENTITY_BYTES);
  if (sample == NULL) return RCL_RET_SERVICE_TAKE_FAILED;
  info->source_timestamp = 0;
  info->received_timestamp = sample->arrived_ns;
  info->request_id = read_identity(sample->bytes);
  return tide_compat_result(
      decode_end(&service->end, sample, TIDE_SAMPLE_IDENTITY_BYTES, service->end.type->request, request));
}

rcl_ret_t rcl_take_request_with_info(const rcl_service_t *service, rmw_service_info_t *request_header,
                                     void *ros_request) {
  if (!rcl_service_is_valid(service) || request_header == NULL || ros_request == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return take_request(service->impl, request_header, ros_request);
}

rcl_ret_t rcl_take_request(const rcl_service_t *service, rmw_request_id_t *request_header, void *ros_request) {
  rmw_service_info_t info;
  if (request_header == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t result = rcl_take_request_with_info(service, &info, ros_request);
  if (result == RCL_RET_OK) *request_header = info.request_id;
  return result;
}

int tide_compat_begin_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, tide_write_t *write,
                               size_t bytes) {
  const int status = begin_end(&service->end, write, TIDE_SAMPLE_IDENTITY_BYTES + bytes, 0);
  if (status == TIDE_OK) put_identity(&write->cdr, request_id);
  return status;
}

/* Begins and encodes a message: a request, or the response to the request with this id. Most messages fit the smallest
 * node; only larger ones are measured first. */
static int begin_message(tide_service_end_t *end, tide_write_t *write, const rmw_request_id_t *id,
                         const tide_message_type_t *type, const void *message, int32_t wait_ms) {
  size_t bytes = tide_pools.classes[0].node_bytes - TIDE_WRITE_HEADER_BYTES;
  for (bool measured = false;; measured = true) {
    if (measured) bytes = (id == NULL ? 0u : TIDE_SAMPLE_IDENTITY_BYTES) + tide_message_size(type, message);
    const int status = begin_end(end, write, bytes, wait_ms);
    if (status != TIDE_OK && (measured || status != TIDE_ERROR_TOO_LARGE)) return status;
    if (status != TIDE_OK) continue;
    if (id != NULL) put_identity(&write->cdr, id);
    type->encode(&write->cdr, message);
    if (measured || write->cdr.status == TIDE_OK) return TIDE_OK;
    tide_session_write_abandon(write);
  }
}

static int send_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, const void *response,
                         int32_t wait_ms) {
  tide_write_t write;
  const int status = begin_message(&service->end, &write, request_id, service->end.type->response, response, wait_ms);
  return status == TIDE_OK ? tide_compat_write_end(service->end.support, &write) : status;
}

int tide_compat_send_response(tide_service_handle_t *service, const rmw_request_id_t *request_id,
                              const void *response) {
  return send_response(service, request_id, response, service->end.wait_ms);
}

rcl_ret_t rcl_send_response(const rcl_service_t *service, rmw_request_id_t *response_header, void *ros_response) {
  if (!rcl_service_is_valid(service) || response_header == NULL || ros_response == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return tide_compat_result(tide_compat_send_response(service->impl, response_header, ros_response));
}

/* ---- services in an executor ---- */

static bool some_wait; /* set when a response begins to wait for a node; cleared before each pass over the services */

static bool waits_locked(const tide_service_handle_t *service, const tide_support_t *support) {
  return service->end.support == support && __atomic_load_n(&service->response_waits, __ATOMIC_ACQUIRE) &&
         !tide_callback_is_ready(&service->end.callback);
}

/* Retries the next service, from `*place` on, whose response waits; others are skipped in one critical section. Returns
 * false if no response waits. */
static bool retry_next(tide_support_t *support, size_t *place) {
  const uintptr_t critical = tide_compat_enter();
  while (*place < tide_pools.service_count && !waits_locked(&tide_pools.services[*place], support)) ++*place;
  const bool found = *place < tide_pools.service_count;
  if (found) tide_executor_notify(&tide_pools.services[(*place)++].end.callback);
  tide_compat_leave(critical);
  return found;
}

/* Runs in the link's context, while the program may create or finish services. A service whose response begins to wait
 * after some_wait was cleared here sets some_wait again. A service whose response began to wait earlier is found in the
 * list, or sets some_wait when its pending run takes place. */
void tide_compat_retry_services(tide_support_t *support) {
  if (!__atomic_exchange_n(&some_wait, false, __ATOMIC_ACQ_REL)) return;
  for (size_t place = 0; retry_next(support, &place);) continue;
}

static void set_waiting(tide_service_handle_t *service, bool waits) {
  __atomic_store_n(&service->response_waits, waits, __ATOMIC_RELEASE);
  if (waits) __atomic_store_n(&some_wait, true, __ATOMIC_RELEASE);
}

/* Reported with the code that rcl_send_response would return, because the program makes no call here that could return
 * it. */
static void lose(tide_service_handle_t *service, int status) {
  tide_compat_unread(status, &service->responses_lost, service->end.reply_topic, service->end.handle);
  (void)tide_compat_result(status);
}

/* Returns false if no node is free; the link's context will then retry. The response is marked as waiting before the
 * last attempt here, so that the link's context does not miss a node that is freed after this attempt. */
static bool respond(tide_service_handle_t *service) {
  int status = send_response(service, &service->request_id, service->response, 0);
  if (status == TIDE_ERROR_TOO_LARGE && service->refuse != NULL) {
    lose(service, status);
    service->refuse(service->response);
    status = send_response(service, &service->request_id, service->response, 0);
  }
  if (status == TIDE_ERROR_FULL) {
    tide_support_t *support = service->end.support;
    const uintptr_t critical = tide_compat_enter(); /* keeps actions' retry function, which also retries services */
    if (support->retry_responses == NULL) support->retry_responses = tide_compat_retry_services;
    tide_compat_leave(critical);
    set_waiting(service, true);
    status = send_response(service, &service->request_id, service->response, 0);
  }
  if (status == TIDE_ERROR_FULL) return false;
  set_waiting(service, false);
  if (status != TIDE_OK) lose(service, status);
  return true;
}

static void call_program(const rclc_executor_handle_t *handle, tide_service_handle_t *service) {
  switch (handle->type) {
    case RCLC_SERVICE_WITH_REQUEST_ID: {
      rmw_request_id_t id = service->request_id;
      handle->service_callback_with_request_id(handle->data, &id, service->response);
      break;
    }
    case RCLC_SERVICE_WITH_CONTEXT:
      handle->service_callback_with_context(handle->data, service->response, handle->callback_context);
      break;
    default: handle->service_callback(handle->data, service->response); break;
  }
}

/* If the previous response still waits, this run leaves its request queued; another run follows when that response was
 * sent. */
static void execute_service(tide_callback_t *callback, void *context) {
  rclc_executor_handle_t *handle = context;
  tide_service_handle_t *service = handle->impl;
  if (__atomic_load_n(&service->response_waits, __ATOMIC_ACQUIRE)) {
    if (!respond(service)) return;
    for (uint8_t i = 1; i < service->end.reader.count; i++) tide_executor_notify(callback);
  }
  rmw_service_info_t info;
  if (take_request(service, &info, handle->data) != RCL_RET_OK) return;
  service->request_id = info.request_id;
  service->deferred = false;
  call_program(handle, service);
  if (!service->deferred && service->end.support != NULL) (void)respond(service);
}

uint32_t tide_compat_response_capacity(void) {
  const uint32_t head = TIDE_WRITE_HEADER_BYTES + TIDE_SAMPLE_IDENTITY_BYTES;
  size_t i = tide_pools.class_count;
  while (i > 1 && tide_pools.classes[i - 1u].count == 0) i--;
  const uint32_t bytes = tide_pools.classes[i - 1u].node_bytes;
  return (bytes < UINT16_MAX ? bytes : UINT16_MAX) - head;
}

static rcl_ret_t add_service(rclc_executor_t *executor, const rclc_executor_handle_t *wanted, void *response) {
  if (!rcl_service_is_valid(wanted->service) || wanted->data == NULL || response == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_service_handle_t *service = wanted->service->impl;
  if (service->end.callback.executor == NULL) {
    service->end.callback.kind = TIDE_CALLBACK_SERVICE;
    service->end.callback.execute = execute_service;
    service->response = response;
  }
  const rcl_ret_t result = tide_compat_add_handle(executor, wanted, service, &service->end.callback,
                                                  &service->end.reader, &service->end.handle);
  if (result == RCL_RET_OK && service->response_waits) tide_executor_notify(&service->end.callback);
  return result;
}

rcl_ret_t rclc_executor_add_service(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                    void *response_msg, rclc_service_callback_t callback) {
  const rclc_executor_handle_t wanted = {
      .type = RCLC_SERVICE, .service = service, .data = request_msg, .service_callback = callback};
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return add_service(executor, &wanted, response_msg);
}

rcl_ret_t rclc_executor_add_service_with_request_id(rclc_executor_t *executor, rcl_service_t *service,
                                                    void *request_msg, void *response_msg,
                                                    rclc_service_callback_with_request_id_t callback) {
  const rclc_executor_handle_t wanted = {.type = RCLC_SERVICE_WITH_REQUEST_ID,
                                         .service = service,
                                         .data = request_msg,
                                         .service_callback_with_request_id = callback};
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return add_service(executor, &wanted, response_msg);
}

rcl_ret_t rclc_executor_add_service_with_context(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                                 void *response_msg, rclc_service_callback_with_context_t callback,
                                                 void *context) {
  const rclc_executor_handle_t wanted = {.type = RCLC_SERVICE_WITH_CONTEXT,
                                         .service = service,
                                         .data = request_msg,
                                         .callback_context = context,
                                         .service_callback_with_context = callback};
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return add_service(executor, &wanted, response_msg);
}

rcl_ret_t tide_rclc_service_defer(const rcl_service_t *service) {
  if (!rcl_service_is_valid(service)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  service->impl->deferred = true;
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_service_set_priority(rcl_service_t *service, tide_priority_t priority) {
  if (!rcl_service_is_valid(service)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_compat_set_end_priority(&service->impl->end, priority));
}

tide_callback_t *tide_rclc_service_callback(const rcl_service_t *service) {
  return rcl_service_is_valid(service) ? callback_of_end(&service->impl->end) : NULL;
}

rcl_ret_t tide_rclc_chain_add_service(tide_chain_t *chain, rcl_service_t *service) {
  if (!rcl_service_is_valid(service)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(add_end_to_chain(chain, &service->impl->end));
}

rcl_ret_t tide_rclc_service_get_counters(const rcl_service_t *service, tide_service_counters_t *counters) {
  if (!rcl_service_is_valid(service) || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_service_handle_t *handle = service->impl;
  const uintptr_t critical = tide_compat_enter();
  counters->received = handle->end.reader.received;
  counters->dropped = handle->end.reader.dropped;
  counters->decode_errors = __atomic_load_n(&handle->end.decode_errors, __ATOMIC_RELAXED);
  counters->responses_lost = __atomic_load_n(&handle->responses_lost, __ATOMIC_RELAXED);
  counters->undelivered = handle->end.reader.undelivered;
  tide_compat_leave(critical);
  return RCL_RET_OK;
}

/* ---- clients ---- */

rcl_client_t rcl_get_zero_initialized_client(void) {
  rcl_client_t client = {NULL};
  return client;
}

rcl_client_options_t rcl_client_get_default_options(void) {
  rcl_client_options_t options;
  options.qos = rmw_qos_profile_services_default;
  options.allocator = rcl_get_default_allocator();
  return options;
}

rcl_ret_t rclc_client_init(rcl_client_t *client, const rcl_node_t *node,
                           const rosidl_service_type_support_t *type_support, const char *service_name,
                           const rmw_qos_profile_t *qos_profile) {
  if (client == NULL || type_support == NULL || service_name == NULL || qos_profile == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  size_t place = 0;
  while (place < tide_pools.client_count && tide_pools.clients[place].end.support != NULL) place++;
  if (place == tide_pools.client_count) return tide_compat_result(TIDE_ERROR_CAPACITY_CLIENTS);
  tide_client_handle_t *handle = &tide_pools.clients[place];
  memset(handle, 0, sizeof *handle);
  handle->asked = tide_pools.asked + place * tide_pools.client_request_count;
  memset(handle->asked, 0, tide_pools.client_request_count * sizeof *handle->asked);
  const int status = open_end(&handle->end, tide_pools.service_count + place, TIDE_XRCE_KIND_REQUESTER, node,
                              type_support, service_name, qos_profile);
  if (status == TIDE_OK) client->impl = handle;
  return result_of_init(status);
}

rcl_ret_t rclc_client_init_default(rcl_client_t *client, const rcl_node_t *node,
                                   const rosidl_service_type_support_t *type_support, const char *service_name) {
  return rclc_client_init(client, node, type_support, service_name, &rmw_qos_profile_services_default);
}

rcl_ret_t rclc_client_init_best_effort(rcl_client_t *client, const rcl_node_t *node,
                                       const rosidl_service_type_support_t *type_support, const char *service_name) {
  return rclc_client_init(client, node, type_support, service_name, &rmw_qos_profile_sensor_data);
}

rcl_ret_t rcl_client_init(rcl_client_t *client, const rcl_node_t *node,
                          const rosidl_service_type_support_t *type_support, const char *service_name,
                          const rcl_client_options_t *options) {
  const rmw_qos_profile_t *qos = options == NULL ? &rmw_qos_profile_services_default : &options->qos;
  return rclc_client_init(client, node, type_support, service_name, qos);
}

bool rcl_client_is_valid(const rcl_client_t *client) {
  return client != NULL && client->impl != NULL && client->impl->end.support != NULL;
}

rcl_ret_t rcl_client_fini(rcl_client_t *client, rcl_node_t *node) {
  (void)node;
  if (client == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  if (rcl_client_is_valid(client)) {
    const int status = close_end(&client->impl->end);
    if (status != TIDE_OK) return tide_compat_result(status);
  }
  client->impl = NULL;
  return RCL_RET_OK;
}

/* ---- requests without an answer ----
 *
 * On the wire, ids have 16 bits and wrap after 65,526 messages; a new request then replaces an older one with the same
 * id. */

static int64_t note(tide_client_handle_t *client, uint16_t request) {
  const uintptr_t critical = tide_compat_enter();
  tide_asked_t *place = client->asked;
  for (tide_asked_t *other = client->asked; other < client->asked + tide_pools.client_request_count; other++) {
    if (other->sequence_number != 0 && other->request == request) {
      place = other;
      break;
    }
    if (other->sequence_number < place->sequence_number) place = other; /* a free entry (0), else the oldest */
  }
  if (place->sequence_number != 0) client->forgotten++;
  const int64_t number = ++client->sequence_number;
  *place = (tide_asked_t){number, request};
  tide_compat_leave(critical);
  return number;
}

/* Marks a request as answered and returns its number, or 0 if no request has this id. */
static int64_t answer(tide_client_handle_t *client, uint16_t request) {
  int64_t number = 0;
  const uintptr_t critical = tide_compat_enter();
  for (tide_asked_t *asked = client->asked; asked < client->asked + tide_pools.client_request_count; asked++) {
    if (asked->sequence_number == 0 || asked->request != request) continue;
    number = asked->sequence_number;
    asked->sequence_number = 0;
  }
  if (number == 0) client->unexpected++;
  tide_compat_leave(critical);
  return number;
}

static bool forget(tide_client_handle_t *client, int64_t sequence_number) {
  bool known = false;
  const uintptr_t critical = tide_compat_enter();
  for (tide_asked_t *asked = client->asked; asked < client->asked + tide_pools.client_request_count; asked++) {
    if (asked->sequence_number != sequence_number) continue;
    asked->sequence_number = 0;
    known = true;
  }
  tide_compat_leave(critical);
  return known;
}

/* The request is recorded before it is sent, because the reply may arrive in another context. */
int tide_compat_send_request(tide_client_handle_t *client, const void *request, int64_t *number,
                             bool (*agrees)(const tide_write_t *write, void *context), void *context) {
  tide_write_t write;
  int status = begin_message(&client->end, &write, NULL, client->end.type->request, request, client->end.wait_ms);
  if (status != TIDE_OK) return status;
  if (agrees != NULL && !agrees(&write, context)) {
    tide_session_write_abandon(&write);
    return TIDE_ERROR_STATE;
  }
  *number = note(client, tide_session_write_request(&write));
  const int64_t noted = *number;
  status = tide_compat_write_end(client->end.support, &write);
  if (status != TIDE_OK) forget(client, noted);
  return status;
}

rcl_ret_t rcl_send_request(const rcl_client_t *client, const void *ros_request, int64_t *sequence_number) {
  if (!rcl_client_is_valid(client) || ros_request == NULL || sequence_number == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return tide_compat_result(tide_compat_send_request(client->impl, ros_request, sequence_number, NULL, NULL));
}

rcl_ret_t tide_rclc_client_forget(const rcl_client_t *client, int64_t sequence_number) {
  if (!rcl_client_is_valid(client) || sequence_number <= 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(forget(client->impl, sequence_number) ? TIDE_OK : TIDE_ERROR_NOT_FOUND);
}

/* ---- replies ---- */

static uint16_t request_of(const tide_sample_t *sample) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample->bytes, TIDE_REPLY_HEADER_BYTES, false);
  return tide_xrce_get_request(&cdr).request;
}

static rcl_ret_t take_response(tide_client_handle_t *client, rmw_service_info_t *info, void *response) {
  tide_service_end_t *end = &client->end;
  memset(info, 0, sizeof *info);
  const tide_sample_t *sample = peek_end(end, TIDE_REPLY_HEADER_BYTES);
  while (sample != NULL && info->request_id.sequence_number == 0) {
    info->request_id.sequence_number = answer(client, request_of(sample));
    if (info->request_id.sequence_number == 0) {
      tide_session_take_done(&end->support->session, &end->reader);
      sample = peek_end(end, TIDE_REPLY_HEADER_BYTES);
    }
  }
  if (sample == NULL) return RCL_RET_CLIENT_TAKE_FAILED;
  info->received_timestamp = sample->arrived_ns;
  return tide_compat_result(decode_end(end, sample, TIDE_REPLY_HEADER_BYTES, end->type->response, response));
}

rcl_ret_t rcl_take_response_with_info(const rcl_client_t *client, rmw_service_info_t *request_header,
                                      void *ros_response) {
  if (!rcl_client_is_valid(client) || request_header == NULL || ros_response == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return take_response(client->impl, request_header, ros_response);
}

rcl_ret_t rcl_take_response(const rcl_client_t *client, rmw_request_id_t *request_header, void *ros_response) {
  rmw_service_info_t info;
  if (request_header == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t result = rcl_take_response_with_info(client, &info, ros_response);
  if (result == RCL_RET_OK) *request_header = info.request_id;
  return result;
}

/* ---- clients in an executor ---- */

static void execute_client(tide_callback_t *callback, void *context) {
  (void)callback;
  const rclc_executor_handle_t *handle = context;
  rmw_service_info_t info;
  if (take_response(handle->impl, &info, handle->data) != RCL_RET_OK) return;
  if (handle->type == RCLC_CLIENT_WITH_REQUEST_ID) {
    handle->client_callback_with_request_id(handle->data, &info.request_id);
  } else {
    handle->client_callback(handle->data);
  }
}

static rcl_ret_t add_client(rclc_executor_t *executor, const rclc_executor_handle_t *wanted) {
  if (!rcl_client_is_valid(wanted->client) || wanted->data == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  tide_service_end_t *end = &wanted->client->impl->end;
  if (end->callback.executor == NULL) {
    end->callback.kind = TIDE_CALLBACK_CLIENT;
    end->callback.execute = execute_client;
  }
  return tide_compat_add_handle(executor, wanted, end, &end->callback, &end->reader, &end->handle);
}

rcl_ret_t rclc_executor_add_client(rclc_executor_t *executor, rcl_client_t *client, void *response_msg,
                                   rclc_client_callback_t callback) {
  const rclc_executor_handle_t wanted = {
      .type = RCLC_CLIENT, .client = client, .data = response_msg, .client_callback = callback};
  return callback == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : add_client(executor, &wanted);
}

rcl_ret_t rclc_executor_add_client_with_request_id(rclc_executor_t *executor, rcl_client_t *client, void *response_msg,
                                                   rclc_client_callback_with_request_id_t callback) {
  const rclc_executor_handle_t wanted = {.type = RCLC_CLIENT_WITH_REQUEST_ID,
                                         .client = client,
                                         .data = response_msg,
                                         .client_callback_with_request_id = callback};
  return callback == NULL ? tide_compat_result(TIDE_ERROR_ARGUMENT) : add_client(executor, &wanted);
}

rcl_ret_t tide_rclc_client_set_priority(rcl_client_t *client, tide_priority_t priority) {
  if (!rcl_client_is_valid(client)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_compat_set_end_priority(&client->impl->end, priority));
}

tide_callback_t *tide_rclc_client_callback(const rcl_client_t *client) {
  return rcl_client_is_valid(client) ? callback_of_end(&client->impl->end) : NULL;
}

rcl_ret_t tide_rclc_chain_add_client(tide_chain_t *chain, rcl_client_t *client) {
  if (!rcl_client_is_valid(client)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(add_end_to_chain(chain, &client->impl->end));
}

rcl_ret_t tide_rclc_client_get_counters(const rcl_client_t *client, tide_client_counters_t *counters) {
  if (!rcl_client_is_valid(client) || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_client_handle_t *handle = client->impl;
  memset(counters, 0, sizeof *counters);
  const uintptr_t critical = tide_compat_enter();
  counters->received = handle->end.reader.received;
  counters->dropped = handle->end.reader.dropped;
  counters->decode_errors = __atomic_load_n(&handle->end.decode_errors, __ATOMIC_RELAXED);
  counters->forgotten = handle->forgotten;
  counters->undelivered = handle->end.reader.undelivered;
  counters->unexpected = handle->unexpected;
  for (size_t i = 0; i < tide_pools.client_request_count; i++) {
    if (handle->asked[i].sequence_number != 0) counters->unanswered++;
  }
  tide_compat_leave(critical);
  return RCL_RET_OK;
}

/* ---- handles of the layer below ---- */

rmw_service_t *rcl_service_get_rmw_handle(const rcl_service_t *service) {
  return rcl_service_is_valid(service) ? (rmw_service_t *)(void *)service->impl : NULL;
}

rmw_client_t *rcl_client_get_rmw_handle(const rcl_client_t *client) {
  return rcl_client_is_valid(client) ? (rmw_client_t *)(void *)client->impl : NULL;
}

static rmw_ret_t set_wait(tide_service_end_t *end, int session_timeout) {
  if (end == NULL || end->support == NULL || session_timeout < 0) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  end->wait_ms = session_timeout;
  return RMW_RET_OK;
}

rmw_ret_t rmw_uros_set_client_session_timeout(rmw_client_t *client, int session_timeout) {
  return set_wait((tide_service_end_t *)(void *)client, session_timeout);
}

rmw_ret_t rmw_uros_set_service_session_timeout(rmw_service_t *service, int session_timeout) {
  return set_wait((tide_service_end_t *)(void *)service, session_timeout);
}
