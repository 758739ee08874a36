/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the messages of parameters are made of, to and from CDR, and the event. Values go straight between
 * the wire and the table: no message is ever held in memory. */
#include <string.h>

#include "parameters.h"

void tide_parameter_put_text(tide_cdr_t *cdr, const char *text) { tide_cdr_put_string(cdr, text, strlen(text)); }

void tide_parameter_put_value(tide_cdr_t *cdr, uint8_t type, tide_parameter_value_t value) {
  tide_cdr_put_u8(cdr, type);
  tide_cdr_put_bool(cdr, type == RCLC_PARAMETER_BOOL && value.boolean);
  tide_cdr_put_u64(cdr, type == RCLC_PARAMETER_INT ? (uint64_t)value.integer : 0);
  tide_cdr_put_f64(cdr, type == RCLC_PARAMETER_DOUBLE ? value.real : 0.0);
  tide_parameter_put_text(cdr, "");
  for (int array = 0; array < 5; array++) tide_cdr_put_u32(cdr, 0);
}

const char *tide_parameter_get_name(tide_cdr_t *cdr) {
  size_t length;
  const char *name = tide_cdr_get_string(cdr, &length);
  return name != NULL && length == 0 ? "" : name; /* without a NUL of its own, perhaps */
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

bool tide_parameter_get_change(tide_cdr_t *cdr, tide_parameter_change_t *change) {
  change->name = tide_parameter_get_name(cdr);
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

static void put_parameters_of(tide_cdr_t *cdr, const tide_parameter_event_message_t *message,
                              tide_parameter_event_t event) {
  const bool present = message->event == event;
  tide_cdr_put_u32(cdr, present);
  if (!present) return;
  tide_parameter_put_text(cdr, message->parameter->name);
  tide_parameter_put_value(cdr, message->parameter->type, tide_parameter_value(message->parameter));
}

static void encode_event(tide_cdr_t *cdr, const void *untyped) {
  const tide_parameter_event_message_t *message = untyped;
  const int64_t second_ns = 1000000000;
  tide_cdr_put_u32(cdr, (uint32_t)(message->stamp_ns / second_ns));
  tide_cdr_put_u32(cdr, (uint32_t)(message->stamp_ns % second_ns));
  tide_parameter_put_text(cdr, message->server->node_name);
  put_parameters_of(cdr, message, TIDE_PARAMETER_NEW);
  put_parameters_of(cdr, message, TIDE_PARAMETER_VALUE);
  put_parameters_of(cdr, message, TIDE_PARAMETER_DELETED);
}

static void decode_nothing(tide_cdr_t *cdr, void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

static const tide_message_type_t event_type = {
    .package = "rcl_interfaces",
    .kind = "msg",
    .name = "ParameterEvent",
    .dds_name = "rcl_interfaces::msg::dds_::ParameterEvent_",
    .structure_bytes = sizeof(tide_parameter_event_message_t),
    .encode = encode_event,
    .decode = decode_nothing,
};
const rosidl_message_type_support_t tide_parameter_event_type = {TIDE_TYPESUPPORT_IDENTIFIER, &event_type,
                                                                 get_message_typesupport_handle_function};
