/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers: their life, and what a program calls. */
#include <string.h>

#include "parameters.h"
#include "rclc/publisher.h"
#include "rclc/service.h"
#include "rmw_microros/time_sync.h"
#include "tide/rclc_service.h"
#define DEFAULT_PARAMETERS 4

/* Of a program whose pools have no parameters; an alias for the reason of compat/graph/graph.c. */
static const tide_parameter_pools_t no_parameters = {0};
extern const tide_parameter_pools_t tide_parameter_pools __attribute__((weak, alias("no_parameters")));

static const char *const service_names[TIDE_PARAMETER_SERVICE_COUNT] = {
    [TIDE_PARAMETER_GET] = "~/get_parameters",   [TIDE_PARAMETER_GET_TYPES] = "~/get_parameter_types",
    [TIDE_PARAMETER_SET] = "~/set_parameters",   [TIDE_PARAMETER_SET_ATOMICALLY] = "~/set_parameters_atomically",
    [TIDE_PARAMETER_LIST] = "~/list_parameters", [TIDE_PARAMETER_DESCRIBE] = "~/describe_parameters",
};

static rcl_service_t *service_of(rclc_parameter_server_t *program, size_t i) {
  rcl_service_t *const services[TIDE_PARAMETER_SERVICE_COUNT] = {
      [TIDE_PARAMETER_GET] = &program->get_service,
      [TIDE_PARAMETER_GET_TYPES] = &program->get_types_service,
      [TIDE_PARAMETER_SET] = &program->set_service,
      [TIDE_PARAMETER_SET_ATOMICALLY] = &program->set_atomically_service,
      [TIDE_PARAMETER_LIST] = &program->list_service,
      [TIDE_PARAMETER_DESCRIBE] = &program->describe_service,
  };
  return services[i];
}

bool tide_parameter_is_server(const rclc_parameter_server_t *program) {
  return program != NULL && program->impl != NULL && program->impl->program == program;
}

/* ---- places ---- */

/* Its support has not ended without it. */
static bool is_alive(const tide_parameter_server_t *server) {
  const tide_service_end_t *end = &server->get_service->end;
  return end->support != NULL && end->type == tide_parameter_service_types[TIDE_PARAMETER_GET].data;
}

static tide_parameter_server_t *free_server(void) {
  for (uint8_t i = 0; i < tide_parameter_pools.server_count; i++) {
    tide_parameter_server_t *server = &tide_parameter_pools.servers[i];
    if (server->program != NULL && !is_alive(server)) server->program = NULL;
  }
  for (uint8_t i = 0; i < tide_parameter_pools.server_count; i++) {
    if (tide_parameter_pools.servers[i].program == NULL) return &tide_parameter_pools.servers[i];
  }
  return NULL;
}

/* One that ended with an earlier support may have had the same service. */
static void forget_earlier(const tide_service_handle_t *get_service) {
  for (uint8_t i = 0; i < tide_parameter_pools.server_count; i++) {
    tide_parameter_server_t *server = &tide_parameter_pools.servers[i];
    if (server->program != NULL && server->get_service == get_service) server->program = NULL;
  }
}

/* Whether another server has the place. */
static bool is_taken(const tide_parameter_t *parameter) {
  for (uint8_t i = 0; i < tide_parameter_pools.server_count; i++) {
    const tide_parameter_server_t *server = &tide_parameter_pools.servers[i];
    if (server->program == NULL || parameter < server->parameters) continue;
    if (parameter < server->parameters + server->count) return true;
  }
  return false;
}

/* The first of as many free ones in a row, or null. */
static tide_parameter_t *free_parameters(size_t count) {
  size_t row = 0;
  for (uint8_t i = 0; i < tide_parameter_pools.parameter_count; i++) {
    row = is_taken(&tide_parameter_pools.parameters[i]) ? 0 : row + 1;
    if (row >= count) return &tide_parameter_pools.parameters[i + 1u - row];
  }
  return NULL;
}

static void set_up_parameters(tide_parameter_server_t *server, bool with_texts) {
  const tide_parameter_pools_t *pools = &tide_parameter_pools;
  for (uint8_t i = 0; i < server->count; i++) {
    tide_parameter_t *parameter = &server->parameters[i];
    const size_t place = (size_t)(parameter - pools->parameters);
    char *texts = with_texts && pools->text_bytes > 0 ? pools->texts + 2u * place * pools->text_bytes : NULL;
    *parameter = (tide_parameter_t){0};
    parameter->name = pools->names + place * pools->name_bytes;
    parameter->description = texts;
    parameter->constraints = texts == NULL ? NULL : texts + pools->text_bytes;
  }
}

