/* SPDX-License-Identifier: Apache-2.0 */
#include "rclc/client.h"

#include <string.h>

#include "internal.h"
#include "tide/message_memory.h"
#include "tide/rclc_service.h"

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

static tide_client_handle_t *free_place(void) {
  for (size_t i = 0; i < tide_pools.client_count; i++) {
    tide_client_handle_t *handle = &tide_pools.clients[i];
    if (handle->end.support != NULL) continue;
    const size_t place = tide_pools.service_count + i;
    memset(handle, 0, sizeof *handle);
    handle->end.request_topic = tide_pools.service_names + 2u * place * tide_pools.service_name_bytes;
    handle->end.reply_topic = handle->end.request_topic + tide_pools.service_name_bytes;
    handle->end.reader.samples = tide_pools.service_samples + place * tide_pools.service_depth;
    handle->asked = tide_pools.asked + i * tide_pools.client_request_count;
    memset(handle->asked, 0, tide_pools.client_request_count * sizeof *handle->asked);
    return handle;
  }
  return NULL;
}

rcl_ret_t rclc_client_init(rcl_client_t *client, const rcl_node_t *node,
                           const rosidl_service_type_support_t *type_support, const char *service_name,
                           const rmw_qos_profile_t *qos_profile) {
  if (client == NULL || type_support == NULL || service_name == NULL || qos_profile == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (!tide_compat_is_node(node)) return tide_compat_refuse_node(node);
  if (!TIDE_SERVICE_OBJECTS) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  tide_client_handle_t *handle = free_place();
  if (handle == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_CLIENTS);
  const int status =
      tide_compat_open_end(&handle->end, TIDE_XRCE_KIND_REQUESTER, node, type_support, service_name, qos_profile);
  if (status == TIDE_OK) client->impl = handle;
  return tide_compat_result_of_service(status);
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
    const int status = tide_compat_close_end(&client->impl->end);
    if (status != TIDE_OK) return tide_compat_result(status);
  }
  client->impl = NULL;
  return RCL_RET_OK;
}

/* ---- requests without an answer ----
 *
 * Ids on the wire have 16 bits and come round after 65,526 messages; then the older one of the same id gives way. */

static uintptr_t enter(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_enter(platform);
}

static void leave(uintptr_t critical) {
  const tide_platform_t *platform = tide_port_platform();
  tide_platform_exit(platform, critical);
}

static int64_t note(tide_client_handle_t *client, uint16_t request) {
  const uintptr_t critical = enter();
  tide_asked_t *place = client->asked;
  for (tide_asked_t *other = client->asked; other < client->asked + tide_pools.client_request_count; other++) {
    if (other->sequence_number != 0 && other->request == request) {
      place = other;
      break;
    }
    if (other->sequence_number < place->sequence_number) place = other; /* free ones first, then the oldest */
  }
  if (place->sequence_number != 0) client->forgotten++;
  const int64_t number = ++client->sequence_number;
  *place = (tide_asked_t){number, request};
  leave(critical);
  return number;
}

/* The number of an unanswered request, which is one no more; 0: there is none of this id. */
static int64_t answer(tide_client_handle_t *client, uint16_t request) {
  int64_t number = 0;
  const uintptr_t critical = enter();
  for (tide_asked_t *asked = client->asked; asked < client->asked + tide_pools.client_request_count; asked++) {
    if (asked->sequence_number == 0 || asked->request != request) continue;
    number = asked->sequence_number;
    asked->sequence_number = 0;
  }
  if (number == 0) client->unexpected++;
  leave(critical);
  return number;
}

static bool forget(tide_client_handle_t *client, int64_t sequence_number) {
  bool known = false;
  const uintptr_t critical = enter();
  for (tide_asked_t *asked = client->asked; asked < client->asked + tide_pools.client_request_count; asked++) {
    if (asked->sequence_number != sequence_number) continue;
    asked->sequence_number = 0;
    known = true;
  }
  leave(critical);
  return known;
}

