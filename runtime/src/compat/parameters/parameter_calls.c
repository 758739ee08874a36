/* SPDX-License-Identifier: Apache-2.0 */
/* What a program does with its parameters. */
#include <string.h>

#include "parameters.h"

static rcl_ret_t result_of(uint8_t outcome) {
  switch (outcome) {
    case TIDE_PARAMETER_CHANGED:
    case TIDE_PARAMETER_ADDED:
      return RCL_RET_OK;
    case TIDE_PARAMETER_OTHER_TYPE:
      return RCLC_PARAMETER_TYPE_MISMATCH;
    case TIDE_PARAMETER_REJECTED:
      return RCLC_PARAMETER_MODIFICATION_REJECTED;
    case TIDE_PARAMETER_BUSY:
      return RCLC_PARAMETER_DISABLED_ON_CALLBACK;
    case TIDE_PARAMETER_NO_PLACE:
      (void)tide_compat_result(TIDE_ERROR_CAPACITY_PARAMETERS);
      return RCL_RET_ERROR;
    case TIDE_PARAMETER_NAME_TOO_LONG:
      (void)tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
      return RCL_RET_ERROR;
    default:
      (void)tide_compat_result(TIDE_ERROR_NOT_FOUND);
      return RCL_RET_ERROR;
  }
}

/* A parameter that the program may change now; null: the result says why not. */
static tide_parameter_t *to_change(const rclc_parameter_server_t *program, const char *name, rcl_ret_t *result) {
  if (!tide_parameter_is_server(program) || name == NULL) {
    *result = tide_compat_result(TIDE_ERROR_ARGUMENT);
    return NULL;
  }
  tide_parameter_t *parameter = tide_parameter_find(program->impl, name);
  *result = program->on_callback ? RCLC_PARAMETER_DISABLED_ON_CALLBACK
            : parameter == NULL  ? result_of(TIDE_PARAMETER_NOT_FOUND)
                                 : RCL_RET_OK;
  return *result == RCL_RET_OK ? parameter : NULL;
}

rcl_ret_t rclc_add_parameter(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                             rclc_parameter_type_t type) {
  if (!tide_parameter_is_server(parameter_server) || parameter_name == NULL || type > RCLC_PARAMETER_DOUBLE) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (parameter_server->on_callback) return RCLC_PARAMETER_DISABLED_ON_CALLBACK;
  tide_parameter_server_t *server = parameter_server->impl;
  const tide_parameter_change_t change = {parameter_name, (uint8_t)type, {0}};
  if (tide_parameter_find(server, parameter_name) != NULL) {
    (void)tide_compat_result(TIDE_ERROR_EXISTS);
    return RCL_RET_ERROR;
  }
  const uint8_t outcome = tide_parameter_check(server, &change, false);
  return result_of(tide_parameter_is_done(outcome) ? tide_parameter_add(server, &change) : outcome);
}

rcl_ret_t rclc_delete_parameter(rclc_parameter_server_t *parameter_server, const char *parameter_name) {
  rcl_ret_t result;
  tide_parameter_t *parameter = to_change(parameter_server, parameter_name, &result);
  if (parameter != NULL) tide_parameter_remove(parameter_server->impl, parameter);
  return result;
}

static rcl_ret_t set(rclc_parameter_server_t *program, const char *name, rclc_parameter_type_t type,
                     tide_parameter_value_t value) {
  rcl_ret_t result;
  if (to_change(program, name, &result) == NULL) return result;
  const tide_parameter_change_t change = {name, (uint8_t)type, value};
  return result_of(tide_parameter_apply(program->impl, &change, false));
}

rcl_ret_t rclc_parameter_set_bool(rclc_parameter_server_t *parameter_server, const char *parameter_name, bool value) {
  return set(parameter_server, parameter_name, RCLC_PARAMETER_BOOL, (tide_parameter_value_t){.boolean = value});
}

rcl_ret_t rclc_parameter_set_int(rclc_parameter_server_t *parameter_server, const char *parameter_name, int64_t value) {
  return set(parameter_server, parameter_name, RCLC_PARAMETER_INT, (tide_parameter_value_t){.integer = value});
}

rcl_ret_t rclc_parameter_set_double(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                    double value) {
  return set(parameter_server, parameter_name, RCLC_PARAMETER_DOUBLE, (tide_parameter_value_t){.real = value});
}

