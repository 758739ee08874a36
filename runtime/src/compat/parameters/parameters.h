/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of parameters share. */
#ifndef TIDE_COMPAT_PARAMETERS_H
#define TIDE_COMPAT_PARAMETERS_H

#include "../internal.h"
#include "tide/pool_parameters.h"

/* What became of a change; with its text the answer to who asked. */
typedef enum tide_parameter_outcome {
  TIDE_PARAMETER_CHANGED,
  TIDE_PARAMETER_ADDED,
  TIDE_PARAMETER_READ_ONLY,
  TIDE_PARAMETER_OTHER_TYPE,
  TIDE_PARAMETER_UNSUPPORTED_TYPE,
  TIDE_PARAMETER_OUT_OF_RANGE,
  TIDE_PARAMETER_REJECTED,
  TIDE_PARAMETER_NOT_FOUND,
  TIDE_PARAMETER_NO_PLACE,
  TIDE_PARAMETER_NAME_TOO_LONG,
  TIDE_PARAMETER_BUSY /* the program's callback is being asked */
} tide_parameter_outcome_t;

/* A wish of a client or the program. Type NOT_SET: that there is no such parameter. */
typedef struct tide_parameter_change {
  const char *name; /* ended by NUL */
  uint8_t type;     /* rcl_interfaces/ParameterType, also those that are not supported */
  tide_parameter_value_t value;
} tide_parameter_change_t;

#define TIDE_PARAMETER_NO_ITEM 255u

/* Initialised, of a support that lives. */
bool tide_parameter_is_server(const rclc_parameter_server_t *program);
tide_parameter_t *tide_parameter_find(const tide_parameter_server_t *server, const char *name);
tide_parameter_value_t tide_parameter_value(const tide_parameter_t *parameter);
const char *tide_parameter_outcome_text(uint8_t outcome);
static inline bool tide_parameter_is_done(uint8_t outcome) { return outcome <= TIDE_PARAMETER_ADDED; }

/* The whole way of a change: may it be, does the program accept it, make it, tell it. */
uint8_t tide_parameter_apply(tide_parameter_server_t *server, const tide_parameter_change_t *change, bool by_client);
/* The parts of it. */
uint8_t tide_parameter_check(const tide_parameter_server_t *server, const tide_parameter_change_t *change,
                             bool by_client);
/* Asks the program; revoked: that it take back what it accepted. */
bool tide_parameter_ask(tide_parameter_server_t *server, const tide_parameter_change_t *change, bool revoked);
uint8_t tide_parameter_make(tide_parameter_server_t *server, const tide_parameter_change_t *change);

uint8_t tide_parameter_add(tide_parameter_server_t *server, const tide_parameter_change_t *change);
void tide_parameter_remove(tide_parameter_server_t *server, tide_parameter_t *parameter);
bool tide_parameter_is_in_range(const tide_parameter_t *parameter, tide_parameter_value_t value);
/* As a message; the value's other members are empty. */
void tide_parameter_to_message(Parameter *message, const tide_parameter_change_t *change);

typedef enum tide_parameter_event {
  TIDE_PARAMETER_NEW,
  TIDE_PARAMETER_VALUE,
  TIDE_PARAMETER_DELETED
} tide_parameter_event_t;
/* Publishes what happened, and stores it. */
void tide_parameter_tell(tide_parameter_server_t *server, const tide_parameter_t *parameter,
                         tide_parameter_event_t event);

typedef struct tide_parameter_event_message {
  const tide_parameter_server_t *server;
  const tide_parameter_t *parameter;
  tide_parameter_event_t event;
  int64_t stamp_ns;
} tide_parameter_event_message_t;
extern const rosidl_message_type_support_t tide_parameter_event_type;

void tide_parameter_put_value(tide_cdr_t *cdr, uint8_t type, tide_parameter_value_t value);
/* The next of a list of parameters; the name stays in the buffer. False: it is malformed. */
bool tide_parameter_get_change(tide_cdr_t *cdr, tide_parameter_change_t *change);
/* The next of a list of names. Null: it is malformed. */
const char *tide_parameter_get_name(tide_cdr_t *cdr);
void tide_parameter_put_text(tide_cdr_t *cdr, const char *text);
/* Six, in the order of tide_parameter_service_t. */
extern const rosidl_service_type_support_t tide_parameter_service_types[TIDE_PARAMETER_SERVICE_COUNT];

#endif
