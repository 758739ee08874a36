/* SPDX-License-Identifier: Apache-2.0 */
/* Lifecycle nodes: encoding and decoding of lifecycle_msgs, the state machine of ROS 2, and rclc's nodes with the
 * callbacks of transitions and the services that request transitions. */
#include <string.h>

#include "internal.h"
#include "rclc/publisher.h"
#include "rclc/service.h"
#include "rclc_lifecycle/rclc_lifecycle.h"
#include "rmw_microros/time_sync.h"
#include "tide/message_memory.h"
#include "tide/rclc_lifecycle.h"

/* In the order of rclc_lifecycle_node_t.answers. */
typedef enum service_number {
  CHANGE_STATE,
  GET_STATE,
  GET_AVAILABLE_STATES,
  GET_AVAILABLE_TRANSITIONS,
  GET_TRANSITION_GRAPH,
  SERVICE_COUNT
} service_number_t;

/* Ids of lifecycle_msgs/Transition. */
enum {
  TRANSITION_CONFIGURE = 1,
  TRANSITION_CLEANUP = 2,
  TRANSITION_ACTIVATE = 3,
  TRANSITION_DEACTIVATE = 4,
  TRANSITION_UNCONFIGURED_SHUTDOWN = 5,
  TRANSITION_ACTIVE_SHUTDOWN = 7
};

/* Labels as in rcl, because the transition after a callback is found by its label. */
#define SUCCESS "transition_success"
#define FAILURE "transition_failure"

typedef struct event_message {
  const rcl_lifecycle_transition_t *transition;
  uint64_t stamp_ns;
} event_message_t;

/* ---- messages ---- */

static void put_text(tide_cdr_t *cdr, const char *text) { tide_cdr_put_string(cdr, text, strlen(text)); }

static void put_state(tide_cdr_t *cdr, const rcl_lifecycle_state_t *state) {
  tide_cdr_put_u8(cdr, state->id);
  put_text(cdr, state->label);
}

/* A transition with its start and goal states: a TransitionDescription, and the last part of a TransitionEvent. */
static void put_transition(tide_cdr_t *cdr, const rcl_lifecycle_transition_t *transition) {
  tide_cdr_put_u8(cdr, (uint8_t)transition->id);
  put_text(cdr, transition->label);
  put_state(cdr, transition->start);
  put_state(cdr, transition->goal);
}

static void put_transitions(tide_cdr_t *cdr, const rcl_lifecycle_transition_t *transitions, unsigned int count) {
  tide_cdr_put_u32(cdr, count);
  for (unsigned int i = 0; i < count; i++) put_transition(cdr, &transitions[i]);
}

static void encode_event(tide_cdr_t *cdr, const void *untyped) {
  const event_message_t *message = untyped;
  tide_cdr_put_u64(cdr, message->stamp_ns);
  put_transition(cdr, message->transition);
}

static const rcl_lifecycle_state_machine_t *machine_of(const void *untyped) {
  return ((const tide_lifecycle_answer_t *)untyped)->state_machine;
}

static void encode_success(tide_cdr_t *cdr, const void *untyped) {
  tide_cdr_put_bool(cdr, ((const tide_lifecycle_answer_t *)untyped)->success);
}

static void encode_state(tide_cdr_t *cdr, const void *untyped) { put_state(cdr, machine_of(untyped)->current_state); }

static void encode_states(tide_cdr_t *cdr, const void *untyped) {
  const rcl_lifecycle_transition_map_t *map = &machine_of(untyped)->transition_map;
  tide_cdr_put_u32(cdr, map->states_size);
  for (unsigned int i = 0; i < map->states_size; i++) put_state(cdr, &map->states[i]);
}

static void encode_available_transitions(tide_cdr_t *cdr, const void *untyped) {
  const rcl_lifecycle_state_t *state = machine_of(untyped)->current_state;
  put_transitions(cdr, state->valid_transitions, state->valid_transition_size);
}

static void encode_graph(tide_cdr_t *cdr, const void *untyped) {
  const rcl_lifecycle_transition_map_t *map = &machine_of(untyped)->transition_map;
  put_transitions(cdr, map->transitions, map->transitions_size);
}

