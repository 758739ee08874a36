/* SPDX-License-Identifier: Apache-2.0 */
/* A lifecycle node: a node with states that a lifecycle manager of ROS 2 changes. The callback of a transition runs in
 * the service's callback and returns RCL_RET_OK, or anything else to return to the previous state.
 *
 * Memory: the program's structures, and TIDE_LIFECYCLE_NODES of tide/pools.h: five services and a publisher each. Each
 * served service takes one handle of its executor. */
#ifndef RCLC_LIFECYCLE__RCLC_LIFECYCLE_H_
#define RCLC_LIFECYCLE__RCLC_LIFECYCLE_H_

#include <rcl/error_handling.h>
#include <rcl_lifecycle/rcl_lifecycle.h>
#include <rclc/executor.h>
#include <rclc/node.h>
#include <rclc/rclc.h>
#include <rcutils/logging_macros.h>

/* The ids of states and transitions, for programs that generated the messages. */
#if defined(__has_include)
#if __has_include(<lifecycle_msgs/msg/state.h>) && __has_include(<lifecycle_msgs/msg/transition.h>)
#include <lifecycle_msgs/msg/state.h>
#include <lifecycle_msgs/msg/transition.h>
#endif
#endif

TIDE_EXTERN_C_BEGIN

#define RCLC_LIFECYCLE_MAX_NUMBER_OF_STATES 100 /* the highest id of a transition is 99 */

typedef struct rclc_lifecycle_callback_map_t {
  int (*configure)(void);
  int (*cleanup)(void);
  int (*activate)(void);
  int (*deactivate)(void);
  int (*shutdown[3])(void); /* from unconfigured, inactive, active */
} rclc_lifecycle_callback_map_t;

/* The request that a service is answering, and its result. */
typedef struct tide_lifecycle_answer {
  const rcl_lifecycle_state_machine_t *state_machine;
  unsigned int transition_id;
  bool success;
} tide_lifecycle_answer_t;

typedef struct rclc_lifecycle_node_t {
  rcl_node_t *node;
  rcl_lifecycle_state_machine_t *state_machine;
  rclc_lifecycle_callback_map_t callbacks;
  bool publish_transitions;
  tide_lifecycle_answer_t answers[5]; /* used by the runtime only; one for each service */
} rclc_lifecycle_node_t;

/* Argument of the functions below that create services; must live as long as the services. */
typedef struct rclc_lifecycle_service_context_t {
  rclc_lifecycle_node_t *lifecycle_node;
} rclc_lifecycle_service_context_t;

rcl_ret_t rclc_make_node_a_lifecycle_node(rclc_lifecycle_node_t *lifecycle_node, rcl_node_t *node,
                                          rcl_lifecycle_state_machine_t *state_machine, rcl_allocator_t *allocator,
                                          bool enable_communication_interface);
rcl_ret_t rclc_lifecycle_node_fini(rclc_lifecycle_node_t *node, rcl_allocator_t *allocator);

rcl_ret_t rclc_lifecycle_init_get_state_server(rclc_lifecycle_service_context_t *context, rclc_executor_t *executor);
rcl_ret_t rclc_lifecycle_init_get_available_states_server(rclc_lifecycle_service_context_t *context,
                                                          rclc_executor_t *executor);
rcl_ret_t rclc_lifecycle_init_change_state_server(rclc_lifecycle_service_context_t *context, rclc_executor_t *executor);

/* goal_state: the id of a transition (lifecycle_msgs/Transition). RCL_RET_INVALID_ARGUMENT: a transition without a
 * callback. */
rcl_ret_t rclc_lifecycle_register_callback(rclc_lifecycle_node_t *lifecycle_node, unsigned int goal_state,
                                           int (*cb)(void));
rcl_ret_t rclc_lifecycle_register_on_configure(rclc_lifecycle_node_t *node, int (*cb)(void));
rcl_ret_t rclc_lifecycle_register_on_activate(rclc_lifecycle_node_t *node, int (*cb)(void));
rcl_ret_t rclc_lifecycle_register_on_deactivate(rclc_lifecycle_node_t *node, int (*cb)(void));
rcl_ret_t rclc_lifecycle_register_on_cleanup(rclc_lifecycle_node_t *node, int (*cb)(void));

/* Runs a transition that the program itself requests. RCL_RET_ERROR: the current state has no such transition. Returns
 * RCL_RET_OK even when the callback refused the change: check the state. */
rcl_ret_t rclc_lifecycle_change_state(rclc_lifecycle_node_t *lifecycle_node, unsigned int transition_id,
                                      bool publish_update);
/* Returns the result of the transition's callback; RCL_RET_OK if the transition has none. */
rcl_ret_t rclc_lifecycle_execute_callback(rclc_lifecycle_node_t *lifecycle_node, unsigned int transition_id);

TIDE_EXTERN_C_END
#endif
