/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of lifecycle nodes share. */
#ifndef TIDE_COMPAT_LIFECYCLE_H
#define TIDE_COMPAT_LIFECYCLE_H

#include "../internal.h"
#include "rclc_lifecycle/rclc_lifecycle.h"

typedef enum tide_lifecycle_service {
  TIDE_LIFECYCLE_CHANGE_STATE,
  TIDE_LIFECYCLE_GET_STATE,
  TIDE_LIFECYCLE_GET_AVAILABLE_STATES,
  TIDE_LIFECYCLE_GET_AVAILABLE_TRANSITIONS,
  TIDE_LIFECYCLE_GET_TRANSITION_GRAPH,
  TIDE_LIFECYCLE_SERVICE_COUNT
} tide_lifecycle_service_t;

/* Ids of lifecycle_msgs/Transition. */
enum {
  TIDE_LIFECYCLE_CONFIGURE = 1,
  TIDE_LIFECYCLE_CLEANUP = 2,
  TIDE_LIFECYCLE_ACTIVATE = 3,
  TIDE_LIFECYCLE_DEACTIVATE = 4,
  TIDE_LIFECYCLE_UNCONFIGURED_SHUTDOWN = 5,
  TIDE_LIFECYCLE_ACTIVE_SHUTDOWN = 7
};

/* Both where rcl has them: what a callback's end leads to is found by its label. */
#define TIDE_LIFECYCLE_SUCCESS "transition_success"
#define TIDE_LIFECYCLE_FAILURE "transition_failure"

typedef struct tide_lifecycle_event_message {
  const rcl_lifecycle_transition_t *transition;
  uint64_t stamp_ns;
} tide_lifecycle_event_message_t;

extern const rosidl_message_type_support_t tide_lifecycle_event_type;
extern const rosidl_service_type_support_t tide_lifecycle_service_types[TIDE_LIFECYCLE_SERVICE_COUNT];

rcl_service_t *tide_lifecycle_service(rcl_lifecycle_com_interface_t *interface, tide_lifecycle_service_t service);
rcl_ret_t tide_lifecycle_open_service(rcl_lifecycle_com_interface_t *interface, tide_lifecycle_service_t service);

#endif
