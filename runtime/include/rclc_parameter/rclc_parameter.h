/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a node: the six services of ROS 2, and /parameter_events.
 *
 * Memory: a server takes six services and a publisher of the program's pools, and entries of TIDE_PARAMETERS
 * (tide/pools.h); nothing is allocated. Names and descriptions are copied. Set-up calls are made from one thread,
 * before the executor spins, unless said otherwise. Values may be read and written from any thread. With several lanes,
 * a change is refused with RCLC_PARAMETER_DISABLED_ON_CALLBACK while the program's callback runs for another change.
 *
 * RCL_RET_ERROR: there is no such parameter, or no memory for it (rcl_get_error_string says which).
 * RCL_RET_INVALID_ARGUMENT: a pointer is null, or a value of another type was requested. */
#ifndef RCLC_PARAMETER__RCLC_PARAMETER_H_
#define RCLC_PARAMETER__RCLC_PARAMETER_H_

#include <rcl/rcl.h>
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rclc_parameter/types.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>

TIDE_EXTERN_C_BEGIN

/* Handles of an executor that a server takes. */
#define RCLC_EXECUTOR_PARAMETER_SERVER_HANDLES 6
#define RCLC_PARAMETER_EXECUTOR_HANDLES_NUMBER RCLC_EXECUTOR_PARAMETER_SERVER_HANDLES /* an older name */

#define RCLC_PARAMETER_MODIFICATION_REJECTED 4001
#define RCLC_PARAMETER_TYPE_MISMATCH 4002
#define RCLC_PARAMETER_UNSUPORTED_ON_LOW_MEM 4003
#define RCLC_PARAMETER_DISABLED_ON_CALLBACK 40004

typedef enum rclc_parameter_type_t {
  RCLC_PARAMETER_NOT_SET = 0,
  RCLC_PARAMETER_BOOL,
  RCLC_PARAMETER_INT,
  RCLC_PARAMETER_DOUBLE
} rclc_parameter_type_t;

/* Returns whether a change is accepted. Called before a value changes (old and new), and before a client creates a
 * parameter (old is null) or deletes one (new is null). Both pointers are valid only during the call. Only the type of
 * the value and the member for that type are set. The callback cannot change parameters. */
typedef bool (*rclc_parameter_callback_t)(const Parameter *old_param, const Parameter *new_param, void *context);

typedef struct rclc_parameter_options_t {
  bool notify_changed_over_dds;     /* publish /parameter_events */
  size_t max_params;                /* entries of TIDE_PARAMETERS that this server takes */
  bool allow_undeclared_parameters; /* clients may create parameters */
  bool low_mem_mode;                /* parameters have no descriptions */
} rclc_parameter_options_t;

struct tide_parameter_server;

/* Memory: the program's, until rclc_parameter_server_fini. */
typedef struct rclc_parameter_server_t {
  rcl_service_t get_service;
  rcl_service_t get_types_service;
  rcl_service_t set_service;
  rcl_service_t set_atomically_service;
  rcl_service_t list_service;
  rcl_service_t describe_service;
  rcl_publisher_t event_publisher;
  rclc_parameter_callback_t on_modification;
  void *context;
  bool on_callback;
  bool notify_changed_over_dds;
  bool allow_undeclared_parameters;
  bool low_mem_mode;
  struct tide_parameter_server *impl; /* null: not initialised */
} rclc_parameter_server_t;

/* Default options: events, 4 parameters, no undeclared ones, descriptions. */
rcl_ret_t rclc_parameter_server_init_default(rclc_parameter_server_t *parameter_server, rcl_node_t *node);
rcl_ret_t rclc_parameter_server_init_with_option(rclc_parameter_server_t *parameter_server, rcl_node_t *node,
                                                 const rclc_parameter_options_t *options);
rcl_ret_t rclc_parameter_server_fini(rclc_parameter_server_t *parameter_server, rcl_node_t *node);

/* on_modification may be null: every change is accepted. */
rcl_ret_t rclc_executor_add_parameter_server(rclc_executor_t *executor, rclc_parameter_server_t *parameter_server,
                                             rclc_parameter_callback_t on_modification);
rcl_ret_t rclc_executor_add_parameter_server_with_context(rclc_executor_t *executor,
                                                          rclc_parameter_server_t *parameter_server,
                                                          rclc_parameter_callback_t on_modification, void *context);

/* The initial value is false, 0 or 0.0. A name has at most TIDE_PARAMETER_NAME_BYTES - 1 characters. */
rcl_ret_t rclc_add_parameter(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                             rclc_parameter_type_t type);
rcl_ret_t rclc_delete_parameter(rclc_parameter_server_t *parameter_server, const char *parameter_name);

/* Changes by the program itself. on_modification may refuse them, but read-only flags and ranges do not apply. */
rcl_ret_t rclc_parameter_set_bool(rclc_parameter_server_t *parameter_server, const char *parameter_name, bool value);
rcl_ret_t rclc_parameter_set_int(rclc_parameter_server_t *parameter_server, const char *parameter_name, int64_t value);
rcl_ret_t rclc_parameter_set_double(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                    double value);
rcl_ret_t rclc_parameter_get_bool(rclc_parameter_server_t *parameter_server, const char *parameter_name, bool *output);
rcl_ret_t rclc_parameter_get_int(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                 int64_t *output);
rcl_ret_t rclc_parameter_get_double(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                    double *output);

/* The texts that clients read as the parameter's description and constraints; each has at most
 * TIDE_PARAMETER_TEXT_BYTES - 1 characters. */
rcl_ret_t rclc_add_parameter_description(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                         const char *parameter_description, const char *additional_constraints);
/* Clients cannot change or delete a read-only parameter. */
rcl_ret_t rclc_set_parameter_read_only(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                       bool read_only);
/* Clients may only set to_value, or from_value plus a whole number of steps. Step 0: they may set any value in the
 * range. */
rcl_ret_t rclc_add_parameter_constraint_integer(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                                int64_t from_value, int64_t to_value, uint64_t step);
rcl_ret_t rclc_add_parameter_constraint_double(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                               double from_value, double to_value, double step);

/* For programs written for the first version of the interface: its callback gets only the new value and cannot refuse,
 * and such programs read integers into an int. */
typedef void (*tide_parameter_callback_of_first_edition_t)(Parameter *parameter);
rcl_ret_t tide_parameter_add_server_of_first_edition(rclc_executor_t *executor,
                                                     rclc_parameter_server_t *parameter_server,
                                                     tide_parameter_callback_of_first_edition_t on_modification);
rcl_ret_t tide_parameter_get_int_of_first_edition(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                                  int *output);
#if !defined(__cplusplus) && !defined(TIDE_PARAMETER_FIRST_EDITION_OFF)
#define rclc_executor_add_parameter_server(executor, parameter_server, on_modification) \
  _Generic((on_modification), tide_parameter_callback_of_first_edition_t                \
           : tide_parameter_add_server_of_first_edition, default                        \
           : rclc_executor_add_parameter_server)(executor, parameter_server, on_modification)
#define rclc_parameter_get_int(parameter_server, parameter_name, output) \
  _Generic((output), int *: tide_parameter_get_int_of_first_edition, default: rclc_parameter_get_int)( \
      parameter_server, parameter_name, output)
#endif

TIDE_EXTERN_C_END
#endif
