/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the modules of this folder: support.c, node.c, topics.c, services.c, executor.c and those
 * built on them. */
#pragma once

#include "tide/message_memory.h"
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

/* ---- error.c ---- */

/* Stores the status for tide_rclc_last_status and translates it to an rcl code. */
rcl_ret_t tide_compat_result(int status);
/* As tide_compat_result, with a specific rcl code, which is returned. */
rcl_ret_t tide_compat_refusal(int status, rcl_ret_t result);

/* Counts a message of a topic (named as on the wire, "rt/name") that could not be decoded, or a reply that fits no
 * node. On a desktop the first such message is reported on stderr, because the usual cause is a message without memory,
 * a mistake that nobody would look for in a counter. Unless the sender is at fault, spin_some of the handle's executor
 * then returns an error; a null handle belongs to no executor. */
void tide_compat_unread(int status, uint32_t *count, const char *topic, const rclc_executor_handle_t *handle);

/* Types of the runtime's own messages and services. The runtime only encodes or only decodes each of them; for the
 * other direction it has one of the two functions below. */
void tide_compat_encode_nothing(tide_cdr_t *cdr, const void *message);
void tide_compat_decode_nothing(tide_cdr_t *cdr, void *message);
#define TIDE_COMPAT_MESSAGE_TYPE(PACKAGE, NAME, BYTES, ENCODE, DECODE) \
  { PACKAGE, "msg", NAME, PACKAGE "::msg::dds_::" NAME "_", BYTES, 0, 0, NULL, ENCODE, DECODE }
#define TIDE_COMPAT_MESSAGE_SUPPORT(TYPE) \
  { TIDE_TYPESUPPORT_IDENTIFIER, &(TYPE), get_message_typesupport_handle_function }
#define TIDE_COMPAT_SERVICE_PART(PACKAGE, PART, BYTES, ENCODE, DECODE) \
  { PACKAGE, "srv", PART, PACKAGE "::srv::dds_::" PART "_", BYTES, 0, 0, NULL, ENCODE, DECODE }
