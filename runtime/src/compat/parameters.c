/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter servers: the table of parameters and its changes, encoding and decoding of rcl_interfaces, set-up of
 * servers, and the program's calls. */
#include <string.h>

#include "internal.h"
#include "rclc/publisher.h"
#include "rclc/service.h"
#include "rmw_microros/time_sync.h"
#include "tide/message_memory.h"
#include "tide/pool_parameters.h"
#include "tide/rclc_service.h"

/* Outcome of a change; the answer to the client contains its text. */
typedef enum outcome {
  CHANGED,
  ADDED,
  READ_ONLY,
  OTHER_TYPE,
  UNSUPPORTED_TYPE,
  OUT_OF_RANGE,
  REJECTED,
  NOT_FOUND,
  NO_PLACE,
  NAME_TOO_LONG,
  LIST_TOO_LONG,
  TOO_MANY, /* parameters in one request */
  BUSY      /* the program's callback is running */
} outcome_t;

/* A change requested by a client or the program. The type NOT_SET means deletion. */
typedef struct change {
  const char *name; /* ended by NUL */
  uint8_t type;     /* rcl_interfaces/ParameterType, including unsupported types */
  tide_parameter_value_t value;
} change_t;

#define NO_ITEM 255u

typedef enum event { EVENT_NEW, EVENT_VALUE, EVENT_DELETED } event_t;
typedef struct event_message {
  const tide_parameter_server_t *server;
  const tide_parameter_t *parameter;
  event_t event;
  int64_t stamp_ns;
} event_message_t;

/* ---- parts of messages ---- */

/* Reads the value in a critical section, as another thread may be writing its eight bytes. */
static tide_parameter_value_t value_of(const tide_parameter_t *parameter) {
  const uintptr_t critical = tide_compat_enter();
  const tide_parameter_value_t value = parameter->value;
  tide_compat_leave(critical);
  return value;
}

static void set_value(tide_parameter_t *parameter, tide_parameter_value_t value) {
  const uintptr_t critical = tide_compat_enter();
  parameter->value = value;
  tide_compat_leave(critical);
}

static void put_text(tide_cdr_t *cdr, const char *text) { tide_cdr_put_string(cdr, text, strlen(text)); }

static void put_value(tide_cdr_t *cdr, uint8_t type, tide_parameter_value_t value) {
  tide_cdr_put_u8(cdr, type);
  tide_cdr_put_bool(cdr, type == RCLC_PARAMETER_BOOL && value.boolean);
  tide_cdr_put_u64(cdr, type == RCLC_PARAMETER_INT ? (uint64_t)value.integer : 0);
  tide_cdr_put_f64(cdr, type == RCLC_PARAMETER_DOUBLE ? value.real : 0.0);
  put_text(cdr, "");
  for (int array = 0; array < 5; array++) tide_cdr_put_u32(cdr, 0);
}

static const char *get_name(tide_cdr_t *cdr) {
  size_t length;
  return tide_cdr_get_string(cdr, &length);
}

static void skip_array(tide_cdr_t *cdr, size_t element_bytes) {
  const uint32_t count = tide_cdr_get_count(cdr, element_bytes);
  if (count == 0) return;
  tide_cdr_align(cdr, element_bytes);
  (void)tide_cdr_view(cdr, count * element_bytes);
}

static void skip_text(tide_cdr_t *cdr) {
  size_t length;
  (void)tide_cdr_get_string(cdr, &length);
}

static void skip_other_values(tide_cdr_t *cdr) {
  skip_text(cdr);
  skip_array(cdr, 1);
  skip_array(cdr, 1);
  skip_array(cdr, 8);
  skip_array(cdr, 8);
  const uint32_t texts = tide_cdr_get_count(cdr, sizeof(uint32_t));
  for (uint32_t i = 0; i < texts && cdr->status == TIDE_OK; i++) skip_text(cdr);
}

static bool get_change(tide_cdr_t *cdr, change_t *change) {
  change->name = get_name(cdr);
  change->type = tide_cdr_get_u8(cdr);
  const bool boolean = tide_cdr_get_bool(cdr);
  const int64_t integer = (int64_t)tide_cdr_get_u64(cdr);
  const double real = tide_cdr_get_f64(cdr);
  skip_other_values(cdr);
  memset(&change->value, 0, sizeof change->value);
  if (change->type == RCLC_PARAMETER_BOOL) change->value.boolean = boolean;
  if (change->type == RCLC_PARAMETER_INT) change->value.integer = integer;
  if (change->type == RCLC_PARAMETER_DOUBLE) change->value.real = real;
  return cdr->status == TIDE_OK;
}

/* ---- rcl_interfaces/msg/ParameterEvent ---- */

