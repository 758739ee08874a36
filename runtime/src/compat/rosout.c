/* SPDX-License-Identifier: Apache-2.0 */
/* The log's publisher. Only programs that initialise it have this file. */
#include <string.h>

#include "background.h"
#include "rclc/publisher.h"
#include "rcutils/snprintf.h"
#include "tide/message_memory.h"
#include "tide/rclc_rosout.h"

typedef struct line {
  int64_t stamp_ns;
  int severity;
  const char *name; /* empty: of the default logger */
  const char *text;
  const rcutils_log_location_t *location;
} line_t;

static struct {
  rcl_publisher_t publisher;
  const char *node_name; /* "/namespace/node" */
  int least_severity;
  bool open;
  uint16_t entered; /* callers between having been let in and having a node */
  tide_rosout_counters_t counters;
} rosout;

static uintptr_t enter(void) { return tide_platform_enter(tide_port_platform()); }
static void leave(uintptr_t critical) { tide_platform_exit(tide_port_platform(), critical); }

/* ---- rcl_interfaces/msg/Log ---- */

static void put_text(tide_cdr_t *cdr, const char *text) {
  tide_cdr_put_string(cdr, text == NULL ? "" : text, text == NULL ? 0u : strlen(text));
}

/* "/namespace/node" as the logger "namespace.node". */
static void put_node_name(tide_cdr_t *cdr) {
  const char *name = rosout.node_name + 1;
  const size_t length = strlen(name);
  tide_cdr_put_u32(cdr, (uint32_t)length + 1u);
  for (size_t i = 0; i < length; i++) tide_cdr_put_u8(cdr, (uint8_t)(name[i] == '/' ? '.' : name[i]));
  tide_cdr_put_u8(cdr, 0u);
}

static void encode_line(tide_cdr_t *cdr, const void *untyped) {
  const line_t *line = untyped;
  const rcutils_log_location_t *location = line->location;
  const int64_t second_ns = 1000000000;
  tide_cdr_put_u32(cdr, (uint32_t)(line->stamp_ns / second_ns));
  tide_cdr_put_u32(cdr, (uint32_t)(line->stamp_ns % second_ns));
  tide_cdr_put_u8(cdr, (uint8_t)line->severity);
  if (line->name == NULL || line->name[0] == '\0') {
    put_node_name(cdr);
  } else {
    put_text(cdr, line->name);
  }
  put_text(cdr, line->text);
  put_text(cdr, location == NULL ? NULL : location->file_name);
  put_text(cdr, location == NULL ? NULL : location->function_name);
  tide_cdr_put_u32(cdr, location == NULL ? 0u : (uint32_t)location->line_number);
}

static void decode_nothing(tide_cdr_t *cdr, void *message) {
  (void)message;
  cdr->status = TIDE_ERROR_UNSUPPORTED;
}

static const tide_message_type_t line_type = {
    .package = "rcl_interfaces",
    .kind = "msg",
    .name = "Log",
    .dds_name = "rcl_interfaces::msg::dds_::Log_",
    .structure_bytes = sizeof(line_t),
    .encode = encode_line,
    .decode = decode_nothing,
};
static const rosidl_message_type_support_t line_type_support = {TIDE_TYPESUPPORT_IDENTIFIER, &line_type,
                                                                get_message_typesupport_handle_function};

/* ---- a line ---- */

/* Another publisher may have the place since the support ended. */
static bool is_open_locked(void) {
  return rosout.open && rcl_publisher_is_valid(&rosout.publisher) && rosout.publisher.impl->type == &line_type;
}

static tide_publisher_handle_t *begin_line(void) {
  tide_publisher_handle_t *publisher = NULL;
  const uintptr_t critical = enter();
  if (is_open_locked() && tide_compat_has_room_locked(rosout.publisher.impl->support, rosout.entered)) {
    publisher = rosout.publisher.impl;
    rosout.entered++;
  } else if (is_open_locked()) {
    rosout.counters.lost++;
  }
  leave(critical);
  return publisher;
}

static void end_line(int status, bool cut) {
  const uintptr_t critical = enter();
  rosout.entered--;
  if (status == TIDE_OK) {
    rosout.counters.published++;
    rosout.counters.cut += cut;
  } else {
    rosout.counters.lost++;
  }
  leave(critical);
}

