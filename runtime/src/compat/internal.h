/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef TIDE_COMPAT_INTERNAL_H
#define TIDE_COMPAT_INTERNAL_H

#include "rcutils/logging.h"
#include "tide/pool_handles.h"
#include "tide/status.h"

/* The platform's critical section and clock. */
static inline uintptr_t tide_compat_enter(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_enter(platform);
}
static inline void tide_compat_leave(uintptr_t critical) {
  const tide_platform_t *platform = tide_port_platform();
  tide_platform_exit(platform, critical);
}
static inline int64_t tide_compat_now_ns(void) {
  const tide_platform_t *platform = tide_port_platform();
  return tide_platform_now_ns(platform);
}

/* Keeps the status for tide_rclc_last_status and turns it into the rcl code of the same meaning. */
rcl_ret_t tide_compat_result(int status);
/* The same where rcl has a code of its own for it, which is returned. */
rcl_ret_t tide_compat_refusal(int status, rcl_ret_t result);
/* rcl names a wrong name of a service otherwise than that of a topic. */
static inline rcl_ret_t tide_compat_result_of_service(int status) {
  return status == TIDE_ERROR_NAME || status == TIDE_ERROR_CAPACITY_NAMES
             ? tide_compat_refusal(status, RCL_RET_SERVICE_NAME_INVALID)
             : tide_compat_result(status);
}

/* The end of each write of the program's. */
static inline int tide_compat_write_end(tide_support_t *support, tide_write_t *write) {
  return support->keep != NULL ? support->keep(support, write) : tide_session_write_end(write);
}

/* number: of the request, before its reply can come. agrees: looks at the request, written out, and may keep it from
 * being sent (TIDE_ERROR_STATE); may be null. */
int tide_compat_send_request(tide_client_handle_t *client, const void *request, int64_t *number,
                             bool (*agrees)(const tide_write_t *write, void *context), void *context);

/* rcl_send_response for the runtime itself, which goes by the status: tide_rclc_last_status may be another thread's. */
int tide_compat_send_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, const void *response);

/* The trigger that calls the program's function; object: the executor. */
bool tide_compat_ask_program(tide_callback_t *const *callbacks, size_t count, void *object);
/* Takes the next message of a subscription and calls the program's function with it; context: the handle. */
void tide_compat_execute_subscription(tide_callback_t *callback, void *context);

/* Gets each line besides the output handler; null: no more. */
void tide_compat_set_log_publisher(rcutils_logging_output_handler_t function);
/* Called with each failure and its code; null: no more. */
void tide_compat_on_error(void (*tell)(int status, rcl_ret_t result));

bool tide_compat_is_ready(tide_support_t *support);

/* Deadline of a timeout in ms from now. */
int64_t tide_compat_deadline(int64_t timeout_ms);

/* Until `done` holds or the deadline has passed: sleep, and when `digest` is set handle what arrives, first come first
 * served. Without `digest` any number of threads may wait, also while an executor spins. */
int tide_compat_wait(tide_support_t *support, bool (*done)(tide_support_t *support, void *context), void *context,
                     int64_t deadline_ns, bool digest);
/* Besides executors, whose lanes digest what belongs to them, frames are handed on by one caller at a time: who waits
 * for an answer, or the link's context while the objects are being created, so that a program that only publishes finds
 * its session again, too. False: somebody else does; those who wait are woken when that ends. */
bool tide_compat_begin_digest(tide_support_t *support);
void tide_compat_end_digest(tide_support_t *support);
/* Those who are in tide_compat_wait look again. From any thread or interrupt. */
void tide_compat_wake_waiters(tide_support_t *support);
/* A frame of this executor that was digested may have kept one of another executor waiting. */
void tide_compat_wake_others(const tide_executor_handle_t *handle);
/* The same for callers that must: tide_session_wait_* until the condition holds. */
int tide_compat_wait_session(tide_support_t *support, tide_object_t *object, tide_session_state_t state,
                             int64_t deadline_ns);

