/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's side of parameters: a place for each, and the table of them. No program needs it by name;
 * tide/pools.h makes the places. */
#ifndef TIDE_POOL_PARAMETERS_H
#define TIDE_POOL_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "tide/rclc_parameter.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef union tide_parameter_value {
  int64_t integer; /* first, as it is as wide as any: {0} need not clear more than the first */
  uint64_t unsigned_integer;
  double real;
  bool boolean;
} tide_parameter_value_t;

typedef struct tide_parameter {
  char *name;                      /* tide_parameter_pools.name_bytes */
  char *description, *constraints; /* tide_parameter_pools.text_bytes */
  tide_parameter_value_t value;
  tide_parameter_value_t from, to, step;
  uint8_t type; /* rclc_parameter_type_t */
  bool in_use, read_only, has_range;
} tide_parameter_t;

/* What a service answers: places of parameters, or outcomes of changes. */
typedef struct tide_parameter_answer {
  struct tide_parameter_server *server;
  uint8_t *items; /* tide_parameter_pools.item_count */
  uint8_t count;
  uint8_t outcome;    /* of a change of all or none */
  char *unknown_name; /* the first that there is no parameter of, or null; name_bytes */
} tide_parameter_answer_t;

typedef enum tide_parameter_service {
  TIDE_PARAMETER_GET,
  TIDE_PARAMETER_GET_TYPES,
  TIDE_PARAMETER_SET,
  TIDE_PARAMETER_SET_ATOMICALLY,
  TIDE_PARAMETER_LIST,
  TIDE_PARAMETER_DESCRIBE,
  TIDE_PARAMETER_SERVICE_COUNT
} tide_parameter_service_t;

typedef struct tide_parameter_server {
  rclc_parameter_server_t *program; /* null: free */
  const struct tide_service_handle *get_service;
  const char *node_name;        /* fully qualified */
  tide_parameter_t *parameters; /* its places */
  uint8_t count;                /* of them */
  tide_parameter_answer_t answers[TIDE_PARAMETER_SERVICE_COUNT];
  tide_parameter_store_t store;
  bool stores; /* changes */
  uint32_t events_lost;
  tide_parameter_callback_of_first_edition_t first_edition;
} tide_parameter_server_t;

typedef struct tide_parameter_pools {
  tide_parameter_server_t *servers;
  tide_parameter_t *parameters;
  char *names;    /* name_bytes for each parameter, then for each server */
  char *texts;    /* two of text_bytes for each parameter */
  uint8_t *items; /* item_count for each service of each server */
  uint8_t server_count, parameter_count, item_count;
  uint16_t name_bytes, text_bytes;
} tide_parameter_pools_t;

extern const tide_parameter_pools_t tide_parameter_pools;

#ifdef __cplusplus
}
#endif
#endif
