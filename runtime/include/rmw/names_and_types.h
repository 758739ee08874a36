/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMW__NAMES_AND_TYPES_H_
#define RMW__NAMES_AND_TYPES_H_

#include "rcutils/types/string_array.h"
#include "rmw/types.h"

typedef struct rmw_names_and_types_t {
  rcutils_string_array_t names;
  rcutils_string_array_t *types; /* types of each name */
} rmw_names_and_types_t;

typedef enum rmw_endpoint_type_e {
  RMW_ENDPOINT_INVALID = 0,
  RMW_ENDPOINT_PUBLISHER,
  RMW_ENDPOINT_SUBSCRIPTION
} rmw_endpoint_type_t;

/* An endpoint. It has no GID or QoS, because the agent does not report them. */
typedef struct rmw_topic_endpoint_info_s {
  const char *node_name;
  const char *node_namespace;
  const char *topic_type;
  rmw_endpoint_type_t endpoint_type;
} rmw_topic_endpoint_info_t;

typedef struct rmw_topic_endpoint_info_array_s {
  size_t size;
  rmw_topic_endpoint_info_t *info_array;
} rmw_topic_endpoint_info_array_t;

#endif
