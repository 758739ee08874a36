/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__EXECUTOR_H_
#define RCLC__EXECUTOR_H_

#include "rcl/error_handling.h"
#include "rclc/executor_handle.h"
#include "rclc/sleep.h"
#include "rclc/types.h"

TIDE_EXTERN_C_BEGIN

typedef bool (*rclc_executor_trigger_t)(rclc_executor_handle_t *handles, unsigned int size, void *object);

struct tide_executor_handle;

typedef struct rclc_executor_t_s {
  rcl_context_t *context;
  rclc_executor_handle_t *handles; /* array of max_handles, in order of registration */
  size_t max_handles;
  size_t index; /* handles added so far */
  uint64_t timeout_ns;
  struct tide_executor_handle *impl;
} rclc_executor_t;

rclc_executor_t rclc_executor_get_zero_initialized_executor(void);
/* Takes number_of_handles entries of the application's pool: one for each timer, subscription, service, client, action
 * and guard condition. */
rcl_ret_t rclc_executor_init(rclc_executor_t *executor, rcl_context_t *context, const size_t number_of_handles,
                             const rcl_allocator_t *allocator);
rcl_ret_t rclc_executor_fini(rclc_executor_t *executor);
/* Longest wait of one round of rclc_executor_spin. Default 1 s. The value has no effect on latency, because no wake-up
 * is ever lost. */
rcl_ret_t rclc_executor_set_timeout(rclc_executor_t *executor, const uint64_t timeout_ns);
rcl_ret_t rclc_executor_prepare(rclc_executor_t *executor);

rcl_ret_t rclc_executor_add_subscription(rclc_executor_t *executor, rcl_subscription_t *subscription, void *msg,
                                         rclc_subscription_callback_t callback,
                                         rclc_executor_handle_invocation_t invocation);
rcl_ret_t rclc_executor_add_subscription_with_context(rclc_executor_t *executor, rcl_subscription_t *subscription,
                                                      void *msg, rclc_subscription_callback_with_context_t callback,
                                                      void *context, rclc_executor_handle_invocation_t invocation);
rcl_ret_t rclc_executor_add_timer(rclc_executor_t *executor, rcl_timer_t *timer);
rcl_ret_t rclc_executor_add_guard_condition(rclc_executor_t *executor, rcl_guard_condition_t *gc,
                                            rclc_gc_callback_t callback);
/* The callback fills in response_msg, which is sent when the callback returns. If no pool buffer is free then, the
 * response is sent as soon as a buffer is free, before the next request is taken. To answer later, the callback calls
 * tide_rclc_service_defer. */
rcl_ret_t rclc_executor_add_service(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                    void *response_msg, rclc_service_callback_t callback);
rcl_ret_t rclc_executor_add_service_with_request_id(rclc_executor_t *executor, rcl_service_t *service,
                                                    void *request_msg, void *response_msg,
                                                    rclc_service_callback_with_request_id_t callback);
rcl_ret_t rclc_executor_add_service_with_context(rclc_executor_t *executor, rcl_service_t *service, void *request_msg,
                                                 void *response_msg, rclc_service_callback_with_context_t callback,
                                                 void *context);
rcl_ret_t rclc_executor_add_client(rclc_executor_t *executor, rcl_client_t *client, void *response_msg,
                                   rclc_client_callback_t callback);
rcl_ret_t rclc_executor_add_client_with_request_id(rclc_executor_t *executor, rcl_client_t *client, void *response_msg,
                                                   rclc_client_callback_with_request_id_t callback);
/* handles_number: concurrent goals. ros_goal_request: array of handles_number requests, ros_goal_request_size bytes
 * apart; a request is reused when its goal's handle is free. A null cancel_callback refuses cancellations. Takes one
 * handle of the executor. */