static void set_up_answers(tide_parameter_server_t *server) {
  const tide_parameter_pools_t *pools = &tide_parameter_pools;
  const size_t number = (size_t)(server - pools->servers);
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT; i++) {
    server->answers[i].server = server;
    server->answers[i].items = pools->items + (number * TIDE_PARAMETER_SERVICE_COUNT + i) * pools->item_count;
  }
  server->answers[TIDE_PARAMETER_DESCRIBE].unknown_name =
      pools->names + (pools->parameter_count + number) * pools->name_bytes;
}

static tide_parameter_server_t *take_places(const rclc_parameter_options_t *options) {
  tide_parameter_server_t *server = free_server();
  tide_parameter_t *parameters = free_parameters(options->max_params);
  if (server == NULL || (parameters == NULL && options->max_params > 0)) return NULL;
  memset(server, 0, sizeof *server);
  server->parameters = parameters;
  server->count = (uint8_t)options->max_params;
  set_up_parameters(server, !options->low_mem_mode);
  set_up_answers(server);
  return server;
}

/* ---- life ---- */

static rcl_ret_t open_on_agent(rclc_parameter_server_t *program, rcl_node_t *node) {
  rcl_ret_t result = RCL_RET_OK;
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT && result == RCL_RET_OK; i++) {
    result = rclc_service_init(service_of(program, i), node, &tide_parameter_service_types[i], service_names[i],
                               &rmw_qos_profile_parameters);
  }
  if (result != RCL_RET_OK || !program->notify_changed_over_dds) return result;
  return rclc_publisher_init(&program->event_publisher, node, &tide_parameter_event_type, "/parameter_events",
                             &rmw_qos_profile_parameter_events);
}

static rcl_ret_t close_on_agent(rclc_parameter_server_t *program, rcl_node_t *node) {
  rcl_ret_t result = rcl_publisher_fini(&program->event_publisher, node);
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT; i++) {
    const rcl_ret_t closed = rcl_service_fini(service_of(program, i), node);
    if (result == RCL_RET_OK) result = closed;
  }
  return result;
}

rcl_ret_t rclc_parameter_server_init_with_option(rclc_parameter_server_t *parameter_server, rcl_node_t *node,
                                                 const rclc_parameter_options_t *options) {
  if (parameter_server == NULL || options == NULL || !tide_compat_is_node(node)) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  memset(parameter_server, 0, sizeof *parameter_server);
  tide_parameter_server_t *server = take_places(options);
  if (server == NULL) return tide_compat_result(TIDE_ERROR_CAPACITY_PARAMETERS);
  parameter_server->notify_changed_over_dds = options->notify_changed_over_dds;
  parameter_server->allow_undeclared_parameters = options->allow_undeclared_parameters;
  parameter_server->low_mem_mode = options->low_mem_mode;
  server->node_name = node->impl->full_name;
  const rcl_ret_t result = open_on_agent(parameter_server, node);
  if (result == RCL_RET_OK) {
    forget_earlier(parameter_server->get_service.impl);
    server->get_service = parameter_server->get_service.impl;
    server->program = parameter_server;
    parameter_server->impl = server;
  } else {
    const int status = tide_rclc_last_status();
    (void)close_on_agent(parameter_server, node);
    (void)tide_compat_result(status);
  }
  return result;
}

rcl_ret_t rclc_parameter_server_init_default(rclc_parameter_server_t *parameter_server, rcl_node_t *node) {
  const rclc_parameter_options_t options = {
      .notify_changed_over_dds = true, .max_params = DEFAULT_PARAMETERS, .allow_undeclared_parameters = false};
  return rclc_parameter_server_init_with_option(parameter_server, node, &options);
}