static void put_parameters_of(tide_cdr_t *cdr, const event_message_t *message, event_t event) {
  const bool present = message->event == event;
  tide_cdr_put_u32(cdr, present);
  if (!present) return;
  put_text(cdr, message->parameter->name);
  put_value(cdr, message->parameter->type, value_of(message->parameter));
}

static void encode_event(tide_cdr_t *cdr, const void *untyped) {
  const event_message_t *message = untyped;
  const int64_t second_ns = 1000000000;
  tide_cdr_put_u32(cdr, (uint32_t)(message->stamp_ns / second_ns));
  tide_cdr_put_u32(cdr, (uint32_t)(message->stamp_ns % second_ns));
  put_text(cdr, message->server->node_name);
  put_parameters_of(cdr, message, EVENT_NEW);
  put_parameters_of(cdr, message, EVENT_VALUE);
  put_parameters_of(cdr, message, EVENT_DELETED);
}

static const tide_message_type_t event_type = TIDE_COMPAT_MESSAGE_TYPE(
    "rcl_interfaces", "ParameterEvent", sizeof(event_message_t), encode_event, tide_compat_decode_nothing);
static const rosidl_message_type_support_t event_support = TIDE_COMPAT_MESSAGE_SUPPORT(event_type);

/* ---- parameters, and how they change ---- */

/* True if the server is initialised and its support is alive. */
static bool is_server(const rclc_parameter_server_t *program) {
  return program != NULL && program->impl != NULL && program->impl->program == program;
}

static bool is_done(uint8_t outcome) { return outcome <= ADDED; }

static const char *const outcome_texts[] = {
    [CHANGED] = "",
    [ADDED] = "New parameter added",
    [READ_ONLY] = "Read only parameter",
    [OTHER_TYPE] = "Type mismatch",
    [UNSUPPORTED_TYPE] = "Type not supported",
    [OUT_OF_RANGE] = "Out of range",
    [REJECTED] = "Rejected by server",
    [NOT_FOUND] = "Parameter not found",
    [NO_PLACE] = "Parameter server is full",
    [NAME_TOO_LONG] = "Name too long",
    [LIST_TOO_LONG] = "The list of parameters would be too long",
    [TOO_MANY] = "Too many parameters at once",
    [BUSY] = "Parameters are being changed",
};