rcl_ret_t rclc_executor_add_action_server(rclc_executor_t *executor, rclc_action_server_t *action_server,
                                          size_t handles_number, void *ros_goal_request, size_t ros_goal_request_size,
                                          rclc_action_server_handle_goal_callback_t goal_callback,
                                          rclc_action_server_handle_cancel_callback_t cancel_callback, void *context);
/* The callbacks for feedback and cancellations may be null. Takes one handle of the executor. */
rcl_ret_t rclc_executor_add_action_client(rclc_executor_t *executor, rclc_action_client_t *action_client,
                                          size_t handles_number, void *ros_result_response, void *ros_feedback,
                                          rclc_action_client_goal_callback_t goal_callback,
                                          rclc_action_client_feedback_callback_t feedback_callback,
                                          rclc_action_client_result_callback_t result_callback,
                                          rclc_action_client_cancel_callback_t cancel_callback, void *context);
rcl_ret_t rclc_executor_remove_subscription(rclc_executor_t *executor, const rcl_subscription_t *subscription);
rcl_ret_t rclc_executor_remove_timer(rclc_executor_t *executor, const rcl_timer_t *timer);
rcl_ret_t rclc_executor_remove_service(rclc_executor_t *executor, const rcl_service_t *service);
rcl_ret_t rclc_executor_remove_client(rclc_executor_t *executor, const rcl_client_t *client);
rcl_ret_t rclc_executor_remove_guard_condition(rclc_executor_t *executor, const rcl_guard_condition_t *gc);

/* Waits at most timeout_ns for a ready callback, then runs the ready callbacks, at most as many as there are handles.
 * Returns RCL_RET_OK, also at the timeout, like the stock library. RCL_RET_ERROR: a message was dropped because it does
 * not fit the memory of the program's message; the other callbacks have run. Of the calls below only
 * rclc_executor_spin_one_period also returns this code. */
rcl_ret_t rclc_executor_spin_some(rclc_executor_t *executor, const uint64_t timeout_ns);
/* Returns when tide_executor_stop(tide_rclc_executor_core(executor)) was called. */
rcl_ret_t rclc_executor_spin(rclc_executor_t *executor);
/* One spin_some per period, on the monotonic clock; missed periods are skipped. */
rcl_ret_t rclc_executor_spin_period(rclc_executor_t *executor, const uint64_t period);
rcl_ret_t rclc_executor_spin_one_period(rclc_executor_t *executor, const uint64_t period);

rcl_ret_t rclc_executor_set_trigger(rclc_executor_t *executor, rclc_executor_trigger_t trigger_function,
                                    void *trigger_object);
/* RCLC_SEMANTICS_RCLCPP_EXECUTOR (default): each callback takes its message when it starts, and what it publishes is
 * sent at once. RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME: a round takes the messages of all subscriptions before its
 * first callback. What its callbacks send to the agent (messages, requests, responses) is sent when the last callback
 * has ended, most urgent first. Messages that arrive meanwhile belong to the next round. Outgoing messages wait in the
 * pool, and are refused if the pool is full. Local messages (tide/rclc_local.h) are delivered at once.
 * RCL_RET_UNSUPPORTED: the executor has several lanes or the policy readyset. RCL_RET_ERROR: called within a round. */
typedef enum { RCLC_SEMANTICS_RCLCPP_EXECUTOR, RCLC_SEMANTICS_LOGICAL_EXECUTION_TIME } rclc_executor_semantics_t;
rcl_ret_t rclc_executor_set_semantics(rclc_executor_t *executor, rclc_executor_semantics_t semantics);
bool rclc_executor_trigger_any(rclc_executor_handle_t *handles, unsigned int size, void *obj);
bool rclc_executor_trigger_all(rclc_executor_handle_t *handles, unsigned int size, void *obj);
bool rclc_executor_trigger_one(rclc_executor_handle_t *handles, unsigned int size, void *obj);
bool rclc_executor_trigger_always(rclc_executor_handle_t *handles, unsigned int size, void *obj);

TIDE_EXTERN_C_END
#endif