static rcl_ret_t get(const rclc_parameter_server_t *program, const char *name, rclc_parameter_type_t type,
                     const void *output, tide_parameter_value_t *value) {
  if (!tide_parameter_is_server(program) || name == NULL || output == NULL)
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_parameter_t *parameter = tide_parameter_find(program->impl, name);
  if (parameter == NULL) return result_of(TIDE_PARAMETER_NOT_FOUND);
  if (parameter->type != type) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *value = tide_parameter_value(parameter);
  return RCL_RET_OK;
}

rcl_ret_t rclc_parameter_get_bool(rclc_parameter_server_t *parameter_server, const char *parameter_name, bool *output) {
  tide_parameter_value_t value = {0};
  const rcl_ret_t result = get(parameter_server, parameter_name, RCLC_PARAMETER_BOOL, output, &value);
  if (result == RCL_RET_OK) *output = value.boolean;
  return result;
}

rcl_ret_t(rclc_parameter_get_int)(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                  int64_t *output) {
  tide_parameter_value_t value = {0};
  const rcl_ret_t result = get(parameter_server, parameter_name, RCLC_PARAMETER_INT, output, &value);
  if (result == RCL_RET_OK) *output = value.integer;
  return result;
}

rcl_ret_t tide_parameter_get_int_of_first_edition(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                                  int *output) {
  tide_parameter_value_t value = {0};
  const rcl_ret_t result = get(parameter_server, parameter_name, RCLC_PARAMETER_INT, output, &value);
  if (result == RCL_RET_OK) *output = (int)value.integer;
  return result;
}

rcl_ret_t rclc_parameter_get_double(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                    double *output) {
  tide_parameter_value_t value = {0};
  const rcl_ret_t result = get(parameter_server, parameter_name, RCLC_PARAMETER_DOUBLE, output, &value);
  if (result == RCL_RET_OK) *output = value.real;
  return result;
}

/* ---- what is said about them ---- */

rcl_ret_t rclc_add_parameter_description(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                         const char *parameter_description, const char *additional_constraints) {
  if (!tide_parameter_is_server(parameter_server) || parameter_name == NULL || parameter_description == NULL ||
      additional_constraints == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (parameter_server->low_mem_mode) return RCLC_PARAMETER_UNSUPORTED_ON_LOW_MEM;
  const tide_parameter_t *parameter = tide_parameter_find(parameter_server->impl, parameter_name);
  if (parameter == NULL) return result_of(TIDE_PARAMETER_NOT_FOUND);
  const size_t capacity = tide_parameter_pools.text_bytes;
  if (strlen(parameter_description) >= capacity || strlen(additional_constraints) >= capacity) {
    return result_of(TIDE_PARAMETER_NAME_TOO_LONG);
  }
  memcpy(parameter->description, parameter_description, strlen(parameter_description) + 1);
  memcpy(parameter->constraints, additional_constraints, strlen(additional_constraints) + 1);
  return RCL_RET_OK;
}

rcl_ret_t rclc_set_parameter_read_only(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                       bool read_only) {
  rcl_ret_t result;
  tide_parameter_t *parameter = to_change(parameter_server, parameter_name, &result);
  if (parameter != NULL) parameter->read_only = read_only;
  return result;
}

static rcl_ret_t constrain(rclc_parameter_server_t *program, const char *name, rclc_parameter_type_t type,
                           const tide_parameter_value_t range[3]) {
  rcl_ret_t result;
  tide_parameter_t *parameter = to_change(program, name, &result);
  if (parameter == NULL) return result;
  if (parameter->type != type) {
    (void)tide_compat_result(TIDE_ERROR_ARGUMENT);
    return RCL_RET_ERROR;
  }
  parameter->from = range[0];
  parameter->to = range[1];
  parameter->step = range[2];
  parameter->has_range = true;
  return RCL_RET_OK;
}

rcl_ret_t rclc_add_parameter_constraint_integer(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                                int64_t from_value, int64_t to_value, uint64_t step) {
  const tide_parameter_value_t range[3] = {{.integer = from_value}, {.integer = to_value}, {.unsigned_integer = step}};
  return constrain(parameter_server, parameter_name, RCLC_PARAMETER_INT, range);
}

rcl_ret_t rclc_add_parameter_constraint_double(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                               double from_value, double to_value, double step) {
  const tide_parameter_value_t range[3] = {{.real = from_value}, {.real = to_value}, {.real = step}};
  return constrain(parameter_server, parameter_name, RCLC_PARAMETER_DOUBLE, range);
}
