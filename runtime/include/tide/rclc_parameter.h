/* SPDX-License-Identifier: Apache-2.0 */
/* tide's additions to the parameters of rclc: a level, counters, and values that survive a restart.
 *
 *   static bool load(void *context, const char *name, ParameterValue *value) { look it up, fill in the value }
 *   static void save(void *context, const char *name, const ParameterValue *value) { note it, write it later }
 *   static const tide_parameter_store_t flash = {load, save, NULL};
 *
 *   rclc_add_parameter(&server, "gain", RCLC_PARAMETER_DOUBLE);
 *   rclc_parameter_set_double(&server, "gain", 0.5);               used if no value is stored
 *   tide_rclc_parameter_server_restore(&server, &flash);           last, before the executor spins */
#ifndef TIDE_RCLC_PARAMETER_H
#define TIDE_RCLC_PARAMETER_H

#include <rclc_parameter/rclc_parameter.h>

#include "tide/rclc.h"

TIDE_EXTERN_C_BEGIN

/* Functions of the program that store values. load: returns false if no value is stored. value.type is the expected
 * type, and a stored value of another type counts as none. save: called after a change by client or program, in the
 * context of the change. A null value means that the parameter was deleted. save should record the change and return,
 * because the client waits for it. */
typedef struct tide_parameter_store {
  bool (*load)(void *context, const char *name, ParameterValue *value);
  void (*save)(void *context, const char *name, const ParameterValue *value);
  void *context;
} tide_parameter_store_t;

/* Sets every existing parameter to its stored value, as if the program set it; the parameter's range and the server's
 * callback may refuse the value. From then on changes are saved. Returns the first refusal; the other parameters are
 * restored in any case. */
rcl_ret_t tide_rclc_parameter_server_restore(rclc_parameter_server_t *parameter_server,
                                             const tide_parameter_store_t *store);

/* The level of the server's six services and of its events. Default 0. */
rcl_ret_t tide_rclc_parameter_server_set_priority(rclc_parameter_server_t *parameter_server, tide_priority_t priority);

typedef struct tide_parameter_counters {
  uint32_t requests;      /* requests to the six services */
  uint32_t requests_lost; /* requests that were malformed, or beyond the number that the services keep */
  uint32_t answers_lost;  /* answers lost for lack of a session, or too large for the pool (then sent without values) */
  uint32_t events_lost;
} tide_parameter_counters_t;
/* May be called from any thread at any time. */
rcl_ret_t tide_rclc_parameter_server_get_counters(const rclc_parameter_server_t *parameter_server,
                                                  tide_parameter_counters_t *counters);

TIDE_EXTERN_C_END
#endif
