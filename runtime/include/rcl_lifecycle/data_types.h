/* SPDX-License-Identifier: Apache-2.0 */
/* States and transitions of a lifecycle node. The default states and transitions are constants of the library. */
#ifndef RCL_LIFECYCLE__DATA_TYPES_H_
#define RCL_LIFECYCLE__DATA_TYPES_H_

#include "rcl/rcl.h"

typedef struct rcl_lifecycle_transition_t rcl_lifecycle_transition_t;

typedef struct rcl_lifecycle_state_t {
  const char *label;
  uint8_t id;
  const rcl_lifecycle_transition_t *valid_transitions;
  unsigned int valid_transition_size;
} rcl_lifecycle_state_t;

struct rcl_lifecycle_transition_t {
  const char *label;
  unsigned int id;
  const rcl_lifecycle_state_t *start;
  const rcl_lifecycle_state_t *goal;
};

typedef struct rcl_lifecycle_transition_map_t {
  const rcl_lifecycle_state_t *states;
  unsigned int states_size;
  const rcl_lifecycle_transition_t *transitions;
  unsigned int transitions_size;
} rcl_lifecycle_transition_map_t;

typedef struct rcl_lifecycle_com_interface_t {
  rcl_node_t *node_handle;
  rcl_publisher_t pub_transition_event;
  rcl_service_t srv_change_state;
  rcl_service_t srv_get_state;
  rcl_service_t srv_get_available_states;
  rcl_service_t srv_get_available_transitions;
  rcl_service_t srv_get_transition_graph;
} rcl_lifecycle_com_interface_t;

typedef struct rcl_lifecycle_state_machine_options_t {
  bool initialize_default_states; /* must be true: there are no other states */
  bool enable_com_interface;
  rcl_allocator_t allocator; /* not used */
} rcl_lifecycle_state_machine_options_t;

typedef struct rcl_lifecycle_state_machine_t {
  const rcl_lifecycle_state_t *current_state; /* null: not initialised */
  rcl_lifecycle_transition_map_t transition_map;
  rcl_lifecycle_com_interface_t com_interface;
  rcl_lifecycle_state_machine_options_t options;
} rcl_lifecycle_state_machine_t;

#endif
