/* SPDX-License-Identifier: Apache-2.0 */
/* What services and clients have in common: an object on the agent that is written to and read from. */
#include <string.h>

#include "internal.h"
#include "tide/message_memory.h"

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
  /* The service's own name is what stands between the topic's prefix and suffix. */
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
  if (!TIDE_SERVICE_OBJECTS || (!TIDE_RELIABLE_STREAMS && tide_compat_is_reliable(qos))) return TIDE_ERROR_UNSUPPORTED;
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

/* The link's context looks for services whose responses wait. */
static void set_support(tide_service_end_t *end, tide_support_t *support) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  end->support = support;
  tide_platform_exit(platform, critical);
}

int tide_compat_open_end(tide_service_end_t *end, uint8_t kind, const rcl_node_t *node,
                         const rosidl_service_type_support_t *type_support, const char *service_name,
                         const rmw_qos_profile_t *qos) {
  set_support(end, node->impl->support);
  end->type = (const tide_service_type_t *)type_support->data;
  const int status = open_on_agent(end, kind, node->impl, service_name, qos);
  if (status != TIDE_OK && tide_compat_delete_object(end->support, &end->object) == TIDE_OK) set_support(end, NULL);
  return status;
}

static bool is_delivered(tide_support_t *support, void *context) {
  const tide_service_end_t *end = context;
  const uint8_t stream = TIDE_STREAM_RELIABLE(TIDE_PRIORITY_LEVEL(end->callback.priority));
  return !tide_compat_is_ready(support) || tide_daemon_is_idle(&support->session.daemon, stream);
}

int tide_compat_close_end(tide_service_end_t *end) {
  tide_support_t *support = end->support;
  int status = tide_compat_remove_callback(&end->callback);
  if (status != TIDE_OK) return status;
  if (end->handle != NULL) memset(end->handle, 0, sizeof *end->handle);
  end->handle = NULL;
  tide_session_remove_reader(&support->session, &end->reader);
  /* The deletion travels on level 0's stream and must not overtake the last message on another. */
  if (end->reader.reliable && TIDE_PRIORITY_LEVEL(end->callback.priority) != 0) {
    tide_compat_wait(support, is_delivered, end, tide_compat_deadline(support->destroy_timeout_ms), false);
  }
  status = tide_compat_delete_object(support, &end->object);
  if (status == TIDE_OK) set_support(end, NULL);
  return status;
}

typedef struct attempt {
  tide_service_end_t *end;
  tide_write_t *write;
  uint32_t bytes;
  int status;
} attempt_t;

static bool begun(tide_support_t *support, void *context) {
  attempt_t *attempt = context;
  const tide_service_end_t *end = attempt->end;
  attempt->status = tide_session_write_begin(&support->session, attempt->write, end->object.id, end->reader.reliable,
                                             end->callback.priority, attempt->bytes);
  return attempt->status != TIDE_ERROR_FULL;
}

int tide_compat_begin_end(tide_service_end_t *end, tide_write_t *write, size_t bytes, int32_t wait_ms) {
  attempt_t attempt = {end, write, (uint32_t)bytes, TIDE_OK};
  if (!begun(end->support, &attempt) && wait_ms != 0) {
    tide_compat_wait(end->support, begun, &attempt, tide_compat_deadline(wait_ms), false);
  }
  return attempt.status;
}

const tide_sample_t *tide_compat_peek_end(tide_service_end_t *end, uint32_t header_bytes) {
  tide_session_t *session = &end->support->session;
  for (;;) {
    const tide_sample_t *sample = tide_session_peek(session, &end->reader);
    if (sample == NULL || sample->length >= header_bytes) return sample;
    (void)__atomic_add_fetch(&end->decode_errors, 1u, __ATOMIC_RELAXED);
    tide_session_take_done(session, &end->reader);
  }
}

int tide_compat_decode_end(tide_service_end_t *end, const tide_sample_t *sample, uint32_t header_bytes,
                           const tide_message_type_t *type, void *message) {
  tide_cdr_t cdr;
  tide_cdr_reader(&cdr, sample->bytes + header_bytes, sample->length - header_bytes, sample->big_endian);
  type->decode(&cdr, message);
  tide_session_take_done(&end->support->session, &end->reader);
  if (cdr.status != TIDE_OK) (void)__atomic_add_fetch(&end->decode_errors, 1u, __ATOMIC_RELAXED);
  return cdr.status;
}

int tide_compat_set_end_priority(tide_service_end_t *end, tide_priority_t priority) {
  if (TIDE_PRIORITY_LEVEL(priority) > TIDE_LEVEL_MAXIMUM) return TIDE_ERROR_ARGUMENT;
  if (end->callback.executor != NULL) tide_executor_set_priority(end->callback.executor, &end->callback, priority);
  end->callback.priority = priority;
  return tide_session_set_reader_priority(&end->support->session, &end->reader, priority);
}

tide_callback_t *tide_compat_callback_of_end(tide_service_end_t *end) {
  return end->callback.executor == NULL ? NULL : &end->callback;
}

int tide_compat_add_end_to_chain(tide_chain_t *chain, tide_service_end_t *end) {
  if (chain == NULL || end->callback.executor == NULL) return TIDE_ERROR_ARGUMENT;
  const int position = tide_chain_add(chain, &end->callback);
  return position < 0 ? position : tide_compat_set_end_priority(end, end->callback.priority);
}

rclc_executor_handle_t *tide_compat_new_end_handle(rclc_executor_t *executor, tide_service_end_t *end,
                                                   rclc_executor_handle_type_t type, rcl_ret_t *result) {
  rclc_executor_handle_t *handle = NULL;
  int status = TIDE_OK;
  if (tide_compat_executor_of(executor) == NULL) {
    status = TIDE_ERROR_ARGUMENT;
  } else if (end->callback.executor != NULL) {
    status = TIDE_ERROR_EXISTS;
  } else {
    handle = tide_compat_next_handle(executor, type);
    status = handle == NULL ? TIDE_ERROR_CAPACITY_HANDLES : TIDE_OK;
  }
  if (handle != NULL) handle->impl = end;
  *result = tide_compat_result(status);
  return handle;
}

rcl_ret_t tide_compat_add_end_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle) {
  tide_service_end_t *end = handle->impl;
  end->callback.context = handle;
  const int status = tide_executor_add(&executor->impl->core, &end->callback);
  if (status != TIDE_OK) return tide_compat_refusal_of_add(status);
  tide_compat_commit_handle(executor, handle);
  end->handle = handle;
  tide_session_set_reader_owner(&end->support->session, &end->reader, executor->impl->number);
  for (uint8_t i = 0; i < end->reader.count; i++) tide_executor_notify(&end->callback);
  return RCL_RET_OK;
}
