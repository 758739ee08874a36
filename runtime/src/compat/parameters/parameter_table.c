/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a server, and how they change. */
#include <string.h>

#include "parameters.h"

static const char *const outcome_texts[] = {
    [TIDE_PARAMETER_CHANGED] = "",
    [TIDE_PARAMETER_ADDED] = "New parameter added",
    [TIDE_PARAMETER_READ_ONLY] = "Read only parameter",
    [TIDE_PARAMETER_OTHER_TYPE] = "Type mismatch",
    [TIDE_PARAMETER_UNSUPPORTED_TYPE] = "Type not supported",
    [TIDE_PARAMETER_OUT_OF_RANGE] = "Out of range",
    [TIDE_PARAMETER_REJECTED] = "Rejected by server",
    [TIDE_PARAMETER_NOT_FOUND] = "Parameter not found",
    [TIDE_PARAMETER_NO_PLACE] = "Parameter server is full",
    [TIDE_PARAMETER_NAME_TOO_LONG] = "Name too long",
    [TIDE_PARAMETER_BUSY] = "Parameters are being changed",
};

const char *tide_parameter_outcome_text(uint8_t outcome) { return outcome_texts[outcome]; }

tide_parameter_t *tide_parameter_find(const tide_parameter_server_t *server, const char *name) {
  for (uint8_t i = 0; i < server->count; i++) {
    tide_parameter_t *parameter = &server->parameters[i];
    if (parameter->in_use && strcmp(parameter->name, name) == 0) return parameter;
  }
  return NULL;
}

static tide_parameter_t *free_place(const tide_parameter_server_t *server) {
  for (uint8_t i = 0; i < server->count; i++) {
    if (!server->parameters[i].in_use) return &server->parameters[i];
  }
  return NULL;
}

/* Eight bytes that another thread may be writing. */
tide_parameter_value_t tide_parameter_value(const tide_parameter_t *parameter) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  const tide_parameter_value_t value = parameter->value;
  tide_platform_exit(platform, critical);
  return value;
}

static void set_value(tide_parameter_t *parameter, tide_parameter_value_t value) {
  const tide_platform_t *platform = tide_port_platform();
  const uintptr_t critical = tide_platform_enter(platform);
  parameter->value = value;
  tide_platform_exit(platform, critical);
}

static bool is_integer_in_range(const tide_parameter_t *parameter, int64_t value) {
  const int64_t from = parameter->from.integer, to = parameter->to.integer;
  if (value < from || value > to) return false;
  const uint64_t distance = (uint64_t)value - (uint64_t)from, step = parameter->step.unsigned_integer;
  return step == 0 || value == to || distance % step == 0;
}

/* Steps are counted as closely as a double of this size allows. */
static bool is_real_in_range(const tide_parameter_t *parameter, double value) {
  const double from = parameter->from.real, to = parameter->to.real, step = parameter->step.real;
  if (!(value >= from && value <= to)) return false;
  const double steps = step == 0.0 ? 0.0 : (value - from) / step;
  if (step == 0.0 || value == to || steps > 9e15) return true;
  const double rest = steps - (double)(int64_t)(steps + 0.5);
  return rest < 1e-6 && rest > -1e-6;
}

bool tide_parameter_is_in_range(const tide_parameter_t *parameter, tide_parameter_value_t value) {
  if (!parameter->has_range) return true;
  return parameter->type == RCLC_PARAMETER_INT ? is_integer_in_range(parameter, value.integer)
                                               : is_real_in_range(parameter, value.real);
}

static uint8_t check_new(const tide_parameter_server_t *server, const tide_parameter_change_t *change, bool by_client) {
  const bool wanted = !by_client || server->program->allow_undeclared_parameters;
  if (!wanted || (by_client && change->type == RCLC_PARAMETER_NOT_SET)) return TIDE_PARAMETER_NOT_FOUND;
  if (change->type > RCLC_PARAMETER_DOUBLE) return TIDE_PARAMETER_UNSUPPORTED_TYPE;
  if (strlen(change->name) >= tide_parameter_pools.name_bytes) return TIDE_PARAMETER_NAME_TOO_LONG;
  return free_place(server) == NULL ? TIDE_PARAMETER_NO_PLACE : TIDE_PARAMETER_ADDED;
}

