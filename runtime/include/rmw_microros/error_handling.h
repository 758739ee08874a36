/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW_MICROROS__ERROR_HANDLING_H_
#define RMW_MICROROS__ERROR_HANDLING_H_

#include <stddef.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

#define RMW_UROS_ERROR_HANDLING

typedef enum {
  RMW_UROS_ERROR_ON_UNKNOWN = 0,
  RMW_UROS_ERROR_ON_NODE,
  RMW_UROS_ERROR_ON_SERVICE,
  RMW_UROS_ERROR_ON_CLIENT,
  RMW_UROS_ERROR_ON_SUBSCRIPTION,
  RMW_UROS_ERROR_ON_PUBLISHER,
  RMW_UROS_ERROR_ON_GRAPH,
  RMW_UROS_ERROR_ON_GUARD_CONDITION,
  RMW_UROS_ERROR_ON_TOPIC
} rmw_uros_error_entity_type_t;

typedef enum {
  RMW_UROS_ERROR_ENTITY_CREATION = 0,
  RMW_UROS_ERROR_ENTITY_DESTRUCTION, /* never reported */
  RMW_UROS_ERROR_CHECK,
  RMW_UROS_ERROR_NOT_IMPLEMENTED,
  RMW_UROS_ERROR_MIDDLEWARE_ALLOCATION
} rmw_uros_error_source_t;

/* Names are null; the description names the error. */
typedef struct {
  const char *node;
  const char *node_namespace;
  const char *topic_name;
  const char *description; /* as rcl_get_error_string */
} rmw_uros_error_context_t;

typedef void (*rmw_uros_error_handling)(const rmw_uros_error_entity_type_t entity, const rmw_uros_error_source_t source,
                                        const rmw_uros_error_context_t context, const char *file, const int line);

/* Sets a function that is called with each error, in the calling thread, before the failing call returns. It is called
 * even if the program ignores the return code. Null: none. The function must not block, and may make every call that is
 * permitted to the caller of the failing call. file and line are empty ("", 0); the description names the limit that
 * was reached. */
void rmw_uros_set_error_handling_callback(rmw_uros_error_handling error_cb);

TIDE_EXTERN_C_END
#endif
