/* SPDX-License-Identifier: Apache-2.0 */
/* What the six services ask and answer. A request is carried out while it is decoded, as its names are there only
 * then; malformed ones change nothing. The answer is made of what was noted. */
#include <string.h>

#include "parameters.h"
#include "tide/message_memory.h"

/* ---- requests ---- */

static uint8_t item_of(const tide_parameter_server_t *server, const tide_parameter_t *parameter) {
  return parameter == NULL ? TIDE_PARAMETER_NO_ITEM : (uint8_t)(parameter - server->parameters);
}

static void note_unknown(tide_parameter_answer_t *answer, const char *name) {
  char *place = answer->unknown_name;
  if (place == NULL || place[0] != '\0' || strlen(name) >= tide_parameter_pools.name_bytes) return;
  memcpy(place, name, strlen(name) + 1);
}

/* More names than there are places: none is answered. */
static void decode_names(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  answer->count = 0;
  if (answer->unknown_name != NULL) answer->unknown_name[0] = '\0';
  for (uint32_t i = 0; i < count; i++) {
    const char *name = tide_parameter_get_name(cdr);
    if (name == NULL) return;
    if (count > tide_parameter_pools.item_count) continue;
    const tide_parameter_t *parameter = tide_parameter_find(answer->server, name);
    if (parameter == NULL) note_unknown(answer, name);
    answer->items[answer->count++] = item_of(answer->server, parameter);
  }
}

static bool is_well_formed(tide_cdr_t cdr, uint32_t count) {
  tide_parameter_change_t change;
  for (uint32_t i = 0; i < count; i++) {
    if (!tide_parameter_get_change(&cdr, &change)) return false;
  }
  return true;
}

/* The count of changes; 0 when nothing is to be done. */
static uint32_t begin_changes(tide_cdr_t *cdr, tide_parameter_answer_t *answer) {
  answer->count = 0;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  if (cdr->status == TIDE_OK && !is_well_formed(*cdr, count)) cdr->status = TIDE_ERROR_MALFORMED;
  return cdr->status == TIDE_OK ? count : 0;
}

static void decode_set(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const uint32_t count = begin_changes(cdr, answer);
  if (count > tide_parameter_pools.item_count) return;
  for (uint32_t i = 0; i < count; i++) {
    tide_parameter_change_t change;
    (void)tide_parameter_get_change(cdr, &change);
    answer->items[answer->count++] = tide_parameter_apply(answer->server, &change, true);
  }
}

/* The first refusal of count changes by a client. */
static uint8_t check_all(tide_cdr_t cdr, const tide_parameter_server_t *server, uint32_t count) {
  uint8_t outcome = TIDE_PARAMETER_CHANGED;
  for (uint32_t i = 0; i < count && tide_parameter_is_done(outcome); i++) {
    tide_parameter_change_t change;
    (void)tide_parameter_get_change(&cdr, &change);
    outcome = tide_parameter_check(server, &change, true);
  }
  return outcome;
}

/* How many of them the program accepts, one after the other. */
static uint32_t ask_all(tide_cdr_t cdr, tide_parameter_server_t *server, uint32_t count, bool revoked) {
  for (uint32_t i = 0; i < count; i++) {
    tide_parameter_change_t change;
    (void)tide_parameter_get_change(&cdr, &change);
    if (!tide_parameter_ask(server, &change, revoked) && !revoked) return i;
  }
  return count;
}

static uint8_t set_all(tide_cdr_t *cdr, tide_parameter_server_t *server, uint32_t count) {
  if (server->program->on_callback) return TIDE_PARAMETER_BUSY;
  uint8_t outcome = check_all(*cdr, server, count);
  if (!tide_parameter_is_done(outcome)) return outcome;
  const uint32_t accepted = ask_all(*cdr, server, count, false);
  if (accepted < count) {
    (void)ask_all(*cdr, server, accepted, true);
    return TIDE_PARAMETER_REJECTED;
  }
  outcome = TIDE_PARAMETER_CHANGED;
  for (uint32_t i = 0; i < count; i++) {
    tide_parameter_change_t change;
    (void)tide_parameter_get_change(cdr, &change);
    const uint8_t made = tide_parameter_make(server, &change);
    if (!tide_parameter_is_done(made)) outcome = made; /* several new ones for the last place */
  }
  return outcome;
}

static void decode_set_atomically(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const uint32_t count = begin_changes(cdr, answer);
  if (cdr->status == TIDE_OK) answer->outcome = set_all(cdr, answer->server, count);
}

/* As far as the levels of the name below the prefix are wanted; depth 0: all. */
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
    if (is_below(name, tide_parameter_get_name(&prefixes), depth)) return true;
  }
  return false;
}

