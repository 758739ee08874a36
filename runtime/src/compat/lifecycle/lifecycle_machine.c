/* SPDX-License-Identifier: Apache-2.0 */
/* The states and transitions of ROS 2's lifecycle nodes, and the machine that goes through them. */
#include <string.h>

#include "lifecycle.h"
#include "rclc/publisher.h"
#include "rclc/service.h"
#include "rmw_microros/time_sync.h"

enum {
  UNKNOWN,
  UNCONFIGURED,
  INACTIVE,
  ACTIVE,
  FINALIZED,
  CONFIGURING,
  CLEANINGUP,
  SHUTTINGDOWN,
  ACTIVATING,
  DEACTIVATING,
  ERRORPROCESSING,
  STATE_COUNT
};
#define TRANSITION_COUNT 25

static const rcl_lifecycle_state_t states[STATE_COUNT];

/* Those of a state lie together. */
#define TRANSITION(label, id, start, goal) \
  { label, id, &states[start], &states[goal] }
#define END_OF(state, id, success, failure)                         \
  TRANSITION(TIDE_LIFECYCLE_SUCCESS, id, state, success),           \
      TRANSITION(TIDE_LIFECYCLE_FAILURE, (id) + 1, state, failure), \
      TRANSITION("transition_error", (id) + 2, state, (state) == ERRORPROCESSING ? FINALIZED : ERRORPROCESSING)
static const rcl_lifecycle_transition_t transitions[TRANSITION_COUNT] = {
    TRANSITION("configure", 1, UNCONFIGURED, CONFIGURING),
    TRANSITION("shutdown", 5, UNCONFIGURED, SHUTTINGDOWN),
    TRANSITION("cleanup", 2, INACTIVE, CLEANINGUP),
    TRANSITION("activate", 3, INACTIVE, ACTIVATING),
    TRANSITION("shutdown", 6, INACTIVE, SHUTTINGDOWN),
    TRANSITION("deactivate", 4, ACTIVE, DEACTIVATING),
    TRANSITION("shutdown", 7, ACTIVE, SHUTTINGDOWN),
    END_OF(CONFIGURING, 10, INACTIVE, UNCONFIGURED),
    END_OF(CLEANINGUP, 20, UNCONFIGURED, INACTIVE),
    END_OF(SHUTTINGDOWN, 50, FINALIZED, FINALIZED),
    END_OF(ACTIVATING, 30, ACTIVE, INACTIVE),
    END_OF(DEACTIVATING, 40, INACTIVE, ACTIVE),
    END_OF(ERRORPROCESSING, 60, UNCONFIGURED, FINALIZED),
};

static const rcl_lifecycle_state_t states[STATE_COUNT] = {
    [UNKNOWN] = {"unknown", 0, NULL, 0},
    [UNCONFIGURED] = {"unconfigured", 1, &transitions[0], 2},
    [INACTIVE] = {"inactive", 2, &transitions[2], 3},
    [ACTIVE] = {"active", 3, &transitions[5], 2},
    [FINALIZED] = {"finalized", 4, NULL, 0},
    [CONFIGURING] = {"configuring", 10, &transitions[7], 3},
    [CLEANINGUP] = {"cleaningup", 11, &transitions[10], 3},
    [SHUTTINGDOWN] = {"shuttingdown", 12, &transitions[13], 3},
    [ACTIVATING] = {"activating", 13, &transitions[16], 3},
    [DEACTIVATING] = {"deactivating", 14, &transitions[19], 3},
    [ERRORPROCESSING] = {"errorprocessing", 15, &transitions[22], 3},
};

rcl_lifecycle_state_machine_options_t rcl_lifecycle_get_default_state_machine_options(void) {
  const rcl_lifecycle_state_machine_options_t options = {true, true, rcl_get_default_allocator()};
  return options;
}

rcl_lifecycle_state_machine_t rcl_lifecycle_get_zero_initialized_state_machine(void) {
  rcl_lifecycle_state_machine_t machine;
  memset(&machine, 0, sizeof machine);
  return machine;
}