rcl_ret_t rclc_parameter_server_fini(rclc_parameter_server_t *parameter_server, rcl_node_t *node) {
  if (!tide_parameter_is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t result = close_on_agent(parameter_server, node);
  if (result != RCL_RET_OK) return result;
  parameter_server->impl->program = NULL;
  parameter_server->impl = NULL;
  return RCL_RET_OK;
}

/* ---- in an executor ---- */

/* The request was carried out when it was decoded. */
static void answer_request(const void *request, void *response, void *context) {
  (void)request;
  (void)response;
  (void)context;
}

rcl_ret_t rclc_executor_add_parameter_server_with_context(rclc_executor_t *executor,
                                                          rclc_parameter_server_t *parameter_server,
                                                          rclc_parameter_callback_t on_modification, void *context) {
  if (!tide_parameter_is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  parameter_server->on_modification = on_modification;
  parameter_server->context = context;
  rcl_ret_t result = RCL_RET_OK;
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT && result == RCL_RET_OK; i++) {
    tide_parameter_answer_t *answer = &parameter_server->impl->answers[i];
    result = rclc_executor_add_service_with_context(executor, service_of(parameter_server, i), answer, answer,
                                                    answer_request, parameter_server);
  }
  return result;
}

rcl_ret_t(rclc_executor_add_parameter_server)(rclc_executor_t *executor, rclc_parameter_server_t *parameter_server,
                                              rclc_parameter_callback_t on_modification) {
  return rclc_executor_add_parameter_server_with_context(executor, parameter_server, on_modification, NULL);
}

static bool call_first_edition(const Parameter *old_param, const Parameter *new_param, void *context) {
  (void)old_param;
  const rclc_parameter_server_t *program = context;
  Parameter copy;
  if (new_param == NULL) return false;
  copy = *new_param;
  program->impl->first_edition(&copy);
  return true;
}

rcl_ret_t tide_parameter_add_server_of_first_edition(rclc_executor_t *executor,
                                                     rclc_parameter_server_t *parameter_server,
                                                     tide_parameter_callback_of_first_edition_t on_modification) {
  if (!tide_parameter_is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  parameter_server->impl->first_edition = on_modification;
  return rclc_executor_add_parameter_server_with_context(
      executor, parameter_server, on_modification == NULL ? NULL : call_first_edition, parameter_server);
}

/* ---- what happens is told ---- */

static void store(const tide_parameter_server_t *server, const tide_parameter_t *parameter,
                  tide_parameter_event_t event) {
  if (!server->stores) return;
  Parameter message;
  const tide_parameter_change_t now = {parameter->name, parameter->type, tide_parameter_value(parameter)};
  tide_parameter_to_message(&message, &now);
  server->store.save(server->store.context, parameter->name, event == TIDE_PARAMETER_DELETED ? NULL : &message.value);
}

void tide_parameter_tell(tide_parameter_server_t *server, const tide_parameter_t *parameter,
                         tide_parameter_event_t event) {
  store(server, parameter, event);
  if (!server->program->notify_changed_over_dds) return;
  const tide_parameter_event_message_t message = {server, parameter, event, rmw_uros_epoch_nanos()};
  if (rcl_publish(&server->program->event_publisher, &message, NULL) != RCL_RET_OK) {
    (void)__atomic_add_fetch(&server->events_lost, 1u, __ATOMIC_RELAXED);
  }
}

rcl_ret_t tide_rclc_parameter_server_restore(rclc_parameter_server_t *parameter_server,
                                             const tide_parameter_store_t *store_) {
  if (!tide_parameter_is_server(parameter_server) || store_ == NULL || store_->load == NULL || store_->save == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_parameter_server_t *server = parameter_server->impl;
  rcl_ret_t result = RCL_RET_OK;
  for (uint8_t i = 0; i < server->count; i++) {
    tide_parameter_t *parameter = &server->parameters[i];
    if (!parameter->in_use) continue;
    Parameter message;
    tide_parameter_change_t change = {parameter->name, parameter->type, {0}};
    tide_parameter_to_message(&message, &change);
    if (!store_->load(store_->context, parameter->name, &message.value)) continue;
    if (message.value.type != parameter->type) continue;
    if (parameter->type == RCLC_PARAMETER_BOOL) change.value.boolean = message.value.bool_value;
    if (parameter->type == RCLC_PARAMETER_INT) change.value.integer = message.value.integer_value;
    if (parameter->type == RCLC_PARAMETER_DOUBLE) change.value.real = message.value.double_value;
    const bool refused = !tide_parameter_is_in_range(parameter, change.value) ||
                         !tide_parameter_is_done(tide_parameter_apply(server, &change, false));
    if (refused && result == RCL_RET_OK) result = RCLC_PARAMETER_MODIFICATION_REJECTED;
  }
  server->store = *store_;
  server->stores = true;
  return result;
}

rcl_ret_t tide_rclc_parameter_server_set_priority(rclc_parameter_server_t *parameter_server, tide_priority_t priority) {
  if (!tide_parameter_is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rcl_ret_t result = RCL_RET_OK;
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT && result == RCL_RET_OK; i++) {
    result = tide_rclc_service_set_priority(service_of(parameter_server, i), priority);
  }
  if (result != RCL_RET_OK || !parameter_server->notify_changed_over_dds) return result;
  return tide_rclc_publisher_set_priority(&parameter_server->event_publisher, priority);
}

rcl_ret_t tide_rclc_parameter_server_get_counters(const rclc_parameter_server_t *parameter_server,
                                                  tide_parameter_counters_t *counters) {
  if (!tide_parameter_is_server(parameter_server) || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  memset(counters, 0, sizeof *counters);
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT; i++) {
    tide_service_counters_t service;
    const rcl_ret_t result =
        tide_rclc_service_get_counters(service_of((rclc_parameter_server_t *)parameter_server, i), &service);
    if (result != RCL_RET_OK) return result;
    counters->requests += service.received;
    counters->requests_lost += service.dropped + service.decode_errors;
    counters->answers_lost += service.responses_lost;
  }
  counters->events_lost = __atomic_load_n(&parameter_server->impl->events_lost, __ATOMIC_RELAXED);
  return RCL_RET_OK;
}