/* Out of its executor, if it is in one. With several lanes TIDE_ERROR_STATE, and nothing changed, while it runs. */
int tide_compat_remove_callback(tide_callback_t *callback);

/* The runtime's side of an executor; null: it was not initialised, or its support has ended. */
tide_executor_handle_t *tide_compat_executor_of(const rclc_executor_t *executor);
/* A free place in the executor, its own once it is committed; null: there is none. */
rclc_executor_handle_t *tide_compat_next_handle(rclc_executor_t *executor, rclc_executor_handle_type_t type);
void tide_compat_commit_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle);
int tide_compat_remove_handle(tide_executor_handle_t *executor, rclc_executor_handle_t *handle);
rcl_ret_t tide_compat_refusal_of_add(int status);

/* Names of a node: "/namespace/name" into full, its last part is the node's name; TIDE_ERROR_NAME when a part breaks
 * the rules, TIDE_ERROR_CAPACITY_NAMES when it does not fit. */
int tide_compat_node_name(tide_node_handle_t *node, const char *name, const char *namespace_);
bool tide_compat_is_node_name(const char *name);
/* "rt" and the fully qualified name of a topic of a node; errors as above. */
int tide_compat_topic_name(char *destination, const char *topic, const tide_node_handle_t *node);
/* "rq/...Request" and "rr/...Reply"; tide_pools.service_name_bytes each. */
int tide_compat_service_names(char *request, char *reply, const char *service, const tide_node_handle_t *node);

/* A replier or requester with its reader. Places of a service or client first, from its pool; type, names and samples
 * are set there. Also undoes what was created in part. */
int tide_compat_open_end(tide_service_end_t *end, uint8_t kind, const rcl_node_t *node,
                         const rosidl_service_type_support_t *type_support, const char *service_name,
                         const rmw_qos_profile_t *qos);
/* Out of its executor and off the agent; its place is free then. As rcl_publisher_fini. */
int tide_compat_close_end(tide_service_end_t *end);
/* Begins a sample that leaves with the callback's priority; wait_ms: for a free node, at most. */
int tide_compat_begin_end(tide_service_end_t *end, tide_write_t *write, size_t bytes, int32_t wait_ms);
/* The oldest sample's octets behind its header of so many, or null. Decodes, and lets the sample go. */
const tide_sample_t *tide_compat_peek_end(tide_service_end_t *end, uint32_t header_bytes);
int tide_compat_decode_end(tide_service_end_t *end, const tide_sample_t *sample, uint32_t header_bytes,
                           const tide_message_type_t *type, void *message);
/* The same for a response: behind who asked, the octets of the response are to be written. */
int tide_compat_begin_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, tide_write_t *write,
                               size_t bytes);
/* In the link's context: services whose responses wait for a node are called again. */
void tide_compat_retry_services(tide_support_t *support);
int tide_compat_set_end_priority(tide_service_end_t *end, tide_priority_t priority);
int tide_compat_add_end_to_chain(tide_chain_t *chain, tide_service_end_t *end);
tide_callback_t *tide_compat_callback_of_end(tide_service_end_t *end);
/* As for subscriptions: the caller fills in the handle and the callback's kind and function between the two. */
rclc_executor_handle_t *tide_compat_new_end_handle(rclc_executor_t *executor, tide_service_end_t *end,
                                                   rclc_executor_handle_type_t type, rcl_ret_t *result);
rcl_ret_t tide_compat_add_end_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle);

/* The topic, its publisher or subscriber and the writer or reader, created on the agent; waits for the answer. */
int tide_compat_create_topic(tide_support_t *support, tide_topic_t *topic, const tide_node_handle_t *node,
                             const tide_message_type_t *type, const char *name, const rmw_qos_profile_t *qos,
                             bool writer);
/* Also of what was created in part. TIDE_ERROR_FULL: what remains is still registered, so its memory is not free. */
int tide_compat_delete_topic(tide_support_t *support, tide_topic_t *topic);
int tide_compat_create_object(tide_support_t *support, tide_object_t *object, bool wait);
/* Deletes on the agent; waits for a free node as long as the program allows. Success too when there is no such object.
 */
