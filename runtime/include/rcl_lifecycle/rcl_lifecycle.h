/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a lifecycle node and its interface to ROS 2: five services and ~/transition_event. Nothing is
 * allocated; services and publisher come from the program's pools (TIDE_LIFECYCLE_NODES of tide/pools.h). Only one
 * thread at a time may make calls for a state machine. */
#ifndef RCL_LIFECYCLE__RCL_LIFECYCLE_H_
#define RCL_LIFECYCLE__RCL_LIFECYCLE_H_

#include "rcl_lifecycle/data_types.h"

TIDE_EXTERN_C_BEGIN

#define RCL_RET_LIFECYCLE_STATE_REGISTERED 3000
#define RCL_RET_LIFECYCLE_STATE_NOT_REGISTERED 3001

rcl_lifecycle_state_machine_options_t rcl_lifecycle_get_default_state_machine_options(void);
rcl_lifecycle_state_machine_t rcl_lifecycle_get_zero_initialized_state_machine(void);
/* Starts in the state "unconfigured". The type supports that are passed have no effect: the runtime uses its own. The
 * function does not create the two services that list transitions: tide/rclc_lifecycle.h has the calls that create and
 * serve these. */
rcl_ret_t rcl_lifecycle_state_machine_init(rcl_lifecycle_state_machine_t *state_machine, rcl_node_t *node_handle,
                                           const rosidl_message_type_support_t *ts_pub_notify,
                                           const rosidl_service_type_support_t *ts_srv_change_state,
                                           const rosidl_service_type_support_t *ts_srv_get_state,
                                           const rosidl_service_type_support_t *ts_srv_get_available_states,
                                           const rosidl_service_type_support_t *ts_srv_get_available_transitions,
                                           const rosidl_service_type_support_t *ts_srv_get_transition_graph,
                                           const rcl_lifecycle_state_machine_options_t *state_machine_options);
rcl_ret_t rcl_lifecycle_state_machine_fini(rcl_lifecycle_state_machine_t *state_machine, rcl_node_t *node_handle);
rcl_ret_t rcl_lifecycle_state_machine_is_initialized(const rcl_lifecycle_state_machine_t *state_machine);
/* Null: the state has no such transition. */
const rcl_lifecycle_transition_t *rcl_lifecycle_get_transition_by_id(const rcl_lifecycle_state_t *state, uint8_t id);
const rcl_lifecycle_transition_t *rcl_lifecycle_get_transition_by_label(const rcl_lifecycle_state_t *state,
                                                                        const char *label);
/* RCL_RET_INVALID_ARGUMENT: the current state has no such transition. */
rcl_ret_t rcl_lifecycle_trigger_transition_by_id(rcl_lifecycle_state_machine_t *state_machine, uint8_t id,
                                                 bool publish_notification);
rcl_ret_t rcl_lifecycle_trigger_transition_by_label(rcl_lifecycle_state_machine_t *state_machine, const char *label,
                                                    bool publish_notification);

TIDE_EXTERN_C_END
#endif