rcl_service_t *tide_lifecycle_service(rcl_lifecycle_com_interface_t *interface, tide_lifecycle_service_t service) {
  rcl_service_t *const services[TIDE_LIFECYCLE_SERVICE_COUNT] = {
      [TIDE_LIFECYCLE_CHANGE_STATE] = &interface->srv_change_state,
      [TIDE_LIFECYCLE_GET_STATE] = &interface->srv_get_state,
      [TIDE_LIFECYCLE_GET_AVAILABLE_STATES] = &interface->srv_get_available_states,
      [TIDE_LIFECYCLE_GET_AVAILABLE_TRANSITIONS] = &interface->srv_get_available_transitions,
      [TIDE_LIFECYCLE_GET_TRANSITION_GRAPH] = &interface->srv_get_transition_graph,
  };
  return services[service];
}

rcl_ret_t tide_lifecycle_open_service(rcl_lifecycle_com_interface_t *interface, tide_lifecycle_service_t service) {
  static const char *const names[TIDE_LIFECYCLE_SERVICE_COUNT] = {
      [TIDE_LIFECYCLE_CHANGE_STATE] = "~/change_state",
      [TIDE_LIFECYCLE_GET_STATE] = "~/get_state",
      [TIDE_LIFECYCLE_GET_AVAILABLE_STATES] = "~/get_available_states",
      [TIDE_LIFECYCLE_GET_AVAILABLE_TRANSITIONS] = "~/get_available_transitions",
      [TIDE_LIFECYCLE_GET_TRANSITION_GRAPH] = "~/get_transition_graph",
  };
  return rclc_service_init_default(tide_lifecycle_service(interface, service), interface->node_handle,
                                   &tide_lifecycle_service_types[service], names[service]);
}

static rcl_ret_t close_interface(rcl_lifecycle_com_interface_t *interface) {
  rcl_ret_t result = rcl_publisher_fini(&interface->pub_transition_event, interface->node_handle);
  for (size_t i = 0; i < TIDE_LIFECYCLE_SERVICE_COUNT; i++) {
    const rcl_ret_t closed =
        rcl_service_fini(tide_lifecycle_service(interface, (tide_lifecycle_service_t)i), interface->node_handle);
    if (result == RCL_RET_OK) result = closed;
  }
  return result;
}

static rcl_ret_t open_interface(rcl_lifecycle_com_interface_t *interface) {
  rcl_ret_t result = rclc_publisher_init_default(&interface->pub_transition_event, interface->node_handle,
                                                 &tide_lifecycle_event_type, "~/transition_event");
  for (size_t i = 0; i <= TIDE_LIFECYCLE_GET_AVAILABLE_STATES && result == RCL_RET_OK; i++) {
    result = tide_lifecycle_open_service(interface, (tide_lifecycle_service_t)i);
  }
  if (result == RCL_RET_OK) return result;
  const int status = tide_rclc_last_status();
  (void)close_interface(interface);
  (void)tide_compat_result(status); /* what went wrong first */
  return result;
}