int tide_compat_delete_object(tide_support_t *support, tide_object_t *object);

/* Local delivery, called through the handles that have it. */
typedef struct tide_local_functions {
  int (*publish)(const tide_publisher_handle_t *publisher, const void *message);
  void (*close_publisher)(tide_publisher_handle_t *publisher);
  void (*close_subscription)(tide_subscription_handle_t *subscription);
  uint16_t (*waiting)(const tide_subscription_handle_t *subscription);
  /* Whether the next message is a local one. */
  bool (*is_next)(tide_subscription_handle_t *subscription);
  /* In place, then it is to be released; or decoded into memory. Null: there is none, or it does not fit. */
  const void *(*take)(tide_subscription_handle_t *subscription, void *memory, rmw_message_info_t *info);
  void (*release)(const void *message);
} tide_local_functions_t;
/* As rclc's, without or with objects on the agent. */
int tide_compat_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                               const rosidl_message_type_support_t *type_support, const char *topic_name,
                               const rmw_qos_profile_t *qos, bool on_agent);
int tide_compat_subscription_init(rcl_subscription_t *subscription, const rcl_node_t *node,
                                  const rosidl_message_type_support_t *type_support, const char *topic_name,
                                  const rmw_qos_profile_t *qos, bool on_agent);
/* To the agent. */
int tide_compat_send(tide_publisher_handle_t *publisher, const void *message);
/* The two halves of it, around the encoding of so many octets at most. begin waits for a place, end as the stock does
 * where the program asked for that. */
int tide_compat_begin_sample(tide_publisher_handle_t *publisher, tide_write_t *write, uint32_t bytes);
int tide_compat_end_sample(tide_publisher_handle_t *publisher, tide_write_t *write);
/* Whether everything on the stream of a publisher has arrived; context: its handle. */
bool tide_compat_is_confirmed(tide_support_t *support, void *context);
/* What a publisher sends with whose samples are written in pieces. */
typedef struct tide_continuous {
  int (*send_pieces)(tide_publisher_handle_t *publisher, const void *message);
} tide_continuous_t;

/* A node that was initialised, of a support that lives. */
bool tide_compat_is_node(const rcl_node_t *node);
/* What an init returns that was given none; rclc sees to null pointers, rcl to the rest. */
static inline rcl_ret_t tide_compat_refuse_node(const rcl_node_t *node) {
  return tide_compat_refusal(TIDE_ERROR_ARGUMENT, node == NULL ? RCL_RET_INVALID_ARGUMENT : RCL_RET_NODE_INVALID);
}
/* The oldest message that waits; RCL_RET_SUBSCRIPTION_TAKE_FAILED: none does. */
rcl_ret_t tide_compat_take(tide_subscription_handle_t *handle, void *message, rmw_message_info_t *info);
/* The same for the callback: *message is `memory`, or a local message that lies elsewhere and is to be released. */
rcl_ret_t tide_compat_take_next(tide_subscription_handle_t *handle, void *memory, const void **message);
bool tide_compat_is_reliable(const rmw_qos_profile_t *qos);

/* Opens the link of the options for the session, starts connecting. */
int tide_compat_open(tide_support_t *support, const rmw_init_options_t *options);
void tide_compat_close(tide_support_t *support);
rmw_init_options_t tide_compat_default_options(void);
bool tide_compat_has_custom_transport(void);
/* For ports that run custom links in a context of their own; null before rmw_uros_set_custom_transport. */
const tide_custom_transport_t *tide_compat_custom_functions(void);
int tide_compat_open_custom(tide_support_t *support);
void tide_compat_close_custom(tide_support_t *support);
/* What a caller that waits must run meanwhile: null where the link has a context of its own. */
const tide_pump_t *tide_compat_pump(tide_support_t *support);
/* The same as the housekeeping of an executor's source; context: the support. */
int64_t tide_compat_poll(void *context);
/* The support that is in use, or null. */
tide_support_t *tide_compat_support(void);

#endif