#define TIDE_COMPAT_SERVICE_TYPE(PACKAGE, NAME, BYTES, DECODE, ENCODE)                                  \
  static const tide_message_type_t NAME##_parts[2] = {                                                  \
      TIDE_COMPAT_SERVICE_PART(PACKAGE, #NAME "_Request", BYTES, tide_compat_encode_nothing, DECODE),   \
      TIDE_COMPAT_SERVICE_PART(PACKAGE, #NAME "_Response", BYTES, ENCODE, tide_compat_decode_nothing)}; \
  static const tide_service_type_t NAME = {PACKAGE, #NAME, &NAME##_parts[0], &NAME##_parts[1]};
#define TIDE_COMPAT_SERVICE_SUPPORT(TYPE) \
  { TIDE_TYPESUPPORT_IDENTIFIER, &(TYPE), get_service_typesupport_handle_function }

/* ---- support.c ---- */

/* Called by an executor's source before the executor looks for work: polls the session if the link has no context of
 * its own. Returns the time when it has to be called next. */
int64_t tide_compat_poll(tide_support_t *support);
bool tide_compat_is_ready(tide_support_t *support);
/* Deadline of a timeout in ms from now. */
int64_t tide_compat_deadline(int64_t timeout_ms);
/* Sleeps until `done` holds or the deadline has passed. With `digest`, it meanwhile processes received frames in FIFO
 * order. Without `digest`, any number of threads may wait, even while an executor spins. */
int tide_compat_wait(tide_support_t *support, bool (*done)(tide_support_t *support, void *context), void *context,
                     int64_t deadline_ns, bool digest);
/* Like tide_compat_wait, but uses tide_session_wait_*, for a condition of the session. */
int tide_compat_wait_session(tide_support_t *support, tide_object_t *object, tide_session_state_t state,
                             int64_t deadline_ns);
/* Makes callers of tide_compat_wait check their condition again. Any thread or interrupt may call it. */
void tide_compat_wake_waiters(tide_support_t *support);
/* Wakes the other executors, because a processed frame may have blocked their frames. */
void tide_compat_wake_others(const tide_executor_handle_t *handle);

/* ---- node.c ---- */

/* True if the node is initialised and its support is alive. */
bool tide_compat_is_node(const rcl_node_t *node);
/* Result of an init call that was given an invalid node: rclc's code if a pointer is null, otherwise rcl's. */
static inline rcl_ret_t tide_compat_refuse_node(const rcl_node_t *node) {
  return tide_compat_refusal(TIDE_ERROR_ARGUMENT, node == NULL ? RCL_RET_INVALID_ARGUMENT : RCL_RET_NODE_INVALID);
}
/* Writes "rt" and the fully qualified name of a node's topic. Returns TIDE_ERROR_NAME when a part breaks the rules,
 * TIDE_ERROR_CAPACITY_NAMES when the name does not fit. */
int tide_compat_topic_name(char *destination, const char *topic, const tide_node_handle_t *node);
/* Writes "rq/...Request" and "rr/...Reply", each into tide_pools.service_name_bytes. */
int tide_compat_service_names(char *request, char *reply, const char *service, const tide_node_handle_t *node);
bool tide_compat_is_reliable(const rmw_qos_profile_t *qos);
int tide_compat_create_object(tide_support_t *support, tide_object_t *object, bool wait);
/* Deletes an object on the agent; waits for a free node as long as the program's settings allow. Also succeeds if the
 * agent has no such object.
 */
int tide_compat_delete_object(tide_support_t *support, tide_object_t *object);

/* ---- topics.c ---- */

/* Like rclc's functions. on_agent false: without objects on the agent. */
int tide_compat_publisher_init(rcl_publisher_t *publisher, const rcl_node_t *node,
                               const rosidl_message_type_support_t *type_support, const char *topic_name,
                               const rmw_qos_profile_t *qos, bool on_agent);
int tide_compat_subscription_init(rcl_subscription_t *subscription, const rcl_node_t *node,
                                  const rosidl_message_type_support_t *type_support, const char *topic_name,
                                  const rmw_qos_profile_t *qos, bool on_agent);
/* Begins a sample of at most this many octets; waits up to wait_ms for a free node. */
int tide_compat_write_begin(tide_support_t *support, tide_write_t *write, uint16_t object, bool reliable,
                            tide_priority_t priority, uint32_t bytes, int32_t wait_ms);
/* Ends a write of the program. */
static inline int tide_compat_write_end(tide_support_t *support, tide_write_t *write) {
  return support->keep != NULL ? support->keep(support, write) : tide_session_write_end(write);
}
/* Sends a message to the agent. */
int tide_compat_send(tide_publisher_handle_t *publisher, const void *message);
/* The two halves of tide_compat_send, before and after the encoding. tide_compat_begin_sample waits for a node.
 * tide_compat_end_sample waits for the acknowledgment, as the stock library does, if the program selected this. */
int tide_compat_begin_sample(const tide_publisher_handle_t *publisher, tide_write_t *write, uint32_t bytes);
int tide_compat_end_sample(tide_publisher_handle_t *publisher, tide_write_t *write);
/* Call it before deleting an object that has sent with this priority: the deletion travels on the stream of requests
 * and must not overtake the object's last samples. */
void tide_compat_await_delivery(tide_support_t *support, bool reliable, tide_priority_t priority);
/* Status messages of a program are sent at once or not at all, in any send mode, even within a round whose outputs are
 * sent together. Half of the pool is reserved for other messages. tide_compat_send_now returns the errors of
 * tide_session_write_begin. promised: number of callers that were admitted but have not acquired their node yet. */
bool tide_compat_has_room_locked(const tide_support_t *support, uint32_t promised);
int tide_compat_send_now(const tide_publisher_handle_t *publisher, const void *message);
/* Functions of a publisher whose samples are written in pieces. */
typedef struct tide_continuous {
  int (*send_pieces)(tide_publisher_handle_t *publisher, const void *message);
} tide_continuous_t;

/* Takes the oldest waiting message; RCL_RET_SUBSCRIPTION_TAKE_FAILED: there is none. */
rcl_ret_t tide_compat_take(tide_subscription_handle_t *handle, void *message, rmw_message_info_t *info);
/* Like tide_compat_take, but for the callback. *message is then `memory`, or a local message in other memory that must
 * be released. */
rcl_ret_t tide_compat_take_next(tide_subscription_handle_t *handle, void *memory, const void **message);

/* Local delivery (local.c), called through the function pointers of the handles that use it. */
typedef struct tide_local_functions {
  int (*publish)(const tide_publisher_handle_t *publisher, const void *message);
  void (*close_publisher)(tide_publisher_handle_t *publisher);
  void (*close_subscription)(tide_subscription_handle_t *subscription);
  uint16_t (*waiting)(const tide_subscription_handle_t *subscription);
  /* True if the next message is a local one. */
  bool (*is_next)(tide_subscription_handle_t *subscription);
  /* Takes a message, either in place (release it afterwards) or decoded into memory. Returns null if no message waits
   * or the message does not fit. */
  const void *(*take)(tide_subscription_handle_t *subscription, void *memory, rmw_message_info_t *info);
  void (*release)(const void *message);
} tide_local_functions_t;

/* ---- services.c ---- */

/* *number is set before the reply can arrive. `agrees` inspects the encoded request and may refuse to send it
 * (TIDE_ERROR_STATE); it may be null. */
int tide_compat_send_request(tide_client_handle_t *client, const void *request, int64_t *number,
                             bool (*agrees)(const tide_write_t *write, void *context), void *context);
/* Like rcl_send_response, for the runtime's own services. Returns the status, because tide_rclc_last_status may hold
 * that of another thread. */
int tide_compat_send_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, const void *response);
/* Never waits. Writes the client's identity; the caller appends the response. */
int tide_compat_begin_response(tide_service_handle_t *service, const rmw_request_id_t *request_id, tide_write_t *write,
                               size_t bytes);
/* Length of the longest response that a node can hold. */
uint32_t tide_compat_response_capacity(void);
/* Runs in the link's context: retries the services whose responses wait for a node. */
void tide_compat_retry_services(tide_support_t *support);
int tide_compat_set_end_priority(tide_service_end_t *end, tide_priority_t priority);

/* ---- executor.c ---- */

/* The runtime's executor behind an rclc executor; null if the latter was not initialised or its support has ended. */
tide_executor_handle_t *tide_compat_executor_of(const rclc_executor_t *executor);
/* Adds a callback to the executor: a free entry becomes `wanted`, and *place points to it. `impl` is the runtime's
 * object; `reader` is the callback's reader, or null. */
rcl_ret_t tide_compat_add_handle(rclc_executor_t *executor, const rclc_executor_handle_t *wanted, void *impl,
                                 tide_callback_t *callback, tide_reader_t *reader, rclc_executor_handle_t **place);
/* The two halves of tide_compat_add_handle, before and after the call of the runtime's executor; the second gets that
 * call's status. */
int tide_compat_open_handle(rclc_executor_t *executor, const rclc_executor_handle_t *wanted, void *impl,
                            tide_callback_t *callback, rclc_executor_handle_t **handle);
rcl_ret_t tide_compat_commit_handle(rclc_executor_t *executor, rclc_executor_handle_t *handle, int status);
/* Removes a callback from its executor, if it is in one. With several lanes it returns TIDE_ERROR_STATE and changes
 * nothing while the callback runs. */
int tide_compat_remove_callback(tide_callback_t *callback);
/* Like tide_compat_remove_callback, and also frees the executor's entry. */
int tide_compat_leave_executor(tide_callback_t *callback, rclc_executor_handle_t **handle);
