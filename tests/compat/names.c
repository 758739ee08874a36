/* SPDX-License-Identifier: Apache-2.0 */
/* Every tier-1 name of micro-ROS for supports, options, nodes, publishers, subscriptions, services, timers, executors,
 * ping and time, and the names for actions and wait sets. Each name comes from the header that programs include for it,
 * and has the expected signature. The test is that this file compiles and links. */
#include <micro_ros_utilities/string_utilities.h>
#include <micro_ros_utilities/type_utilities.h>
#include <rcl/error_handling.h>
#include <rcl/event.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc/sleep.h>
#include <rcutils/allocator.h>
#include <rcutils/error_handling.h>
#include <rcutils/time.h>
#include <rmw/error_handling.h>
#include <rmw_microros/rmw_microros.h>
#include <uxr/client/transport.h>

/* ---- functions ---- */

/* Makes a pointer of exactly this type, so a function with another signature does not compile. */
#define NAME(result, name, ...)              \
  result (*check_##name(void))(__VA_ARGS__); \
  result (*check_##name(void))(__VA_ARGS__) { return name; }

/* supports */
NAME(rcl_ret_t, rclc_support_init, rclc_support_t *, int, char const *const *, rcl_allocator_t *)
NAME(rcl_ret_t, rclc_support_init_with_options, rclc_support_t *, int, char const *const *, rcl_init_options_t *,
     rcl_allocator_t *)
NAME(rcl_ret_t, rclc_support_fini, rclc_support_t *)
NAME(rmw_context_t *, rcl_context_get_rmw_context, rcl_context_t *)

/* options */
NAME(rcl_init_options_t, rcl_get_zero_initialized_init_options, void)
NAME(rcl_ret_t, rcl_init_options_init, rcl_init_options_t *, rcl_allocator_t)
NAME(rcl_ret_t, rcl_init_options_fini, rcl_init_options_t *)
NAME(rcl_ret_t, rcl_init_options_set_domain_id, rcl_init_options_t *, size_t)
NAME(rcl_ret_t, rcl_init_options_get_domain_id, const rcl_init_options_t *, size_t *)
NAME(rmw_init_options_t *, rcl_init_options_get_rmw_init_options, rcl_init_options_t *)
NAME(rmw_init_options_t, rmw_get_zero_initialized_init_options, void)
NAME(rmw_ret_t, rmw_init_options_init, rmw_init_options_t *, rcutils_allocator_t)
NAME(rmw_ret_t, rmw_init_options_copy, const rmw_init_options_t *, rmw_init_options_t *)
NAME(rmw_ret_t, rmw_init_options_fini, rmw_init_options_t *)
NAME(rmw_ret_t, rmw_uros_options_set_udp_address, const char *, const char *, rmw_init_options_t *)
NAME(rmw_ret_t, rmw_uros_options_set_client_key, uint32_t, rmw_init_options_t *)
NAME(rmw_ret_t, rmw_uros_set_custom_transport, bool, void *, open_custom_func, close_custom_func, write_custom_func,
     read_custom_func)
NAME(rmw_ret_t, rmw_uros_set_context_entity_destroy_session_timeout, rmw_context_t *, int)
NAME(rcl_allocator_t, rcl_get_default_allocator, void)
NAME(rcutils_allocator_t, rcutils_get_zero_initialized_allocator, void)
NAME(bool, rcutils_allocator_is_valid, const rcutils_allocator_t *)
NAME(bool, rcutils_set_default_allocator, rcutils_allocator_t *)

/* nodes */
NAME(rcl_node_t, rcl_get_zero_initialized_node, void)
NAME(rcl_ret_t, rclc_node_init_default, rcl_node_t *, const char *, const char *, rclc_support_t *)
NAME(rcl_ret_t, rcl_node_fini, rcl_node_t *)

/* publishers */
NAME(rcl_ret_t, rclc_publisher_init_default, rcl_publisher_t *, const rcl_node_t *,
     const rosidl_message_type_support_t *, const char *)
NAME(rcl_ret_t, rclc_publisher_init_best_effort, rcl_publisher_t *, const rcl_node_t *,
     const rosidl_message_type_support_t *, const char *)
NAME(rcl_ret_t, rcl_publisher_fini, rcl_publisher_t *, rcl_node_t *)
NAME(rcl_ret_t, rcl_publish, const rcl_publisher_t *, const void *, rmw_publisher_allocation_t *)

/* subscriptions */
NAME(rcl_subscription_t, rcl_get_zero_initialized_subscription, void)
NAME(rcl_ret_t, rclc_subscription_init_default, rcl_subscription_t *, rcl_node_t *,
     const rosidl_message_type_support_t *, const char *)
NAME(rcl_ret_t, rclc_subscription_init_best_effort, rcl_subscription_t *, rcl_node_t *,
     const rosidl_message_type_support_t *, const char *)
NAME(rcl_ret_t, rcl_subscription_fini, rcl_subscription_t *, rcl_node_t *)

/* services */
NAME(rcl_service_t, rcl_get_zero_initialized_service, void)
NAME(rcl_ret_t, rclc_service_init_default, rcl_service_t *, const rcl_node_t *, const rosidl_service_type_support_t *,
     const char *)
NAME(rcl_ret_t, rclc_service_init_best_effort, rcl_service_t *, const rcl_node_t *,
     const rosidl_service_type_support_t *, const char *)
NAME(rcl_ret_t, rcl_service_fini, rcl_service_t *, rcl_node_t *)
NAME(rcl_ret_t, rcl_take_request, const rcl_service_t *, rmw_request_id_t *, void *)
NAME(rcl_ret_t, rcl_send_response, const rcl_service_t *, rmw_request_id_t *, void *)
NAME(rcl_client_t, rcl_get_zero_initialized_client, void)
NAME(rcl_ret_t, rclc_client_init_default, rcl_client_t *, const rcl_node_t *, const rosidl_service_type_support_t *,
     const char *)
NAME(rcl_ret_t, rclc_client_init_best_effort, rcl_client_t *, const rcl_node_t *, const rosidl_service_type_support_t *,
     const char *)
NAME(rcl_ret_t, rcl_client_fini, rcl_client_t *, rcl_node_t *)
NAME(rcl_ret_t, rcl_send_request, const rcl_client_t *, const void *, int64_t *)
NAME(rcl_ret_t, rcl_take_response, const rcl_client_t *, rmw_request_id_t *, void *)

/* timers */
NAME(rcl_timer_t, rcl_get_zero_initialized_timer, void)
NAME(rcl_ret_t, rclc_timer_init_default, rcl_timer_t *, rclc_support_t *, const uint64_t, const rcl_timer_callback_t)
NAME(rcl_ret_t, rclc_timer_init_default2, rcl_timer_t *, rclc_support_t *, const uint64_t, const rcl_timer_callback_t,
     bool)
NAME(rcl_ret_t, rcl_timer_fini, rcl_timer_t *)
NAME(void, rclc_sleep_ms, unsigned int)

/* executors */
NAME(rclc_executor_t, rclc_executor_get_zero_initialized_executor, void)
NAME(rcl_ret_t, rclc_executor_init, rclc_executor_t *, rcl_context_t *, const size_t, const rcl_allocator_t *)
NAME(rcl_ret_t, rclc_executor_set_timeout, rclc_executor_t *, const uint64_t)
NAME(rcl_ret_t, rclc_executor_prepare, rclc_executor_t *)
NAME(rcl_ret_t, rclc_executor_add_subscription, rclc_executor_t *, rcl_subscription_t *, void *,
     rclc_subscription_callback_t, rclc_executor_handle_invocation_t)
NAME(rcl_ret_t, rclc_executor_add_subscription_with_context, rclc_executor_t *, rcl_subscription_t *, void *,
     rclc_subscription_callback_with_context_t, void *, rclc_executor_handle_invocation_t)
NAME(rcl_ret_t, rclc_executor_add_timer, rclc_executor_t *, rcl_timer_t *)
NAME(rcl_ret_t, rclc_executor_spin, rclc_executor_t *)
NAME(rcl_ret_t, rclc_executor_spin_some, rclc_executor_t *, const uint64_t)
NAME(rcl_ret_t, rclc_executor_fini, rclc_executor_t *)
NAME(rcl_ret_t, rclc_executor_add_service, rclc_executor_t *, rcl_service_t *, void *, void *, rclc_service_callback_t)
NAME(rcl_ret_t, rclc_executor_add_service_with_request_id, rclc_executor_t *, rcl_service_t *, void *, void *,
     rclc_service_callback_with_request_id_t)
NAME(rcl_ret_t, rclc_executor_add_service_with_context, rclc_executor_t *, rcl_service_t *, void *, void *,
     rclc_service_callback_with_context_t, void *)
NAME(rcl_ret_t, rclc_executor_add_client, rclc_executor_t *, rcl_client_t *, void *, rclc_client_callback_t)
NAME(rcl_ret_t, rclc_executor_add_client_with_request_id, rclc_executor_t *, rcl_client_t *, void *,
     rclc_client_callback_with_request_id_t)
/* tier 2 */
NAME(rcl_ret_t, rclc_executor_set_trigger, rclc_executor_t *, rclc_executor_trigger_t, void *)
NAME(bool, rclc_executor_trigger_any, rclc_executor_handle_t *, unsigned int, void *)
NAME(bool, rclc_executor_trigger_all, rclc_executor_handle_t *, unsigned int, void *)
NAME(void *, rclc_executor_handle_get_ptr, rclc_executor_handle_t *)
NAME(rcl_ret_t, rcl_timer_exchange_period, const rcl_timer_t *, int64_t, int64_t *)

/* actions */
NAME(rcl_ret_t, rclc_action_server_init_default, rclc_action_server_t *, rcl_node_t *, rclc_support_t *,
     const rosidl_action_type_support_t *, const char *)
NAME(rcl_ret_t, rclc_action_server_fini, rclc_action_server_t *, rcl_node_t *)
NAME(rcl_ret_t, rclc_action_publish_feedback, rclc_action_goal_handle_t *, void *)
NAME(rcl_ret_t, rclc_action_send_result, rclc_action_goal_handle_t *, rcl_action_goal_state_t, void *)
NAME(rcl_ret_t, rclc_executor_add_action_server, rclc_executor_t *, rclc_action_server_t *, size_t, void *, size_t,
     rclc_action_server_handle_goal_callback_t, rclc_action_server_handle_cancel_callback_t, void *)
NAME(rcl_ret_t, rclc_action_client_init_default, rclc_action_client_t *, rcl_node_t *,
     const rosidl_action_type_support_t *, const char *)
NAME(rcl_ret_t, rclc_action_client_fini, rclc_action_client_t *, rcl_node_t *)
NAME(rcl_ret_t, rclc_action_send_goal_request, rclc_action_client_t *, void *, rclc_action_goal_handle_t **)
NAME(rcl_ret_t, rclc_action_send_cancel_request, rclc_action_goal_handle_t *)
NAME(rcl_ret_t, rclc_executor_add_action_client, rclc_executor_t *, rclc_action_client_t *, size_t, void *, void *,
     rclc_action_client_goal_callback_t, rclc_action_client_feedback_callback_t, rclc_action_client_result_callback_t,
     rclc_action_client_cancel_callback_t, void *)

/* wait sets */
NAME(rcl_wait_set_t, rcl_get_zero_initialized_wait_set, void)
NAME(rcl_ret_t, rcl_wait_set_init, rcl_wait_set_t *, size_t, size_t, size_t, size_t, size_t, size_t, rcl_context_t *,
     rcl_allocator_t)
NAME(rcl_ret_t, rcl_wait_set_fini, rcl_wait_set_t *)
NAME(rcl_ret_t, rcl_wait_set_clear, rcl_wait_set_t *)
NAME(rcl_ret_t, rcl_wait_set_add_subscription, rcl_wait_set_t *, const rcl_subscription_t *, size_t *)
NAME(rcl_ret_t, rcl_wait_set_add_guard_condition, rcl_wait_set_t *, const rcl_guard_condition_t *, size_t *)
NAME(rcl_ret_t, rcl_wait_set_add_timer, rcl_wait_set_t *, const rcl_timer_t *, size_t *)
NAME(rcl_ret_t, rcl_wait_set_add_client, rcl_wait_set_t *, const rcl_client_t *, size_t *)
NAME(rcl_ret_t, rcl_wait_set_add_service, rcl_wait_set_t *, const rcl_service_t *, size_t *)
NAME(rcl_ret_t, rcl_wait, rcl_wait_set_t *, int64_t)
NAME(rcl_ret_t, rcl_wait_set_resize, rcl_wait_set_t *, size_t, size_t, size_t, size_t, size_t, size_t)
NAME(rcl_ret_t, rcl_wait_set_get_allocator, const rcl_wait_set_t *, rcl_allocator_t *)
NAME(rcl_ret_t, rcl_wait_set_add_event, rcl_wait_set_t *, const rcl_event_t *, size_t *)

/* events */
NAME(rcl_event_t, rcl_get_zero_initialized_event, void)
NAME(rcl_ret_t, rcl_publisher_event_init, rcl_event_t *, const rcl_publisher_t *, const rcl_publisher_event_type_t)
NAME(rcl_ret_t, rcl_subscription_event_init, rcl_event_t *, const rcl_subscription_t *,
     const rcl_subscription_event_type_t)
NAME(rcl_ret_t, rcl_take_event, const rcl_event_t *, void *)
NAME(rcl_ret_t, rcl_event_fini, rcl_event_t *)
NAME(bool, rcl_event_is_valid, const rcl_event_t *)

/* clocks, ends of options, the last error, the graph */
NAME(rcl_ret_t, rcl_ros_clock_init, rcl_clock_t *, rcl_allocator_t *)
NAME(rcl_ret_t, rcl_steady_clock_init, rcl_clock_t *, rcl_allocator_t *)
NAME(rcl_ret_t, rcl_system_clock_init, rcl_clock_t *, rcl_allocator_t *)
NAME(rcl_ret_t, rcl_difference_times, const rcl_time_point_t *, const rcl_time_point_t *, rcl_duration_t *)
NAME(rcutils_ret_t, rcutils_steady_time_now, rcutils_time_point_value_t *)
NAME(rcutils_ret_t, rcutils_system_time_now, rcutils_time_point_value_t *)
NAME(rcl_ret_t, rcl_context_fini, rcl_context_t *)
NAME(rcl_ret_t, rcl_context_get_domain_id, rcl_context_t *, size_t *)
NAME(rcl_ret_t, rcl_init_options_copy, const rcl_init_options_t *, rcl_init_options_t *)
NAME(rcl_ret_t, rcl_node_options_copy, const rcl_node_options_t *, rcl_node_options_t *)
NAME(rcl_ret_t, rcl_node_options_fini, rcl_node_options_t *)
NAME(rcl_ret_t, rcl_subscription_options_fini, rcl_subscription_options_t *)
NAME(const char *, rcl_node_get_logger_name, const rcl_node_t *)
NAME(rcl_ret_t, rcl_publisher_wait_for_all_acked, const rcl_publisher_t *, rcl_duration_value_t)
NAME(rcutils_error_string_t, rcutils_get_error_string, void)
NAME(rmw_error_string_t, rmw_get_error_string, void)
NAME(void, rcutils_reset_error, void)
NAME(rcl_ret_t, rcl_count_clients, const rcl_node_t *, const char *, size_t *)
NAME(rcl_ret_t, rcl_count_services, const rcl_node_t *, const char *, size_t *)
NAME(rcl_ret_t, rcl_wait_for_publishers, const rcl_node_t *, rcl_allocator_t *, const char *, size_t,
     rcutils_duration_value_t, bool *)
NAME(rcl_ret_t, rcl_wait_for_subscribers, const rcl_node_t *, rcl_allocator_t *, const char *, size_t,
     rcutils_duration_value_t, bool *)

/* agent */
NAME(rmw_ret_t, rmw_uros_ping_agent, const int, const uint8_t)
NAME(rmw_ret_t, rmw_uros_sync_session, const int)
NAME(int64_t, rmw_uros_epoch_millis, void)
NAME(int64_t, rmw_uros_epoch_nanos, void)

/* ---- other common code of programs ---- */

static void timer_callback(rcl_timer_t *timer, int64_t last_call_time) {
  RCLC_UNUSED(last_call_time);
  RCLC_UNUSED(timer);
}

static void subscription_callback(const void *message) { RCLC_UNUSED(message); }

static bool open_transport(struct uxrCustomTransport *transport) { return transport->args != NULL; }

/* A QoS profile in the form in which programs write it. */
extern const rmw_qos_profile_t written_out;
const rmw_qos_profile_t written_out = {RMW_QOS_POLICY_HISTORY_KEEP_LAST,
                                       1,
                                       RMW_QOS_POLICY_RELIABILITY_RELIABLE,
                                       RMW_QOS_POLICY_DURABILITY_TRANSIENT_LOCAL,
                                       RMW_QOS_DEADLINE_DEFAULT,
                                       RMW_DURATION_INFINITE,
                                       RMW_QOS_POLICY_LIVELINESS_SYSTEM_DEFAULT,
                                       RMW_QOS_LIVELINESS_LEASE_DURATION_DEFAULT,
                                       false};

/* Never called: the test is that these usual lines compile. */
rcl_ret_t usual_program(const rosidl_message_type_support_t *type);
rcl_ret_t usual_program(const rosidl_message_type_support_t *type) {
  rcl_allocator_t allocator = rcl_get_default_allocator();
  allocator.allocate = NULL;
  rclc_support_t support;
  rcl_node_t node;
  rcl_publisher_t publisher;
  rcl_timer_t timer;
  rclc_executor_t executor = rclc_executor_get_zero_initialized_executor();
  rclc_callback_t callback = subscription_callback;
  open_custom_func open = open_transport;
  (void)rmw_uros_set_custom_transport(MICROROS_TRANSPORTS_FRAMING_MODE, NULL, open, NULL, NULL, NULL);
  RCL_UNUSED(written_out);
  rcl_ret_t rc = rclc_support_init(&support, 0, NULL, &allocator);
  if (rc == RCL_RET_OK) rc = rclc_node_init_default(&node, "node", "", &support);
  if (rc == RCL_RET_OK) rc = rclc_publisher_init_default(&publisher, &node, type, "topic");
  if (rc == RCL_RET_OK) rc = rclc_timer_init_default(&timer, &support, RCL_MS_TO_NS(1000), timer_callback);
  if (rc == RCL_RET_OK) rc = rclc_executor_init(&executor, &support.context, 1, &allocator);
  if (rc == RCL_RET_OK) rc = rclc_executor_add_timer(&executor, &timer);
  (void)rcl_publish(&publisher, type, NULL);
  rmw_context_t *context = rcl_context_get_rmw_context(&support.context);
  (void)rmw_uros_set_context_entity_destroy_session_timeout(context, 0);
  return callback != NULL && open != NULL ? rc : RMW_RET_ERROR;
}