/* Noted before it leaves: the reply may come in another context. */
int tide_compat_send_request(tide_client_handle_t *client, const void *request, int64_t *number,
                             bool (*agrees)(const tide_write_t *write, void *context), void *context) {
  const tide_message_type_t *type = client->end.type->request;
  tide_write_t write;
  int status = tide_compat_begin_end(&client->end, &write, tide_message_size(type, request), client->end.wait_ms);
  if (status != TIDE_OK) return status;
  type->encode(&write.cdr, request);
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

static rcl_ret_t take(tide_client_handle_t *client, rmw_service_info_t *info, void *response) {
  tide_service_end_t *end = &client->end;
  memset(info, 0, sizeof *info);
  const tide_sample_t *sample = tide_compat_peek_end(end, TIDE_REPLY_HEADER_BYTES);
  while (sample != NULL && info->request_id.sequence_number == 0) {
    info->request_id.sequence_number = answer(client, request_of(sample));
    if (info->request_id.sequence_number == 0) {
      tide_session_take_done(&end->support->session, &end->reader);
      sample = tide_compat_peek_end(end, TIDE_REPLY_HEADER_BYTES);
    }
  }
  if (sample == NULL) return RCL_RET_CLIENT_TAKE_FAILED;
  info->received_timestamp = sample->arrived_ns;
  return tide_compat_result(
      tide_compat_decode_end(end, sample, TIDE_REPLY_HEADER_BYTES, end->type->response, response));
}

rcl_ret_t rcl_take_response_with_info(const rcl_client_t *client, rmw_service_info_t *request_header,
                                      void *ros_response) {
  if (!rcl_client_is_valid(client) || request_header == NULL || ros_response == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  return take(client->impl, request_header, ros_response);
}

rcl_ret_t rcl_take_response(const rcl_client_t *client, rmw_request_id_t *request_header, void *ros_response) {
  rmw_service_info_t info;
  if (request_header == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t result = rcl_take_response_with_info(client, &info, ros_response);
  if (result == RCL_RET_OK) *request_header = info.request_id;
  return result;
}

/* ---- in an executor ---- */

static void execute(tide_callback_t *callback, void *context) {
  (void)callback;
  const rclc_executor_handle_t *handle = context;
  rmw_service_info_t info;
  if (take(handle->impl, &info, handle->data) != RCL_RET_OK) return;
  if (handle->type == RCLC_CLIENT_WITH_REQUEST_ID) {
    handle->client_callback_with_request_id(handle->data, &info.request_id);
  } else {
    handle->client_callback(handle->data);
  }
}

static rclc_executor_handle_t *new_handle(rclc_executor_t *executor, rcl_client_t *client, void *response,
                                          rclc_executor_handle_type_t type, rcl_ret_t *result) {
  if (!rcl_client_is_valid(client) || response == NULL) {
    *result = tide_compat_result(TIDE_ERROR_ARGUMENT);
    return NULL;
  }
  rclc_executor_handle_t *handle = tide_compat_new_end_handle(executor, &client->impl->end, type, result);
  if (handle == NULL) return NULL;
  handle->client = client;
  handle->data = response;
  tide_callback_t *callback = &client->impl->end.callback;
  callback->kind = TIDE_CALLBACK_CLIENT;
  callback->execute = execute;
  callback->handle = client;
  return handle;
}

rcl_ret_t rclc_executor_add_client(rclc_executor_t *executor, rcl_client_t *client, void *response_msg,
                                   rclc_client_callback_t callback) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle = new_handle(executor, client, response_msg, RCLC_CLIENT, &result);
  if (handle == NULL) return result;
  handle->client_callback = callback;
  return tide_compat_add_end_handle(executor, handle);
}

rcl_ret_t rclc_executor_add_client_with_request_id(rclc_executor_t *executor, rcl_client_t *client, void *response_msg,
                                                   rclc_client_callback_with_request_id_t callback) {
  rcl_ret_t result = RCL_RET_OK;
  if (callback == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rclc_executor_handle_t *handle = new_handle(executor, client, response_msg, RCLC_CLIENT_WITH_REQUEST_ID, &result);
  if (handle == NULL) return result;
  handle->client_callback_with_request_id = callback;
  return tide_compat_add_end_handle(executor, handle);
}

/* ---- chains ---- */

rcl_ret_t tide_rclc_client_set_priority(rcl_client_t *client, tide_priority_t priority) {
  if (!rcl_client_is_valid(client)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_compat_set_end_priority(&client->impl->end, priority));
}

tide_callback_t *tide_rclc_client_callback(const rcl_client_t *client) {
  return rcl_client_is_valid(client) ? tide_compat_callback_of_end(&client->impl->end) : NULL;
}

rcl_ret_t tide_rclc_chain_add_client(tide_chain_t *chain, rcl_client_t *client) {
  if (!rcl_client_is_valid(client)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return tide_compat_result(tide_compat_add_end_to_chain(chain, &client->impl->end));
}

rcl_ret_t tide_rclc_client_get_counters(const rcl_client_t *client, tide_client_counters_t *counters) {
  if (!rcl_client_is_valid(client) || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_client_handle_t *handle = client->impl;
  memset(counters, 0, sizeof *counters);
  const uintptr_t critical = enter();
  counters->received = handle->end.reader.received;
  counters->dropped = handle->end.reader.dropped;
  counters->decode_errors = __atomic_load_n(&handle->end.decode_errors, __ATOMIC_RELAXED);
  counters->forgotten = handle->forgotten;
  counters->unexpected = handle->unexpected;
  for (size_t i = 0; i < tide_pools.client_request_count; i++) {
    if (handle->asked[i].sequence_number != 0) counters->unanswered++;
  }
  leave(critical);
  return RCL_RET_OK;
}