static void decode_list(tide_cdr_t *cdr, void *untyped) {
  tide_parameter_answer_t *answer = untyped;
  const tide_parameter_server_t *server = answer->server;
  const uint32_t count = tide_cdr_get_count(cdr, sizeof(uint32_t));
  const tide_cdr_t prefixes = *cdr;
  for (uint32_t i = 0; i < count; i++) {
    if (tide_parameter_get_name(cdr) == NULL) return;
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

/* Null: there is none, or it has been deleted since. */
static const tide_parameter_t *parameter_of(const tide_parameter_answer_t *answer, uint8_t i) {
  const uint8_t item = answer->items[i];
  if (item == TIDE_PARAMETER_NO_ITEM || !answer->server->parameters[item].in_use) return NULL;
  return &answer->server->parameters[item];
}

static void encode_values(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_answer_t *answer = untyped;
  const tide_parameter_value_t none = {0};
  tide_cdr_put_u32(cdr, answer->count);
  for (uint8_t i = 0; i < answer->count; i++) {
    const tide_parameter_t *parameter = parameter_of(answer, i);
    tide_parameter_put_value(cdr, parameter == NULL ? RCLC_PARAMETER_NOT_SET : parameter->type,
                             parameter == NULL ? none : tide_parameter_value(parameter));
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
  tide_cdr_put_bool(cdr, tide_parameter_is_done(outcome));
  tide_parameter_put_text(cdr, tide_parameter_outcome_text(outcome));
}

static void encode_results(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_answer_t *answer = untyped;
  tide_cdr_put_u32(cdr, answer->count);
  for (uint8_t i = 0; i < answer->count; i++) put_result(cdr, answer->items[i]);
}

static void encode_result(tide_cdr_t *cdr, const void *untyped) {
  put_result(cdr, ((const tide_parameter_answer_t *)untyped)->outcome);
}

/* The levels above the last one; 0: there are none. */
static size_t prefix_length(const char *name) {
  const char *point = strrchr(name, '.');
  return point == NULL ? 0 : (size_t)(point - name);
}

/* Each prefix once, at the first that has it. */
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
    tide_cdr_put_u64(cdr, parameter->from.unsigned_integer); /* of a double, too: its bits */
    tide_cdr_put_u64(cdr, parameter->to.unsigned_integer);
    tide_cdr_put_u64(cdr, parameter->step.unsigned_integer);
  }
}

static void put_descriptor(tide_cdr_t *cdr, const tide_parameter_t *parameter, const char *unknown_name) {
  const bool has_texts = parameter != NULL && parameter->description != NULL;
  tide_parameter_put_text(cdr, parameter == NULL ? unknown_name : parameter->name);
  tide_cdr_put_u8(cdr, parameter == NULL ? RCLC_PARAMETER_NOT_SET : parameter->type);
  tide_parameter_put_text(cdr, has_texts ? parameter->description : "");
  tide_parameter_put_text(cdr, has_texts ? parameter->constraints : "");
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

/* ---- their types ---- */

static void encode_nothing(tide_cdr_t *cdr, const void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}
static void decode_nothing(tide_cdr_t *cdr, void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

#define PART(NAME, SIDE, ENCODE, DECODE)                                                         \
  {                                                                                              \
    "rcl_interfaces", "srv", #NAME "_" #SIDE, "rcl_interfaces::srv::dds_::" #NAME "_" #SIDE "_", \
        sizeof(tide_parameter_answer_t), 0, 0, NULL, ENCODE, DECODE                              \
  }
#define SERVICE(NAME, DECODE, ENCODE)                                                                \
  static const tide_message_type_t NAME##_parts[2] = {PART(NAME, Request, encode_nothing, DECODE),   \
                                                      PART(NAME, Response, ENCODE, decode_nothing)}; \
  static const tide_service_type_t NAME = {"rcl_interfaces", #NAME, &NAME##_parts[0], &NAME##_parts[1]};
#define SUPPORT(NAME) \
  { TIDE_TYPESUPPORT_IDENTIFIER, &(NAME), get_service_typesupport_handle_function }

SERVICE(GetParameters, decode_names, encode_values)
SERVICE(GetParameterTypes, decode_names, encode_types)
SERVICE(SetParameters, decode_set, encode_results)
SERVICE(SetParametersAtomically, decode_set_atomically, encode_result)
SERVICE(ListParameters, decode_list, encode_list)
SERVICE(DescribeParameters, decode_names, encode_descriptors)

const rosidl_service_type_support_t tide_parameter_service_types[TIDE_PARAMETER_SERVICE_COUNT] = {
    [TIDE_PARAMETER_GET] = SUPPORT(GetParameters),   [TIDE_PARAMETER_GET_TYPES] = SUPPORT(GetParameterTypes),
    [TIDE_PARAMETER_SET] = SUPPORT(SetParameters),   [TIDE_PARAMETER_SET_ATOMICALLY] = SUPPORT(SetParametersAtomically),
    [TIDE_PARAMETER_LIST] = SUPPORT(ListParameters), [TIDE_PARAMETER_DESCRIBE] = SUPPORT(DescribeParameters),
};