rcl_ret_t rcl_lifecycle_state_machine_init(rcl_lifecycle_state_machine_t *state_machine, rcl_node_t *node_handle,
                                           const rosidl_message_type_support_t *ts_pub_notify,
                                           const rosidl_service_type_support_t *ts_srv_change_state,
                                           const rosidl_service_type_support_t *ts_srv_get_state,
                                           const rosidl_service_type_support_t *ts_srv_get_available_states,
                                           const rosidl_service_type_support_t *ts_srv_get_available_transitions,
                                           const rosidl_service_type_support_t *ts_srv_get_transition_graph,
                                           const rcl_lifecycle_state_machine_options_t *state_machine_options) {
  (void)ts_pub_notify;
  (void)ts_srv_change_state;
  (void)ts_srv_get_state;
  (void)ts_srv_get_available_states;
  (void)ts_srv_get_available_transitions;
  (void)ts_srv_get_transition_graph;
  if (state_machine == NULL || state_machine_options == NULL || !tide_compat_is_node(node_handle)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (!state_machine_options->initialize_default_states) return tide_compat_result(TIDE_ERROR_UNSUPPORTED);
  memset(state_machine, 0, sizeof *state_machine);
  state_machine->options = *state_machine_options;
  state_machine->transition_map = (rcl_lifecycle_transition_map_t){states, STATE_COUNT, transitions, TRANSITION_COUNT};
  state_machine->com_interface.node_handle = node_handle;
  const rcl_ret_t result =
      state_machine_options->enable_com_interface ? open_interface(&state_machine->com_interface) : RCL_RET_OK;
  if (result == RCL_RET_OK) state_machine->current_state = &states[UNCONFIGURED];
  return result;
}

rcl_ret_t rcl_lifecycle_state_machine_fini(rcl_lifecycle_state_machine_t *state_machine, rcl_node_t *node_handle) {
  if (state_machine == NULL || node_handle == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  state_machine->com_interface.node_handle = node_handle;
  const rcl_ret_t result = close_interface(&state_machine->com_interface);
  if (result == RCL_RET_OK) *state_machine = rcl_lifecycle_get_zero_initialized_state_machine();
  return result;
}

rcl_ret_t rcl_lifecycle_state_machine_is_initialized(const rcl_lifecycle_state_machine_t *state_machine) {
  if (state_machine != NULL && state_machine->current_state != NULL) return RCL_RET_OK;
  return tide_compat_refusal(TIDE_ERROR_STATE, RCL_RET_INVALID_ARGUMENT);
}

const rcl_lifecycle_transition_t *rcl_lifecycle_get_transition_by_id(const rcl_lifecycle_state_t *state, uint8_t id) {
  for (unsigned int i = 0; state != NULL && i < state->valid_transition_size; i++) {
    if (state->valid_transitions[i].id == id) return &state->valid_transitions[i];
  }
  return NULL;
}

const rcl_lifecycle_transition_t *rcl_lifecycle_get_transition_by_label(const rcl_lifecycle_state_t *state,
                                                                        const char *label) {
  for (unsigned int i = 0; state != NULL && label != NULL && i < state->valid_transition_size; i++) {
    if (strcmp(state->valid_transitions[i].label, label) == 0) return &state->valid_transitions[i];
  }
  return NULL;
}

/* What is not heard of is no reason to stay in a state. */
static rcl_ret_t go(rcl_lifecycle_state_machine_t *machine, const rcl_lifecycle_transition_t *transition,
                    bool publish) {
  if (transition == NULL) return tide_compat_refusal(TIDE_ERROR_NOT_FOUND, RCL_RET_INVALID_ARGUMENT);
  machine->current_state = transition->goal;
  if (publish && machine->options.enable_com_interface) {
    const tide_lifecycle_event_message_t message = {transition, (uint64_t)rmw_uros_epoch_nanos()};
    (void)rcl_publish(&machine->com_interface.pub_transition_event, &message, NULL);
  }
  return RCL_RET_OK;
}

rcl_ret_t rcl_lifecycle_trigger_transition_by_id(rcl_lifecycle_state_machine_t *state_machine, uint8_t id,
                                                 bool publish_notification) {
  const rcl_ret_t result = rcl_lifecycle_state_machine_is_initialized(state_machine);
  if (result != RCL_RET_OK) return result;
  return go(state_machine, rcl_lifecycle_get_transition_by_id(state_machine->current_state, id), publish_notification);
}

rcl_ret_t rcl_lifecycle_trigger_transition_by_label(rcl_lifecycle_state_machine_t *state_machine, const char *label,
                                                    bool publish_notification) {
  const rcl_ret_t result = rcl_lifecycle_state_machine_is_initialized(state_machine);
  if (result != RCL_RET_OK) return result;
  return go(state_machine, rcl_lifecycle_get_transition_by_label(state_machine->current_state, label),
            publish_notification);
}
