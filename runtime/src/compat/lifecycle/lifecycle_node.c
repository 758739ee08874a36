/* SPDX-License-Identifier: Apache-2.0 */
/* Lifecycle nodes of rclc: callbacks of transitions, and the services that lead to them. */
#include <string.h>

#include "lifecycle.h"
#include "tide/rclc_lifecycle.h"

rcl_ret_t rclc_make_node_a_lifecycle_node(rclc_lifecycle_node_t *lifecycle_node, rcl_node_t *node,
                                          rcl_lifecycle_state_machine_t *state_machine, rcl_allocator_t *allocator,
                                          bool enable_communication_interface) {
  if (lifecycle_node == NULL || node == NULL || state_machine == NULL || allocator == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  memset(lifecycle_node, 0, sizeof *lifecycle_node);
  lifecycle_node->node = node;
  lifecycle_node->publish_transitions = enable_communication_interface;
  const rcl_lifecycle_state_machine_options_t options = {true, enable_communication_interface, *allocator};
  const rcl_ret_t result =
      rcl_lifecycle_state_machine_init(state_machine, node, NULL, NULL, NULL, NULL, NULL, NULL, &options);
  if (result != RCL_RET_OK) return RCL_RET_ERROR;
  lifecycle_node->state_machine = state_machine;
  return RCL_RET_OK;
}

rcl_ret_t rclc_lifecycle_node_fini(rclc_lifecycle_node_t *node, rcl_allocator_t *allocator) {
  if (node == NULL || allocator == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return rcl_lifecycle_state_machine_fini(node->state_machine, node->node) == RCL_RET_OK ? RCL_RET_OK : RCL_RET_ERROR;
}

/* ---- callbacks of transitions ---- */

typedef int (*callback_t)(void);

/* Its place, or null. */
static callback_t *callback_of(rclc_lifecycle_callback_map_t *callbacks, unsigned int transition_id) {
  switch (transition_id) {
    case TIDE_LIFECYCLE_CONFIGURE:
      return &callbacks->configure;
    case TIDE_LIFECYCLE_CLEANUP:
      return &callbacks->cleanup;
    case TIDE_LIFECYCLE_ACTIVATE:
      return &callbacks->activate;
    case TIDE_LIFECYCLE_DEACTIVATE:
      return &callbacks->deactivate;
    default:
      break;
  }
  if (transition_id < TIDE_LIFECYCLE_UNCONFIGURED_SHUTDOWN || transition_id > TIDE_LIFECYCLE_ACTIVE_SHUTDOWN) {
    return NULL;
  }
  return &callbacks->shutdown[transition_id - TIDE_LIFECYCLE_UNCONFIGURED_SHUTDOWN];
}

rcl_ret_t rclc_lifecycle_register_callback(rclc_lifecycle_node_t *lifecycle_node, unsigned int goal_state,
                                           int (*cb)(void)) {
  callback_t *place = lifecycle_node == NULL ? NULL : callback_of(&lifecycle_node->callbacks, goal_state);
  if (place == NULL || cb == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *place = cb;
  return RCL_RET_OK;
}

rcl_ret_t rclc_lifecycle_register_on_configure(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TIDE_LIFECYCLE_CONFIGURE, cb);
}

rcl_ret_t rclc_lifecycle_register_on_activate(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TIDE_LIFECYCLE_ACTIVATE, cb);
}

rcl_ret_t rclc_lifecycle_register_on_deactivate(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TIDE_LIFECYCLE_DEACTIVATE, cb);
}

rcl_ret_t rclc_lifecycle_register_on_cleanup(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TIDE_LIFECYCLE_CLEANUP, cb);
}