/* Finds a transition by its id or, if the id is 0, by its label. */
static void decode_change(tide_cdr_t *cdr, void *untyped) {
  tide_lifecycle_answer_t *answer = untyped;
  size_t length;
  answer->transition_id = tide_cdr_get_u8(cdr);
  const char *label = tide_cdr_get_string(cdr, &length);
  if (answer->transition_id != 0 || label == NULL || length == 0) return;
  const rcl_lifecycle_transition_t *transition =
      rcl_lifecycle_get_transition_by_label(answer->state_machine->current_state, label);
  if (transition != NULL) answer->transition_id = transition->id;
}

static void decode_empty(tide_cdr_t *cdr, void *untyped) {
  (void)cdr; /* other implementations send an octet, or nothing */
  (void)untyped;
}

static const tide_message_type_t event_type = TIDE_COMPAT_MESSAGE_TYPE(
    "lifecycle_msgs", "TransitionEvent", sizeof(event_message_t), encode_event, tide_compat_decode_nothing);
static const rosidl_message_type_support_t event_support = TIDE_COMPAT_MESSAGE_SUPPORT(event_type);

#define SERVICE(NAME, DECODE, ENCODE) \
  TIDE_COMPAT_SERVICE_TYPE("lifecycle_msgs", NAME, sizeof(tide_lifecycle_answer_t), DECODE, ENCODE)
SERVICE(ChangeState, decode_change, encode_success)
SERVICE(GetState, decode_empty, encode_state)
SERVICE(GetAvailableStates, decode_empty, encode_states)
SERVICE(GetAvailableTransitions, decode_empty, encode_available_transitions)
/* GetTransitionGraph has the type of GetAvailableTransitions on the wire. */
static const tide_message_type_t graph_response =
    TIDE_COMPAT_SERVICE_PART("lifecycle_msgs", "GetAvailableTransitions_Response", sizeof(tide_lifecycle_answer_t),
                             encode_graph, tide_compat_decode_nothing);
static const tide_service_type_t GetTransitionGraph = {"lifecycle_msgs", "GetAvailableTransitions",
                                                       &GetAvailableTransitions_parts[0], &graph_response};

static const rosidl_service_type_support_t service_types[SERVICE_COUNT] = {
    [CHANGE_STATE] = TIDE_COMPAT_SERVICE_SUPPORT(ChangeState),
    [GET_STATE] = TIDE_COMPAT_SERVICE_SUPPORT(GetState),
    [GET_AVAILABLE_STATES] = TIDE_COMPAT_SERVICE_SUPPORT(GetAvailableStates),
    [GET_AVAILABLE_TRANSITIONS] = TIDE_COMPAT_SERVICE_SUPPORT(GetAvailableTransitions),
    [GET_TRANSITION_GRAPH] = TIDE_COMPAT_SERVICE_SUPPORT(GetTransitionGraph),
};

/* ---- states and transitions ---- */

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

/* The transitions of one state are adjacent. */
#define STEP(label, id, start, goal) \
  { label, id, &states[start], &states[goal] }
#define END_OF(state, id, success, failure)                                   \
  STEP(SUCCESS, id, state, success), STEP(FAILURE, (id) + 1, state, failure), \
      STEP("transition_error", (id) + 2, state, (state) == ERRORPROCESSING ? FINALIZED : ERRORPROCESSING)