static size_t bytes_of_character(uint8_t first) {
  if (first < 0xC0u) return 1u;
  if (first < 0xE0u) return 2u;
  return first < 0xF0u ? 3u : 4u;
}

/* Half a character would make the whole message unreadable in Python. */
static void cut_half_character(char *text) {
  const size_t length = strlen(text);
  size_t last = length;
  while (last > 0u && ((uint8_t)text[last - 1u] & 0xC0u) == 0x80u) last--;
  if (last > 0u && bytes_of_character((uint8_t)text[last - 1u]) > length - (last - 1u)) text[last - 1u] = '\0';
}

static void publish_line(const rcutils_log_location_t *location, int severity, const char *name,
                         rcutils_time_point_value_t timestamp, const char *format, va_list *arguments) {
  if (tide_port_in_interrupt()) {
    (void)__atomic_fetch_add(&rosout.counters.refused_in_interrupt, 1u, __ATOMIC_RELAXED);
    return;
  }
  if (severity < __atomic_load_n(&rosout.least_severity, __ATOMIC_RELAXED)) return;
  const tide_publisher_handle_t *publisher = begin_line();
  if (publisher == NULL) return;
  char text[TIDE_ROSOUT_TEXT_BYTES];
  const int length = rcutils_vsnprintf(text, sizeof text, format, *arguments);
  const bool cut = length >= (int)sizeof text;
  if (cut) cut_half_character(text);
  const line_t line = {timestamp, severity, name, text, location};
  end_line(length < 0 ? TIDE_ERROR_ARGUMENT : tide_compat_send_now(publisher, &line), cut);
}

/* ---- life ---- */

__attribute__((weak)) bool tide_port_in_interrupt(void) { return false; }

rcl_ret_t tide_rclc_rosout_init(const rcl_node_t *node, int least_severity) {
  if (!tide_compat_is_node(node)) return tide_compat_result(TIDE_ERROR_ARGUMENT);
  uintptr_t critical = enter();
  const bool exists = is_open_locked();
  if (!exists) rosout.open = false;
  leave(critical);
  if (exists) return tide_compat_result(TIDE_ERROR_EXISTS);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  const rcl_ret_t result =
      rclc_publisher_init(&publisher, node, &line_type_support, "/rosout", &rmw_qos_profile_rosout_default);
  if (result != RCL_RET_OK) return result;
  tide_rclc_rosout_set_severity(least_severity);
  critical = enter();
  rosout.publisher = publisher;
  rosout.node_name = node->impl->full_name;
  memset(&rosout.counters, 0, sizeof rosout.counters);
  rosout.open = true;
  leave(critical);
  tide_compat_set_log_publisher(publish_line);
  return RCL_RET_OK;
}

static void set_open(bool open) {
  const uintptr_t critical = enter();
  rosout.open = open;
  leave(critical);
}

rcl_ret_t tide_rclc_rosout_fini(rcl_node_t *node) {
  const uintptr_t critical = enter();
  const bool closes = is_open_locked() && rosout.entered == 0u;
  if (closes) rosout.open = false;
  leave(critical);
  if (!closes) return tide_compat_result(TIDE_ERROR_STATE);
  const rcl_ret_t result = rcl_publisher_fini(&rosout.publisher, node);
  if (result == RCL_RET_OK) {
    tide_compat_set_log_publisher(NULL);
  } else {
    set_open(true);
  }
  return result;
}

void tide_rclc_rosout_set_severity(int least_severity) {
  __atomic_store_n(&rosout.least_severity, least_severity, __ATOMIC_RELAXED);
}

rcl_ret_t tide_rclc_rosout_set_priority(tide_priority_t priority) {
  return tide_rclc_publisher_set_priority(&rosout.publisher, priority);
}

tide_rosout_counters_t tide_rclc_rosout_get_counters(void) {
  const uintptr_t critical = enter();
  tide_rosout_counters_t counters = rosout.counters;
  counters.refused_in_interrupt = __atomic_load_n(&rosout.counters.refused_in_interrupt, __ATOMIC_RELAXED);
  leave(critical);
  return counters;
}