rcl_ret_t rclc_lifecycle_execute_callback(rclc_lifecycle_node_t *lifecycle_node, unsigned int transition_id) {
  if (lifecycle_node == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const callback_t *place = callback_of(&lifecycle_node->callbacks, transition_id);
  return place == NULL || *place == NULL ? RCL_RET_OK : (*place)();
}

/* Success: what the callback said. */
static rcl_ret_t change(rclc_lifecycle_node_t *node, unsigned int transition_id, bool publish, bool *success) {
  *success = false;
  if (transition_id > UINT8_MAX) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t begun = rcl_lifecycle_trigger_transition_by_id(node->state_machine, (uint8_t)transition_id, publish);
  if (begun != RCL_RET_OK) return RCL_RET_ERROR;
  *success = rclc_lifecycle_execute_callback(node, transition_id) == RCL_RET_OK;
  const char *end = *success ? TIDE_LIFECYCLE_SUCCESS : TIDE_LIFECYCLE_FAILURE;
  /* A program that ends transitions itself, by rclc_lifecycle_change_state, is in no state that waits. */
  if (rcl_lifecycle_get_transition_by_label(node->state_machine->current_state, end) == NULL) return RCL_RET_OK;
  return rcl_lifecycle_trigger_transition_by_label(node->state_machine, end, publish);
}

rcl_ret_t rclc_lifecycle_change_state(rclc_lifecycle_node_t *lifecycle_node, unsigned int transition_id,
                                      bool publish_update) {
  bool success;
  if (lifecycle_node == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  return change(lifecycle_node, transition_id, publish_update, &success);
}

/* ---- services ---- */

static void on_change(const void *request, void *response, void *context) {
  (void)request;
  tide_lifecycle_answer_t *answer = response;
  rclc_lifecycle_node_t *node = ((rclc_lifecycle_service_context_t *)context)->lifecycle_node;
  (void)change(node, answer->transition_id, true, &answer->success);
}

/* The answer is made when it is encoded. */
static void on_question(const void *request, void *response, void *context) {
  (void)request;
  (void)response;
  (void)context;
}

static rcl_ret_t serve(rclc_lifecycle_service_context_t *context, rclc_executor_t *executor,
                       tide_lifecycle_service_t service, rclc_service_callback_with_context_t callback) {
  if (context == NULL || executor == NULL || context->lifecycle_node == NULL ||
      context->lifecycle_node->state_machine == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  rclc_lifecycle_node_t *node = context->lifecycle_node;
  rcl_lifecycle_com_interface_t *interface = &node->state_machine->com_interface;
  rcl_service_t *place = tide_lifecycle_service(interface, service);
  if (place->impl == NULL && service > TIDE_LIFECYCLE_GET_AVAILABLE_STATES) {
    const rcl_ret_t opened = tide_lifecycle_open_service(interface, service);
    if (opened != RCL_RET_OK) return opened;
  }
  tide_lifecycle_answer_t *answer = &node->answers[service];
  answer->state_machine = node->state_machine;
  return rclc_executor_add_service_with_context(executor, place, answer, answer, callback, context);
}

rcl_ret_t rclc_lifecycle_init_change_state_server(rclc_lifecycle_service_context_t *context,
                                                  rclc_executor_t *executor) {
  return serve(context, executor, TIDE_LIFECYCLE_CHANGE_STATE, on_change);
}

rcl_ret_t rclc_lifecycle_init_get_state_server(rclc_lifecycle_service_context_t *context, rclc_executor_t *executor) {
  return serve(context, executor, TIDE_LIFECYCLE_GET_STATE, on_question);
}

rcl_ret_t rclc_lifecycle_init_get_available_states_server(rclc_lifecycle_service_context_t *context,
                                                          rclc_executor_t *executor) {
  return serve(context, executor, TIDE_LIFECYCLE_GET_AVAILABLE_STATES, on_question);
}

rcl_ret_t tide_rclc_lifecycle_init_get_available_transitions_server(rclc_lifecycle_service_context_t *context,
                                                                    rclc_executor_t *executor) {
  return serve(context, executor, TIDE_LIFECYCLE_GET_AVAILABLE_TRANSITIONS, on_question);
}

rcl_ret_t tide_rclc_lifecycle_init_get_transition_graph_server(rclc_lifecycle_service_context_t *context,
                                                               rclc_executor_t *executor) {
  return serve(context, executor, TIDE_LIFECYCLE_GET_TRANSITION_GRAPH, on_question);
}