static const rcl_lifecycle_transition_t transitions[TRANSITION_COUNT] = {
    STEP("configure", 1, UNCONFIGURED, CONFIGURING),
    STEP("shutdown", 5, UNCONFIGURED, SHUTTINGDOWN),
    STEP("cleanup", 2, INACTIVE, CLEANINGUP),
    STEP("activate", 3, INACTIVE, ACTIVATING),
    STEP("shutdown", 6, INACTIVE, SHUTTINGDOWN),
    STEP("deactivate", 4, ACTIVE, DEACTIVATING),
    STEP("shutdown", 7, ACTIVE, SHUTTINGDOWN),
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

static rcl_service_t *service_of(rcl_lifecycle_com_interface_t *interface, service_number_t service) {
  rcl_service_t *const services[SERVICE_COUNT] = {
      [CHANGE_STATE] = &interface->srv_change_state,
      [GET_STATE] = &interface->srv_get_state,
      [GET_AVAILABLE_STATES] = &interface->srv_get_available_states,
      [GET_AVAILABLE_TRANSITIONS] = &interface->srv_get_available_transitions,
      [GET_TRANSITION_GRAPH] = &interface->srv_get_transition_graph,
  };
  return services[service];
}

static rcl_ret_t open_service(rcl_lifecycle_com_interface_t *interface, service_number_t service) {
  static const char *const names[SERVICE_COUNT] = {
      [CHANGE_STATE] = "~/change_state",
      [GET_STATE] = "~/get_state",
      [GET_AVAILABLE_STATES] = "~/get_available_states",
      [GET_AVAILABLE_TRANSITIONS] = "~/get_available_transitions",
      [GET_TRANSITION_GRAPH] = "~/get_transition_graph",
  };
  return rclc_service_init_default(service_of(interface, service), interface->node_handle, &service_types[service],
                                   names[service]);
}

static rcl_ret_t close_interface(rcl_lifecycle_com_interface_t *interface) {
  rcl_ret_t result = rcl_publisher_fini(&interface->pub_transition_event, interface->node_handle);
  for (size_t i = 0; i < SERVICE_COUNT; i++) {
    const rcl_ret_t closed = rcl_service_fini(service_of(interface, (service_number_t)i), interface->node_handle);
    if (result == RCL_RET_OK) result = closed;
  }
  return result;
}

static rcl_ret_t open_interface(rcl_lifecycle_com_interface_t *interface) {
  rcl_ret_t result = rclc_publisher_init_default(&interface->pub_transition_event, interface->node_handle,
                                                 &event_support, "~/transition_event");
  for (size_t i = 0; i <= GET_AVAILABLE_STATES && result == RCL_RET_OK; i++) {
    result = open_service(interface, (service_number_t)i);
  }
  if (result == RCL_RET_OK) return result;
  const int status = tide_rclc_last_status();
  (void)close_interface(interface);
  (void)tide_compat_result(status); /* the first error is returned */
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

/* The node changes its state even if the event is lost. */
static rcl_ret_t go(rcl_lifecycle_state_machine_t *machine, const rcl_lifecycle_transition_t *transition,
                    bool publish) {
  if (transition == NULL) return tide_compat_refusal(TIDE_ERROR_NOT_FOUND, RCL_RET_INVALID_ARGUMENT);
  machine->current_state = transition->goal;
  if (publish && machine->options.enable_com_interface) {
    const event_message_t message = {transition, (uint64_t)rmw_uros_epoch_nanos()};
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

/* ---- nodes ---- */

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

/* Pointer to the callback's entry; null if there is none. */
static callback_t *callback_of(rclc_lifecycle_callback_map_t *callbacks, unsigned int transition_id) {
  switch (transition_id) {
    case TRANSITION_CONFIGURE: return &callbacks->configure;
    case TRANSITION_CLEANUP: return &callbacks->cleanup;
    case TRANSITION_ACTIVATE: return &callbacks->activate;
    case TRANSITION_DEACTIVATE: return &callbacks->deactivate;
    default: break;
  }
  if (transition_id < TRANSITION_UNCONFIGURED_SHUTDOWN || transition_id > TRANSITION_ACTIVE_SHUTDOWN) {
    return NULL;
  }
  return &callbacks->shutdown[transition_id - TRANSITION_UNCONFIGURED_SHUTDOWN];
}

rcl_ret_t rclc_lifecycle_register_callback(rclc_lifecycle_node_t *lifecycle_node, unsigned int goal_state,
                                           int (*cb)(void)) {
  callback_t *place = lifecycle_node == NULL ? NULL : callback_of(&lifecycle_node->callbacks, goal_state);
  if (place == NULL || cb == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *place = cb;
  return RCL_RET_OK;
}

rcl_ret_t rclc_lifecycle_register_on_configure(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TRANSITION_CONFIGURE, cb);
}

rcl_ret_t rclc_lifecycle_register_on_activate(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TRANSITION_ACTIVATE, cb);
}

rcl_ret_t rclc_lifecycle_register_on_deactivate(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TRANSITION_DEACTIVATE, cb);
}

rcl_ret_t rclc_lifecycle_register_on_cleanup(rclc_lifecycle_node_t *node, int (*cb)(void)) {
  return rclc_lifecycle_register_callback(node, TRANSITION_CLEANUP, cb);
}

rcl_ret_t rclc_lifecycle_execute_callback(rclc_lifecycle_node_t *lifecycle_node, unsigned int transition_id) {
  if (lifecycle_node == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const callback_t *place = callback_of(&lifecycle_node->callbacks, transition_id);
  return place == NULL || *place == NULL ? RCL_RET_OK : (*place)();
}

/* success: the callback's result. */
static rcl_ret_t change(rclc_lifecycle_node_t *node, unsigned int transition_id, bool publish, bool *success) {
  *success = false;
  if (transition_id > UINT8_MAX) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t begun = rcl_lifecycle_trigger_transition_by_id(node->state_machine, (uint8_t)transition_id, publish);
  if (begun != RCL_RET_OK) return RCL_RET_ERROR;
  *success = rclc_lifecycle_execute_callback(node, transition_id) == RCL_RET_OK;
  const char *end = *success ? SUCCESS : FAILURE;
  /* If the program ends transitions itself (rclc_lifecycle_change_state), the node is in no state in which a callback
   * is awaited. */
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

/* The answer is composed while it is encoded. */
static void on_question(const void *request, void *response, void *context) {
  (void)request;
  (void)response;
  (void)context;
}

static rcl_ret_t serve(rclc_lifecycle_service_context_t *context, rclc_executor_t *executor, service_number_t service,
                       rclc_service_callback_with_context_t callback) {
  if (context == NULL || executor == NULL || context->lifecycle_node == NULL ||
      context->lifecycle_node->state_machine == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  rclc_lifecycle_node_t *node = context->lifecycle_node;
  rcl_lifecycle_com_interface_t *interface = &node->state_machine->com_interface;
  rcl_service_t *place = service_of(interface, service);
  if (place->impl == NULL && service > GET_AVAILABLE_STATES) {
    const rcl_ret_t opened = open_service(interface, service);
    if (opened != RCL_RET_OK) return opened;
  }
  tide_lifecycle_answer_t *answer = &node->answers[service];
  answer->state_machine = node->state_machine;
  const tide_service_type_t *type = service_types[service].data;
  if (tide_message_size(type->response, answer) > tide_compat_response_capacity()) {
    return tide_compat_result(TIDE_ERROR_TOO_LARGE);
  }
  return rclc_executor_add_service_with_context(executor, place, answer, answer, callback, context);
}

rcl_ret_t rclc_lifecycle_init_change_state_server(rclc_lifecycle_service_context_t *context,
                                                  rclc_executor_t *executor) {
  return serve(context, executor, CHANGE_STATE, on_change);
}

rcl_ret_t rclc_lifecycle_init_get_state_server(rclc_lifecycle_service_context_t *context, rclc_executor_t *executor) {
  return serve(context, executor, GET_STATE, on_question);
}

rcl_ret_t rclc_lifecycle_init_get_available_states_server(rclc_lifecycle_service_context_t *context,
                                                          rclc_executor_t *executor) {
  return serve(context, executor, GET_AVAILABLE_STATES, on_question);
}

rcl_ret_t tide_rclc_lifecycle_init_get_available_transitions_server(rclc_lifecycle_service_context_t *context,
                                                                    rclc_executor_t *executor) {
  return serve(context, executor, GET_AVAILABLE_TRANSITIONS, on_question);
}

rcl_ret_t tide_rclc_lifecycle_init_get_transition_graph_server(rclc_lifecycle_service_context_t *context,
                                                               rclc_executor_t *executor) {
  return serve(context, executor, GET_TRANSITION_GRAPH, on_question);
}
