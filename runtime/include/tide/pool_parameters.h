/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of parameters: a structure for each parameter, and the table of the pools. Programs do not use it
 * directly; tide/pools.h defines the storage. */
#ifndef TIDE_POOL_PARAMETERS_H
#define TIDE_POOL_PARAMETERS_H

#include <stdbool.h>
#include <stdint.h>

#include "tide/rclc_parameter.h"

TIDE_EXTERN_C_BEGIN

typedef union tide_parameter_value {
  int64_t integer; /* the first member, and no other is wider, so {0} clears the union */
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

/* A service's answer: indices of parameters, or results of changes. */
typedef struct tide_parameter_answer {
  struct tide_parameter_server *server;
  uint8_t *items; /* tide_parameter_pools.item_count */
  uint8_t count;
  uint8_t outcome;    /* result of an all-or-nothing change */
  char *unknown_name; /* the first name without a parameter, or null; name_bytes */
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
  tide_parameter_t *parameters; /* its parameters */
  uint8_t count;                /* number of parameters */
  tide_parameter_answer_t answers[TIDE_PARAMETER_SERVICE_COUNT];
  tide_parameter_store_t store;
  bool stores; /* changes are saved in the program's store */
  uint32_t events_lost;
  tide_parameter_callback_of_first_edition_t first_edition;
} tide_parameter_server_t;

typedef struct tide_parameter_pools {
  tide_parameter_server_t *servers;
  tide_parameter_t *parameters;
  char *names;    /* names of name_bytes, one for each parameter, then for each server */
  char *texts;    /* two texts of text_bytes for each parameter */
  uint8_t *items; /* one array of item_count elements for each service of each server */
  uint8_t server_count, parameter_count, item_count;
  uint16_t name_bytes, text_bytes;
} tide_parameter_pools_t;

extern const tide_parameter_pools_t tide_parameter_pools;

TIDE_EXTERN_C_END
#endif
