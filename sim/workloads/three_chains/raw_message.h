/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of any ROS 2 type as they are on the wire, without code for the type. */
#ifndef THREE_CHAINS_RAW_MESSAGE_H
#define THREE_CHAINS_RAW_MESSAGE_H

#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_runtime_c/service_type_support_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tide/message.h>
#include <tide/message_memory.h>

#include "plan.h"

typedef struct raw_message {
  uint8_t *bytes; /* of the serialised message without encapsulation */
  size_t size, capacity;
} raw_message_t;

/* A type that is known by name only; its messages are raw_message_t. Must not move. */
typedef struct raw_type {
  char package[PLAN_TYPE_BYTES], dds_name[PLAN_TYPE_BYTES + 16];
  tide_message_type_t type;
  rosidl_message_type_support_t support;
} raw_type_t;

/* A service whose requests and responses are raw_message_t. Must not move. */
typedef struct raw_service {
  raw_type_t request, response;
  tide_service_type_t type;
  rosidl_service_type_support_t support;
} raw_service_t;

/* name: as std_msgs/msg/String. False: it is none. */
bool raw_type_init(raw_type_t *type, const char *name);
/* name: as std_srvs/srv/Trigger. False: it is none. */
bool raw_service_init(raw_service_t *service, const char *name);
/* False, with one line on standard error: the file cannot be read, is empty, or is larger than PLAN_PAYLOAD_BYTES. The
 * memory is the message's for good. */
bool raw_message_read(raw_message_t *message, const char *file);
/* Room for any message; false: no memory. */
bool raw_message_reserve(raw_message_t *message);

#endif
