/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of lifecycle_msgs, straight between the wire and the state machine. */
#include <string.h>

#include "lifecycle.h"
#include "tide/message_memory.h"

static void put_text(tide_cdr_t *cdr, const char *text) { tide_cdr_put_string(cdr, text, strlen(text)); }

static void put_state(tide_cdr_t *cdr, const rcl_lifecycle_state_t *state) {
  tide_cdr_put_u8(cdr, state->id);
  put_text(cdr, state->label);
}

/* A Transition and the states at its ends: TransitionDescription, and the last of TransitionEvent. */
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
  const tide_lifecycle_event_message_t *message = untyped;
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

/* By its id, or, where that is 0, by its label. */
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
  (void)cdr; /* peers send an octet, or none */
  (void)untyped;
}

static void encode_nothing(tide_cdr_t *cdr, const void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

static void decode_nothing(tide_cdr_t *cdr, void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

static const tide_message_type_t event_type = {
    .package = "lifecycle_msgs",
    .kind = "msg",
    .name = "TransitionEvent",
    .dds_name = "lifecycle_msgs::msg::dds_::TransitionEvent_",
    .structure_bytes = sizeof(tide_lifecycle_event_message_t),
    .encode = encode_event,
    .decode = decode_nothing,
};
const rosidl_message_type_support_t tide_lifecycle_event_type = {TIDE_TYPESUPPORT_IDENTIFIER, &event_type,
                                                                 get_message_typesupport_handle_function};

#define PART(NAME, SIDE, ENCODE, DECODE)                                                         \
  {                                                                                              \
    "lifecycle_msgs", "srv", #NAME "_" #SIDE, "lifecycle_msgs::srv::dds_::" #NAME "_" #SIDE "_", \
        sizeof(tide_lifecycle_answer_t), 0, 0, NULL, ENCODE, DECODE                              \
  }
#define SERVICE(NAME, DECODE, ENCODE)                                                                \
  static const tide_message_type_t NAME##_parts[2] = {PART(NAME, Request, encode_nothing, DECODE),   \
                                                      PART(NAME, Response, ENCODE, decode_nothing)}; \
  static const tide_service_type_t NAME = {"lifecycle_msgs", #NAME, &NAME##_parts[0], &NAME##_parts[1]};
#define SUPPORT(NAME) \
  { TIDE_TYPESUPPORT_IDENTIFIER, &(NAME), get_service_typesupport_handle_function }

SERVICE(ChangeState, decode_change, encode_success)
SERVICE(GetState, decode_empty, encode_state)
SERVICE(GetAvailableStates, decode_empty, encode_states)
SERVICE(GetAvailableTransitions, decode_empty, encode_available_transitions)
/* The graph has the same type on the wire. */
static const tide_message_type_t graph_response = {"lifecycle_msgs",
                                                   "srv",
                                                   "GetAvailableTransitions_Response",
                                                   "lifecycle_msgs::srv::dds_::GetAvailableTransitions_Response_",
                                                   sizeof(tide_lifecycle_answer_t),
                                                   0,
                                                   0,
                                                   NULL,
                                                   encode_graph,
                                                   decode_nothing};
static const tide_service_type_t GetTransitionGraph = {"lifecycle_msgs", "GetAvailableTransitions",
                                                       &GetAvailableTransitions_parts[0], &graph_response};

const rosidl_service_type_support_t tide_lifecycle_service_types[TIDE_LIFECYCLE_SERVICE_COUNT] = {
    [TIDE_LIFECYCLE_CHANGE_STATE] = SUPPORT(ChangeState),
    [TIDE_LIFECYCLE_GET_STATE] = SUPPORT(GetState),
    [TIDE_LIFECYCLE_GET_AVAILABLE_STATES] = SUPPORT(GetAvailableStates),
    [TIDE_LIFECYCLE_GET_AVAILABLE_TRANSITIONS] = SUPPORT(GetAvailableTransitions),
    [TIDE_LIFECYCLE_GET_TRANSITION_GRAPH] = SUPPORT(GetTransitionGraph),
};