uint8_t tide_parameter_check(const tide_parameter_server_t *server, const tide_parameter_change_t *change,
                             bool by_client) {
  const tide_parameter_t *parameter = tide_parameter_find(server, change->name);
  if (parameter == NULL) return check_new(server, change, by_client);
  if (by_client && parameter->read_only) return TIDE_PARAMETER_READ_ONLY;
  if (change->type == RCLC_PARAMETER_NOT_SET) return TIDE_PARAMETER_CHANGED;
  if (change->type > RCLC_PARAMETER_DOUBLE) return TIDE_PARAMETER_UNSUPPORTED_TYPE;
  if (change->type != parameter->type) return TIDE_PARAMETER_OTHER_TYPE;
  return by_client && !tide_parameter_is_in_range(parameter, change->value) ? TIDE_PARAMETER_OUT_OF_RANGE
                                                                            : TIDE_PARAMETER_CHANGED;
}

void tide_parameter_to_message(Parameter *message, const tide_parameter_change_t *change) {
  memset(message, 0, sizeof *message);
  message->name.size = strlen(change->name);
  message->name.capacity = message->name.size + 1;
  message->name.data = (char *)change->name; /* who gets the message must not write to it */
  message->value.type = change->type;
  if (change->type == RCLC_PARAMETER_BOOL) message->value.bool_value = change->value.boolean;
  if (change->type == RCLC_PARAMETER_INT) message->value.integer_value = change->value.integer;
  if (change->type == RCLC_PARAMETER_DOUBLE) message->value.double_value = change->value.real;
}

bool tide_parameter_ask(tide_parameter_server_t *server, const tide_parameter_change_t *change, bool revoked) {
  rclc_parameter_server_t *program = server->program;
  if (program->on_modification == NULL) return true;
  const tide_parameter_t *parameter = tide_parameter_find(server, change->name);
  Parameter before, after;
  if (parameter != NULL) {
    const tide_parameter_change_t now = {parameter->name, parameter->type, tide_parameter_value(parameter)};
    tide_parameter_to_message(&before, &now);
  }
  tide_parameter_to_message(&after, change);
  const Parameter *from = parameter == NULL ? NULL : &before;
  const Parameter *to = change->type == RCLC_PARAMETER_NOT_SET ? NULL : &after;
  program->on_callback = true;
  const bool accepted = program->on_modification(revoked ? to : from, revoked ? from : to, program->context);
  program->on_callback = false;
  return accepted;
}

uint8_t tide_parameter_add(tide_parameter_server_t *server, const tide_parameter_change_t *change) {
  tide_parameter_t *parameter = free_place(server);
  if (parameter == NULL) return TIDE_PARAMETER_NO_PLACE;
  memcpy(parameter->name, change->name, strlen(change->name) + 1);
  if (parameter->description != NULL) parameter->description[0] = parameter->constraints[0] = '\0';
  parameter->value = change->value;
  parameter->type = change->type;
  parameter->read_only = parameter->has_range = false;
  parameter->in_use = true;
  tide_parameter_tell(server, parameter, TIDE_PARAMETER_NEW);
  return TIDE_PARAMETER_ADDED;
}

void tide_parameter_remove(tide_parameter_server_t *server, tide_parameter_t *parameter) {
  tide_parameter_tell(server, parameter, TIDE_PARAMETER_DELETED);
  parameter->in_use = false;
}

uint8_t tide_parameter_make(tide_parameter_server_t *server, const tide_parameter_change_t *change) {
  tide_parameter_t *parameter = tide_parameter_find(server, change->name);
  if (parameter == NULL) return tide_parameter_add(server, change);
  if (change->type == RCLC_PARAMETER_NOT_SET) {
    tide_parameter_remove(server, parameter);
  } else {
    set_value(parameter, change->value);
    tide_parameter_tell(server, parameter, TIDE_PARAMETER_VALUE);
  }
  return TIDE_PARAMETER_CHANGED;
}

uint8_t tide_parameter_apply(tide_parameter_server_t *server, const tide_parameter_change_t *change, bool by_client) {
  if (server->program->on_callback) return TIDE_PARAMETER_BUSY;
  const uint8_t outcome = tide_parameter_check(server, change, by_client);
  if (!tide_parameter_is_done(outcome)) return outcome;
  if (!tide_parameter_ask(server, change, false)) return TIDE_PARAMETER_REJECTED;
  return tide_parameter_make(server, change);
}