static tide_parameter_t *find(const tide_parameter_server_t *server, const char *name) {
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

static bool is_integer_in_range(const tide_parameter_t *parameter, int64_t value) {
  const int64_t from = parameter->from.integer, to = parameter->to.integer;
  if (value < from || value > to) return false;
  const uint64_t distance = (uint64_t)value - (uint64_t)from, step = parameter->step.unsigned_integer;
  return step == 0 || value == to || distance % step == 0;
}

/* Steps are compared with the precision that a double of this magnitude has. */
static bool is_real_in_range(const tide_parameter_t *parameter, double value) {
  const double from = parameter->from.real, to = parameter->to.real, step = parameter->step.real;
  if (!(value >= from && value <= to)) return false;
  const double steps = step == 0.0 ? 0.0 : (value - from) / step;
  if (step == 0.0 || value == to || steps > 9e15) return true;
  const double rest = steps - (double)(int64_t)(steps + 0.5);
  return rest < 1e-6 && rest > -1e-6;
}

static bool is_in_range(const tide_parameter_t *parameter, tide_parameter_value_t value) {
  if (!parameter->has_range) return true;
  return parameter->type == RCLC_PARAMETER_INT ? is_integer_in_range(parameter, value.integer)
                                               : is_real_in_range(parameter, value.real);
}

static uint8_t check_new(const tide_parameter_server_t *server, const change_t *change, bool by_client) {
  const bool wanted = !by_client || server->program->allow_undeclared_parameters;
  if (!wanted || (by_client && change->type == RCLC_PARAMETER_NOT_SET)) return NOT_FOUND;
  if (change->type > RCLC_PARAMETER_DOUBLE) return UNSUPPORTED_TYPE;
  if (strlen(change->name) >= tide_parameter_pools.name_bytes) return NAME_TOO_LONG;
  return free_place(server) == NULL ? NO_PLACE : ADDED;
}

static uint8_t check(const tide_parameter_server_t *server, const change_t *change, bool by_client) {
  const tide_parameter_t *parameter = find(server, change->name);
  if (parameter == NULL) return check_new(server, change, by_client);
  if (by_client && parameter->read_only) return READ_ONLY;
  if (change->type == RCLC_PARAMETER_NOT_SET) return CHANGED;
  if (change->type > RCLC_PARAMETER_DOUBLE) return UNSUPPORTED_TYPE;
  if (change->type != parameter->type) return OTHER_TYPE;
  return by_client && !is_in_range(parameter, change->value) ? OUT_OF_RANGE : CHANGED;
}

/* The change as a message; the other members of its value are empty. */
static void to_message(Parameter *message, const change_t *change) {
  memset(message, 0, sizeof *message);
  message->name.size = strlen(change->name);
  message->name.capacity = message->name.size + 1;
  message->name.data = (char *)change->name; /* receivers of the message must not write to its memory */
  message->value.type = change->type;
  if (change->type == RCLC_PARAMETER_BOOL) message->value.bool_value = change->value.boolean;
  if (change->type == RCLC_PARAMETER_INT) message->value.integer_value = change->value.integer;
  if (change->type == RCLC_PARAMETER_DOUBLE) message->value.double_value = change->value.real;
}

static void store(const tide_parameter_server_t *server, const tide_parameter_t *parameter, event_t event) {
  if (!server->stores) return;
  Parameter message;
  const change_t now = {parameter->name, parameter->type, value_of(parameter)};
  to_message(&message, &now);
  server->store.save(server->store.context, parameter->name, event == EVENT_DELETED ? NULL : &message.value);
}

/* Stores the change, then publishes the event if the server is configured to do so. */
static void tell(tide_parameter_server_t *server, const tide_parameter_t *parameter, event_t event) {
  store(server, parameter, event);
  if (!server->program->notify_changed_over_dds) return;
  const event_message_t message = {server, parameter, event, rmw_uros_epoch_nanos()};
  if (rcl_publish(&server->program->event_publisher, &message, NULL) != RCL_RET_OK) {
    (void)__atomic_add_fetch(&server->events_lost, 1u, __ATOMIC_RELAXED);
  }
}

/* Calls the program's callback, which accepts or refuses the change. With `revoked`, the call announces the opposite
 * change, because the callback had accepted this one and it is not made. */
static bool ask(tide_parameter_server_t *server, const change_t *change, bool revoked) {
  rclc_parameter_server_t *program = server->program;
  if (program->on_modification == NULL) return true;
  const tide_parameter_t *parameter = find(server, change->name);
  Parameter before, after;
  if (parameter != NULL) {
    const change_t now = {parameter->name, parameter->type, value_of(parameter)};
    to_message(&before, &now);
  }
  to_message(&after, change);
  const Parameter *from = parameter == NULL ? NULL : &before;
  const Parameter *to = change->type == RCLC_PARAMETER_NOT_SET ? NULL : &after;
  program->on_callback = true;
  const bool accepted = program->on_modification(revoked ? to : from, revoked ? from : to, program->context);
  program->on_callback = false;
  return accepted;
}

static bool fits_list(const tide_parameter_server_t *server);

static uint8_t add(tide_parameter_server_t *server, const change_t *change) {
  tide_parameter_t *parameter = free_place(server);
  if (parameter == NULL) return NO_PLACE;
  memcpy(parameter->name, change->name, strlen(change->name) + 1);
  if (parameter->description != NULL) parameter->description[0] = parameter->constraints[0] = '\0';
  parameter->value = change->value;
  parameter->type = change->type;
  parameter->read_only = parameter->has_range = false;
  parameter->in_use = true;
  if (!fits_list(server)) {
    parameter->in_use = false;
    return LIST_TOO_LONG;
  }
  tell(server, parameter, EVENT_NEW);
  return ADDED;
}

static void remove_parameter(tide_parameter_server_t *server, tide_parameter_t *parameter) {
  tell(server, parameter, EVENT_DELETED);
  parameter->in_use = false;
}

static uint8_t make(tide_parameter_server_t *server, const change_t *change) {
  tide_parameter_t *parameter = find(server, change->name);
  if (parameter == NULL) return add(server, change);
  if (change->type == RCLC_PARAMETER_NOT_SET) {
    remove_parameter(server, parameter);
  } else {
    set_value(parameter, change->value);
    tell(server, parameter, EVENT_VALUE);
  }
  return CHANGED;
}

static uint8_t apply(tide_parameter_server_t *server, const change_t *change, bool by_client) {
  if (server->program->on_callback) return BUSY;
  const uint8_t outcome = check(server, change, by_client);
  if (!is_done(outcome)) return outcome;
  if (!ask(server, change, false)) return REJECTED;
  return make(server, change);
}

/* Requests and answers of the six services. A request is executed while it is decoded, because the names in it are
 * available only then. A malformed request changes nothing. The answer is composed from the recorded outcome. */

/* ---- requests ---- */

static uint8_t item_of(const tide_parameter_server_t *server, const tide_parameter_t *parameter) {
  return parameter == NULL ? NO_ITEM : (uint8_t)(parameter - server->parameters);
}

static void note_unknown(tide_parameter_answer_t *answer, const char *name) {
  char *place = answer->unknown_name;
  if (place == NULL || place[0] != '\0' || strlen(name) >= tide_parameter_pools.name_bytes) return;
  memcpy(place, name, strlen(name) + 1);
}

/* If the request has more names than there are entries, none is answered. */
static void decode_names(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  answer->count = 0;
  if (answer->unknown_name != NULL) answer->unknown_name[0] = '\0';
  for (uint32_t i = 0; i < count; i++) {
    const char *name = get_name(cdr);
    if (name == NULL) return;
    if (count > tide_parameter_pools.item_count) continue;
    const tide_parameter_t *parameter = find(answer->server, name);
    if (parameter == NULL) note_unknown(answer, name);
    answer->items[answer->count++] = item_of(answer->server, parameter);
  }
}

static bool is_well_formed(tide_cdr_t cdr, uint32_t count) {
  change_t change;
  for (uint32_t i = 0; i < count; i++) {
    if (!get_change(&cdr, &change)) return false;
  }
  return true;
}

/* Returns the number of changes, which may be 0. */
static uint32_t begin_changes(tide_cdr_t *cdr, tide_parameter_answer_t *answer) {
  answer->count = 0;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  if (cdr->status == TIDE_OK && !is_well_formed(*cdr, count)) cdr->status = TIDE_ERROR_MALFORMED;
  return cdr->status == TIDE_OK ? count : 0;
}

#define TOO_MANY_BYTES 40u /* at most, of one such result */

/* If the request has more changes than there are entries, none is made, and the answer has as many refusals as fit. */
static void decode_set(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const uint32_t count = begin_changes(cdr, answer), most = tide_parameter_pools.item_count;
  const uint32_t fitting = tide_compat_response_capacity() / TOO_MANY_BYTES;
  if (count > most) {
    while (answer->count < most && answer->count < fitting) answer->items[answer->count++] = TOO_MANY;
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    change_t change;
    (void)get_change(cdr, &change);
    answer->items[answer->count++] = apply(answer->server, &change, true);
  }
}

/* Checks a client's `count` changes and returns the first refusal, or CHANGED. */
static uint8_t check_all(tide_cdr_t cdr, const tide_parameter_server_t *server, uint32_t count) {
  uint8_t outcome = CHANGED;
  for (uint32_t i = 0; i < count && is_done(outcome); i++) {
    change_t change;
    (void)get_change(&cdr, &change);
    outcome = check(server, &change, true);
  }
  return outcome;
}

/* Number of changes, from the first one on, that the program accepts until it refuses one. */
static uint32_t ask_all(tide_cdr_t cdr, tide_parameter_server_t *server, uint32_t count, bool revoked) {
  for (uint32_t i = 0; i < count; i++) {
    change_t change;
    (void)get_change(&cdr, &change);
    if (!ask(server, &change, revoked) && !revoked) return i;
  }
  return count;
}

static uint8_t set_all(tide_cdr_t *cdr, tide_parameter_server_t *server, uint32_t count) {
  if (server->program->on_callback) return BUSY;
  uint8_t outcome = check_all(*cdr, server, count);
  if (!is_done(outcome)) return outcome;
  const uint32_t accepted = ask_all(*cdr, server, count, false);
  if (accepted < count) {
    (void)ask_all(*cdr, server, accepted, true);
    return REJECTED;
  }
  outcome = CHANGED;
  for (uint32_t i = 0; i < count; i++) {
    change_t change;
    (void)get_change(cdr, &change);
    const uint8_t made = make(server, &change);
    if (!is_done(made)) outcome = made; /* there are fewer free entries than new parameters */
  }
  return outcome;
}

static void decode_set_atomically(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const uint32_t count = begin_changes(cdr, answer);
  if (cdr->status == TIDE_OK) answer->outcome = set_all(cdr, answer->server, count);
}

/* True if the name is at most `depth` levels below the prefix; a depth of 0 means any number. */
static bool is_below(const char *name, const char *prefix, uint64_t depth) {
  const size_t length = strlen(prefix);
  if (strncmp(name, prefix, length) != 0) return false;
  if (length > 0 && name[length] == '\0') return true;
  if (length > 0 && name[length] != '.') return false;
  uint64_t levels = 1;
  for (const char *rest = name + length + (length > 0); *rest != '\0'; rest++) levels += *rest == '.';
  return depth == 0 || levels <= depth;
}

static bool is_listed(tide_cdr_t prefixes, uint32_t count, const char *name, uint64_t depth) {
  if (count == 0) return is_below(name, "", depth);
  for (uint32_t i = 0; i < count; i++) {
    if (is_below(name, get_name(&prefixes), depth)) return true;
  }
  return false;
}

static void decode_list(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const tide_parameter_server_t *server = answer->server;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  const tide_cdr_t prefixes = *cdr;
  for (uint32_t i = 0; i < count; i++) {
    if (get_name(cdr) == NULL) return;
  }
  const uint64_t depth = tide_cdr_get_u64(cdr);
  if (cdr->status != TIDE_OK) return;
  answer->count = 0;
  for (uint8_t i = 0; i < server->count; i++) {
    const tide_parameter_t *parameter = &server->parameters[i];
    if (parameter->in_use && is_listed(prefixes, count, parameter->name, depth)) answer->items[answer->count++] = i;
  }
}

/* ---- answers ---- */

/* The answer's parameter number i; null if the parameter never existed or was deleted meanwhile. An answer without
 * items is about all parameters. */
static const tide_parameter_t *parameter_of(const tide_parameter_answer_t *answer, uint8_t i) {
  const uint8_t item = answer->items == NULL ? i : answer->items[i];
  if (item == NO_ITEM || !answer->server->parameters[item].in_use) return NULL;
  return &answer->server->parameters[item];
}

static void encode_values(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_answer_t *answer = untyped;
  const tide_parameter_value_t none = {0};
  tide_cdr_put_u32(cdr, answer->count);
  for (uint8_t i = 0; i < answer->count; i++) {
    const tide_parameter_t *parameter = parameter_of(answer, i);
    put_value(cdr, parameter == NULL ? RCLC_PARAMETER_NOT_SET : parameter->type,
              parameter == NULL ? none : value_of(parameter));
  }
}

static void encode_types(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_answer_t *answer = untyped;
  tide_cdr_put_u32(cdr, answer->count);
  for (uint8_t i = 0; i < answer->count; i++) {
    const tide_parameter_t *parameter = parameter_of(answer, i);
    tide_cdr_put_u8(cdr, parameter == NULL ? RCLC_PARAMETER_NOT_SET : parameter->type);
  }
}

static void put_result(tide_cdr_t *cdr, uint8_t outcome) {
  tide_cdr_put_bool(cdr, is_done(outcome));
  put_text(cdr, outcome_texts[outcome]);
}

static void encode_results(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_answer_t *answer = untyped;
  tide_cdr_put_u32(cdr, answer->count);
  for (uint8_t i = 0; i < answer->count; i++) put_result(cdr, answer->items[i]);
}

static void encode_result(tide_cdr_t *cdr, const void *untyped) {
  put_result(cdr, ((const tide_parameter_answer_t *)untyped)->outcome);
}

/* Length of the name without its last level; 0 for a name of one level. */
static size_t prefix_length(const char *name) {
  const char *point = strrchr(name, '.');
  return point == NULL ? 0 : (size_t)(point - name);
}

/* Lists each prefix once, at the first parameter with it. */
static bool has_new_prefix(const tide_parameter_answer_t *answer, uint8_t i) {
  const char *name = parameter_of(answer, i)->name;
  const size_t length = prefix_length(name);
  for (uint8_t j = 0; j < i; j++) {
    const tide_parameter_t *other = parameter_of(answer, j);
    if (other != NULL && prefix_length(other->name) == length && memcmp(other->name, name, length) == 0) return false;
  }
  return length > 0;
}

static void put_names(tide_cdr_t *cdr, const tide_parameter_answer_t *answer, bool prefixes, bool counting,
                      uint32_t *count) {
  for (uint8_t i = 0; i < answer->count; i++) {
    const tide_parameter_t *parameter = parameter_of(answer, i);
    if (parameter == NULL || (prefixes && !has_new_prefix(answer, i))) continue;
    ++*count;
    const size_t length = prefixes ? prefix_length(parameter->name) : strlen(parameter->name);
    if (!counting) tide_cdr_put_string(cdr, parameter->name, length);
  }
}

static void encode_list(tide_cdr_t *cdr, const void *untyped) {
  for (int prefixes = 0; prefixes < 2; prefixes++) {
    uint32_t count = 0;
    put_names(cdr, untyped, prefixes != 0, true, &count);
    tide_cdr_put_u32(cdr, count);
    put_names(cdr, untyped, prefixes != 0, false, &count);
  }
}

static void put_ranges(tide_cdr_t *cdr, const tide_parameter_t *parameter) {
  const bool has_range = parameter != NULL && parameter->has_range;
  const bool is_real = has_range && parameter->type == RCLC_PARAMETER_DOUBLE;
  for (int real = 1; real >= 0; real--) {
    const bool present = has_range && is_real == (real != 0);
    tide_cdr_put_u32(cdr, present);
    if (!present) continue;
    tide_cdr_put_u64(cdr, parameter->from.unsigned_integer); /* a double is copied by its bits */
    tide_cdr_put_u64(cdr, parameter->to.unsigned_integer);
    tide_cdr_put_u64(cdr, parameter->step.unsigned_integer);
  }
}

static void put_descriptor(tide_cdr_t *cdr, const tide_parameter_t *parameter, const char *unknown_name) {
  const bool has_texts = parameter != NULL && parameter->description != NULL;
  put_text(cdr, parameter == NULL ? unknown_name : parameter->name);
  tide_cdr_put_u8(cdr, parameter == NULL ? RCLC_PARAMETER_NOT_SET : parameter->type);
  put_text(cdr, has_texts ? parameter->description : "");
  put_text(cdr, has_texts ? parameter->constraints : "");
  tide_cdr_put_bool(cdr, parameter != NULL && parameter->read_only);
  tide_cdr_put_bool(cdr, false); /* dynamic_typing */
  put_ranges(cdr, parameter);
}

static void encode_descriptors(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_answer_t *answer = untyped;
  const char *unknown_name = answer->unknown_name;
  tide_cdr_put_u32(cdr, answer->count);
  for (uint8_t i = 0; i < answer->count; i++) {
    const tide_parameter_t *parameter = parameter_of(answer, i);
    put_descriptor(cdr, parameter, unknown_name);
    if (parameter == NULL) unknown_name = "";
  }
}

#define SERVICE(NAME, DECODE, ENCODE) \
  TIDE_COMPAT_SERVICE_TYPE("rcl_interfaces", NAME, sizeof(tide_parameter_answer_t), DECODE, ENCODE)
SERVICE(GetParameters, decode_names, encode_values)
SERVICE(GetParameterTypes, decode_names, encode_types)
SERVICE(SetParameters, decode_set, encode_results)
SERVICE(SetParametersAtomically, decode_set_atomically, encode_result)
SERVICE(ListParameters, decode_list, encode_list)
SERVICE(DescribeParameters, decode_names, encode_descriptors)

static const rosidl_service_type_support_t service_types[TIDE_PARAMETER_SERVICE_COUNT] = {
    [TIDE_PARAMETER_GET] = TIDE_COMPAT_SERVICE_SUPPORT(GetParameters),
    [TIDE_PARAMETER_GET_TYPES] = TIDE_COMPAT_SERVICE_SUPPORT(GetParameterTypes),
    [TIDE_PARAMETER_SET] = TIDE_COMPAT_SERVICE_SUPPORT(SetParameters),
    [TIDE_PARAMETER_SET_ATOMICALLY] = TIDE_COMPAT_SERVICE_SUPPORT(SetParametersAtomically),
    [TIDE_PARAMETER_LIST] = TIDE_COMPAT_SERVICE_SUPPORT(ListParameters),
    [TIDE_PARAMETER_DESCRIBE] = TIDE_COMPAT_SERVICE_SUPPORT(DescribeParameters),
};

/* True if the list of all parameters fits a node; a ListParameters response could not report that it does not. */
static bool fits_list(const tide_parameter_server_t *server) {
  const tide_parameter_answer_t all = {.server = (tide_parameter_server_t *)server, .count = server->count};
  return tide_message_size(ListParameters.response, &all) <= tide_compat_response_capacity();
}

/* Answers with no values, results or descriptors, as nodes of ROS 2 do for unknown names. */
static void refuse(void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  answer->count = 0;
}

/* ---- servers ---- */

#define DEFAULT_PARAMETERS 4

/* Used by programs whose pools have no parameters; an alias for the reason given in compat/graph.c. */
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

/* ---- entries of the pools ---- */

/* True if the server's support has not ended. */
static bool is_alive(const tide_parameter_server_t *server) {
  const tide_service_end_t *end = &server->get_service->end;
  return end->support != NULL && end->type == service_types[TIDE_PARAMETER_GET].data;
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

/* An earlier server, which ended with its support, may still refer to the same service. */
static void forget_earlier(const tide_service_handle_t *get_service) {
  for (uint8_t i = 0; i < tide_parameter_pools.server_count; i++) {
    tide_parameter_server_t *server = &tide_parameter_pools.servers[i];
    if (server->program != NULL && server->get_service == get_service) server->program = NULL;
  }
}

/* True if a server uses the entry. */
static bool is_taken(const tide_parameter_t *parameter) {
  for (uint8_t i = 0; i < tide_parameter_pools.server_count; i++) {
    const tide_parameter_server_t *server = &tide_parameter_pools.servers[i];
    if (server->program == NULL || parameter < server->parameters) continue;
    if (parameter < server->parameters + server->count) return true;
  }
  return false;
}

/* The first of `count` adjacent free entries, or null. */
static tide_parameter_t *free_parameters(size_t count) {
  size_t row = 0;
  for (uint8_t i = 0; i < tide_parameter_pools.parameter_count; i++) {
    row = is_taken(&tide_parameter_pools.parameters[i]) ? 0 : row + 1;
    if (row >= count) return &tide_parameter_pools.parameters[i + 1u - row];
  }
  return NULL;
}

static tide_parameter_server_t *take_places(const rclc_parameter_options_t *options) {
  tide_parameter_server_t *server = free_server();
  tide_parameter_t *parameters = free_parameters(options->max_params);
  if (server == NULL || (parameters == NULL && options->max_params > 0)) return NULL;
  memset(server, 0, sizeof *server);
  server->parameters = parameters;
  server->count = (uint8_t)options->max_params;
  const tide_parameter_pools_t *pools = &tide_parameter_pools;
  for (uint8_t i = 0; i < server->count; i++) {
    const size_t place = (size_t)(&parameters[i] - pools->parameters);
    const bool has_texts = !options->low_mem_mode && pools->text_bytes > 0;
    parameters[i] = (tide_parameter_t){0};
    parameters[i].name = pools->names + place * pools->name_bytes;
    parameters[i].description = has_texts ? pools->texts + 2u * place * pools->text_bytes : NULL;
    parameters[i].constraints = has_texts ? parameters[i].description + pools->text_bytes : NULL;
  }
  const size_t number = (size_t)(server - pools->servers);
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT; i++) {
    server->answers[i].server = server;
    server->answers[i].items = pools->items + (number * TIDE_PARAMETER_SERVICE_COUNT + i) * pools->item_count;
  }
  server->answers[TIDE_PARAMETER_DESCRIBE].unknown_name =
      pools->names + (pools->parameter_count + number) * pools->name_bytes;
  return server;
}

/* ---- life ---- */

static rcl_ret_t open_on_agent(rclc_parameter_server_t *program, rcl_node_t *node) {
  rcl_ret_t result = RCL_RET_OK;
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT && result == RCL_RET_OK; i++) {
    result = rclc_service_init(service_of(program, i), node, &service_types[i], service_names[i],
                               &rmw_qos_profile_parameters);
    if (result == RCL_RET_OK) service_of(program, i)->impl->refuse = refuse;
  }
  if (result != RCL_RET_OK || !program->notify_changed_over_dds) return result;
  return rclc_publisher_init(&program->event_publisher, node, &event_support, "/parameter_events",
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
  if (!is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const rcl_ret_t result = close_on_agent(parameter_server, node);
  if (result != RCL_RET_OK) return result;
  parameter_server->impl->program = NULL;
  parameter_server->impl = NULL;
  return RCL_RET_OK;
}

/* ---- in an executor ---- */

/* Nothing is left to do: the request was executed when it was decoded. */
static void answer_request(const void *request, void *response, void *context) {
  (void)request;
  (void)response;
  (void)context;
}

rcl_ret_t rclc_executor_add_parameter_server_with_context(rclc_executor_t *executor,
                                                          rclc_parameter_server_t *parameter_server,
                                                          rclc_parameter_callback_t on_modification, void *context) {
  if (!is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
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
  if (!is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  parameter_server->impl->first_edition = on_modification;
  return rclc_executor_add_parameter_server_with_context(
      executor, parameter_server, on_modification == NULL ? NULL : call_first_edition, parameter_server);
}

/* ---- what tide adds ---- */

rcl_ret_t tide_rclc_parameter_server_restore(rclc_parameter_server_t *parameter_server,
                                             const tide_parameter_store_t *store_) {
  if (!is_server(parameter_server) || store_ == NULL || store_->load == NULL || store_->save == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  tide_parameter_server_t *server = parameter_server->impl;
  rcl_ret_t result = RCL_RET_OK;
  for (uint8_t i = 0; i < server->count; i++) {
    tide_parameter_t *parameter = &server->parameters[i];
    if (!parameter->in_use) continue;
    Parameter message;
    change_t change = {parameter->name, parameter->type, {0}};
    to_message(&message, &change);
    if (!store_->load(store_->context, parameter->name, &message.value)) continue;
    if (message.value.type != parameter->type) continue;
    if (parameter->type == RCLC_PARAMETER_BOOL) change.value.boolean = message.value.bool_value;
    if (parameter->type == RCLC_PARAMETER_INT) change.value.integer = message.value.integer_value;
    if (parameter->type == RCLC_PARAMETER_DOUBLE) change.value.real = message.value.double_value;
    const bool refused = !is_in_range(parameter, change.value) || !is_done(apply(server, &change, false));
    if (refused && result == RCL_RET_OK) result = RCLC_PARAMETER_MODIFICATION_REJECTED;
  }
  server->store = *store_;
  server->stores = true;
  return result;
}

rcl_ret_t tide_rclc_parameter_server_set_priority(rclc_parameter_server_t *parameter_server, tide_priority_t priority) {
  if (!is_server(parameter_server)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  rcl_ret_t result = RCL_RET_OK;
  for (size_t i = 0; i < TIDE_PARAMETER_SERVICE_COUNT && result == RCL_RET_OK; i++) {
    result = tide_rclc_service_set_priority(service_of(parameter_server, i), priority);
  }
  if (result != RCL_RET_OK || !parameter_server->notify_changed_over_dds) return result;
  return tide_rclc_publisher_set_priority(&parameter_server->event_publisher, priority);
}

rcl_ret_t tide_rclc_parameter_server_get_counters(const rclc_parameter_server_t *parameter_server,
                                                  tide_parameter_counters_t *counters) {
  if (!is_server(parameter_server) || counters == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
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

/* ---- what a program does with its parameters ---- */

static rcl_ret_t result_of(uint8_t outcome) {
  switch (outcome) {
    case CHANGED:
    case ADDED: return RCL_RET_OK;
    case OTHER_TYPE: return RCLC_PARAMETER_TYPE_MISMATCH;
    case REJECTED: return RCLC_PARAMETER_MODIFICATION_REJECTED;
    case BUSY: return RCLC_PARAMETER_DISABLED_ON_CALLBACK;
    case NO_PLACE: (void)tide_compat_result(TIDE_ERROR_CAPACITY_PARAMETERS); return RCL_RET_ERROR;
    case NAME_TOO_LONG: (void)tide_compat_result(TIDE_ERROR_CAPACITY_NAMES); return RCL_RET_ERROR;
    case LIST_TOO_LONG: (void)tide_compat_result(TIDE_ERROR_TOO_LARGE); return RCL_RET_ERROR;
    default: (void)tide_compat_result(TIDE_ERROR_NOT_FOUND); return RCL_RET_ERROR;
  }
}

/* Returns the parameter if the program may change it now, else null and the reason in *result. */
static tide_parameter_t *to_change(const rclc_parameter_server_t *program, const char *name, rcl_ret_t *result) {
  if (!is_server(program) || name == NULL) {
    *result = tide_compat_result(TIDE_ERROR_ARGUMENT);
    return NULL;
  }
  tide_parameter_t *parameter = find(program->impl, name);
  *result = program->on_callback ? RCLC_PARAMETER_DISABLED_ON_CALLBACK
            : parameter == NULL  ? result_of(NOT_FOUND)
                                 : RCL_RET_OK;
  return *result == RCL_RET_OK ? parameter : NULL;
}

rcl_ret_t rclc_add_parameter(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                             rclc_parameter_type_t type) {
  if (!is_server(parameter_server) || parameter_name == NULL || type > RCLC_PARAMETER_DOUBLE) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (parameter_server->on_callback) return RCLC_PARAMETER_DISABLED_ON_CALLBACK;
  tide_parameter_server_t *server = parameter_server->impl;
  const change_t change = {parameter_name, (uint8_t)type, {0}};
  if (find(server, parameter_name) != NULL) {
    (void)tide_compat_result(TIDE_ERROR_EXISTS);
    return RCL_RET_ERROR;
  }
  const uint8_t outcome = check(server, &change, false);
  return result_of(is_done(outcome) ? add(server, &change) : outcome);
}

rcl_ret_t rclc_delete_parameter(rclc_parameter_server_t *parameter_server, const char *parameter_name) {
  rcl_ret_t result;
  tide_parameter_t *parameter = to_change(parameter_server, parameter_name, &result);
  if (parameter != NULL) remove_parameter(parameter_server->impl, parameter);
  return result;
}

static rcl_ret_t set(rclc_parameter_server_t *program, const char *name, rclc_parameter_type_t type,
                     tide_parameter_value_t value) {
  rcl_ret_t result;
  if (to_change(program, name, &result) == NULL) return result;
  const change_t change = {name, (uint8_t)type, value};
  return result_of(apply(program->impl, &change, false));
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
  if (!is_server(program) || name == NULL || output == NULL) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  const tide_parameter_t *parameter = find(program->impl, name);
  if (parameter == NULL) return result_of(NOT_FOUND);
  if (parameter->type != type) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  *value = value_of(parameter);
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

/* ---- descriptions and constraints ---- */

rcl_ret_t rclc_add_parameter_description(rclc_parameter_server_t *parameter_server, const char *parameter_name,
                                         const char *parameter_description, const char *additional_constraints) {
  if (!is_server(parameter_server) || parameter_name == NULL || parameter_description == NULL ||
      additional_constraints == NULL) {
    return tide_compat_result(TIDE_ERROR_ARGUMENT);
  }
  if (parameter_server->low_mem_mode) return RCLC_PARAMETER_UNSUPORTED_ON_LOW_MEM;
  const tide_parameter_t *parameter = find(parameter_server->impl, parameter_name);
  if (parameter == NULL) return result_of(NOT_FOUND);
  const size_t capacity = tide_parameter_pools.text_bytes;
  if (strlen(parameter_description) >= capacity || strlen(additional_constraints) >= capacity) {
    return result_of(NAME_TOO_LONG);
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
