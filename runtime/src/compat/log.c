/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
/* The log: lines go to the program's handler, by default stderr, and to /rosout; also the names of loggers. */
#include <string.h>

#include "internal.h"
#include "rclc/publisher.h"
#include "rcutils/logging.h"
#include "rcutils/snprintf.h"
#include "rmw_microros/time_sync.h"
#include "tide/message_memory.h"
#include "tide/options.h"
#include "tide/rclc_rosout.h"

#if defined(__unix__) || defined(__APPLE__)
#include <stdio.h>

static const char *word_of(int severity) {
  static const char *const words[] = {"UNSET", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
  const int place = severity / 10;
  return place >= 0 && place <= 5 ? words[place] : words[0];
}

void rcutils_logging_console_output_handler(const rcutils_log_location_t *location, int severity, const char *name,
                                            rcutils_time_point_value_t timestamp, const char *format, va_list *args) {
  (void)location;
  const long long second_ns = 1000000000;
  flockfile(stderr);
  fprintf(stderr, "[%s] [%lld.%09lld] [%s]: ", word_of(severity), (long long)timestamp / second_ns,
          (long long)timestamp % second_ns, name);
  vfprintf(stderr, format, *args); /* the caller called va_start. NOLINT(clang-analyzer-valist.Uninitialized) */
  fputc('\n', stderr);
  funlockfile(stderr);
}
#else
void rcutils_logging_console_output_handler(const rcutils_log_location_t *location, int severity, const char *name,
                                            rcutils_time_point_value_t timestamp, const char *format, va_list *args) {
  (void)location;
  (void)severity;
  (void)name;
  (void)timestamp;
  (void)format;
  (void)args;
}
#endif

/* The handlers may be set while other threads log. */
static rcutils_logging_output_handler_t handler = rcutils_logging_console_output_handler;
static rcutils_logging_output_handler_t publish; /* null if /rosout is not used */
static int log_severity = RCUTILS_LOG_SEVERITY_INFO;

rcutils_ret_t rcutils_logging_initialize(void) { return RCUTILS_RET_OK; }

rcutils_ret_t rcutils_logging_shutdown(void) { return RCUTILS_RET_OK; }

rcutils_logging_output_handler_t rcutils_logging_get_output_handler(void) {
  return __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
}

void rcutils_logging_set_output_handler(rcutils_logging_output_handler_t function) {
  __atomic_store_n(&handler, function, __ATOMIC_RELEASE);
}

int rcutils_logging_get_default_logger_level(void) { return __atomic_load_n(&log_severity, __ATOMIC_RELAXED); }

void rcutils_logging_set_default_logger_level(int level) {
  const int wanted = level == RCUTILS_LOG_SEVERITY_UNSET ? RCUTILS_LOG_SEVERITY_INFO : level;
  __atomic_store_n(&log_severity, wanted, __ATOMIC_RELAXED);
}

rcutils_ret_t rcutils_logging_set_logger_level(const char *name, int level) {
  if (name == NULL) return RCUTILS_RET_INVALID_ARGUMENT;
  rcutils_logging_set_default_logger_level(level);
  return RCUTILS_RET_OK;
}

int rcutils_logging_get_logger_level(const char *name) {
  return name == NULL ? -1 : rcutils_logging_get_default_logger_level();
}

bool rcutils_logging_logger_is_enabled_for(const char *name, int severity) {
  (void)name;
  return severity >= rcutils_logging_get_default_logger_level();
}

void rcutils_log(const rcutils_log_location_t *location, int severity, const char *name, const char *format, ...) {
  const rcutils_logging_output_handler_t outputs[] = {rcutils_logging_get_output_handler(),
                                                      __atomic_load_n(&publish, __ATOMIC_ACQUIRE)};
  if (!rcutils_logging_logger_is_enabled_for(name, severity)) return;
  const rcutils_time_point_value_t timestamp = rmw_uros_epoch_nanos();
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
    if (outputs[i] == NULL) continue;
    va_list arguments; /* because each output reads the arguments itself */
    va_start(arguments, format);
    outputs[i](location, severity, name == NULL ? "" : name, timestamp, format, &arguments);
    va_end(arguments);
  }
}

/* ---- /rosout, of programs that initialise it ---- */

typedef struct line {
  int64_t stamp_ns;
  int severity;
  const char *name; /* empty for the default logger */
  const char *text;
  const rcutils_log_location_t *location;
} line_t;

static struct {
  rcl_publisher_t publisher;
  const char *node_name; /* "/namespace/node" */
  int least_severity;
  bool open;
  uint16_t entered; /* number of admitted callers that have not acquired a node yet */
  tide_rosout_counters_t counters;
} rosout;

/* ---- rcl_interfaces/msg/Log ---- */

static void put_text(tide_cdr_t *cdr, const char *text) {
  tide_cdr_put_string(cdr, text == NULL ? "" : text, text == NULL ? 0u : strlen(text));
}

/* Writes "/namespace/node" as the logger name "namespace.node". */
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

static const tide_message_type_t line_type =
    TIDE_COMPAT_MESSAGE_TYPE("rcl_interfaces", "Log", sizeof(line_t), encode_line, tide_compat_decode_nothing);
static const rosidl_message_type_support_t line_support = TIDE_COMPAT_MESSAGE_SUPPORT(line_type);

/* ---- a line ---- */

/* Another publisher may use the entry if the support has ended. */
static bool is_open_locked(void) {
  return rosout.open && rcl_publisher_is_valid(&rosout.publisher) && rosout.publisher.impl->type == &line_type;
}

static tide_publisher_handle_t *begin_line(void) {
  tide_publisher_handle_t *publisher = NULL;
  const uintptr_t critical = tide_compat_enter();
  if (is_open_locked() && tide_compat_has_room_locked(rosout.publisher.impl->support, rosout.entered)) {
    publisher = rosout.publisher.impl;
    rosout.entered++;
  } else if (is_open_locked()) {
    rosout.counters.lost++;
  }
  tide_compat_leave(critical);
  return publisher;
}

static void end_line(int status, bool cut) {
  const uintptr_t critical = tide_compat_enter();
  rosout.entered--;
  if (status == TIDE_OK) {
    rosout.counters.published++;
    rosout.counters.cut += cut;
  } else {
    rosout.counters.lost++;
  }
  tide_compat_leave(critical);
}

static size_t bytes_of_character(uint8_t first) {
  if (first < 0xC0u) return 1u;
  if (first < 0xE0u) return 2u;
  return first < 0xF0u ? 3u : 4u;
}

/* A truncated character would make the whole message unreadable in Python. */
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
  uintptr_t critical = tide_compat_enter();
  const bool exists = is_open_locked();
  if (!exists) rosout.open = false;
  tide_compat_leave(critical);
  if (exists) return tide_compat_result(TIDE_ERROR_EXISTS);
  rcl_publisher_t publisher = rcl_get_zero_initialized_publisher();
  const rcl_ret_t result =
      rclc_publisher_init(&publisher, node, &line_support, "/rosout", &rmw_qos_profile_rosout_default);
  if (result != RCL_RET_OK) return result;
  tide_rclc_rosout_set_severity(least_severity);
  critical = tide_compat_enter();
  rosout.publisher = publisher;
  rosout.node_name = node->impl->full_name;
  memset(&rosout.counters, 0, sizeof rosout.counters);
  rosout.open = true;
  tide_compat_leave(critical);
  __atomic_store_n(&publish, publish_line, __ATOMIC_RELEASE);
  return RCL_RET_OK;
}

rcl_ret_t tide_rclc_rosout_fini(rcl_node_t *node) {
  uintptr_t critical = tide_compat_enter();
  const bool closes = is_open_locked() && rosout.entered == 0u;
  if (closes) rosout.open = false;
  tide_compat_leave(critical);
  if (!closes) return tide_compat_result(TIDE_ERROR_STATE);
  const rcl_ret_t result = rcl_publisher_fini(&rosout.publisher, node);
  if (result == RCL_RET_OK) {
    __atomic_store_n(&publish, NULL, __ATOMIC_RELEASE);
    return result;
  }
  critical = tide_compat_enter();
  rosout.open = true;
  tide_compat_leave(critical);
  return result;
}

void tide_rclc_rosout_set_severity(int least_severity) {
  __atomic_store_n(&rosout.least_severity, least_severity, __ATOMIC_RELAXED);
}

tide_rosout_counters_t tide_rclc_rosout_get_counters(void) {
  const uintptr_t critical = tide_compat_enter();
  tide_rosout_counters_t counters = rosout.counters;
  counters.refused_in_interrupt = __atomic_load_n(&rosout.counters.refused_in_interrupt, __ATOMIC_RELAXED);
  tide_compat_leave(critical);
  return counters;
}

/* ---- names of loggers, for programs that use them ---- */

static struct {
  char texts[TIDE_LOGGER_NAME_BYTES]; /* stored one after the other, each with its NUL; never removed */
  size_t used;
} names;

static char dotted(char character) { return (char)(character == '/' ? '.' : character); }

static bool is_dotted(const char *text, const char *name) {
  while (*text != '\0' && *text == dotted(*name)) {
    text++;
    name++;
  }
  return *text == *name;
}

static const char *find_locked(const char *name) {
  for (const char *text = names.texts; text < names.texts + names.used; text += strlen(text) + 1u)
    if (is_dotted(text, name)) return text;
  return NULL;
}

static const char *keep_locked(const char *name) {
  const size_t bytes = strlen(name) + 1u;
  if (bytes > sizeof names.texts - names.used) return NULL;
  char *text = names.texts + names.used;
  for (size_t i = 0; i < bytes; i++) text[i] = dotted(name[i]);
  names.used += bytes;
  return text;
}

const char *rcl_node_get_logger_name(const rcl_node_t *node) {
  if (!tide_compat_is_node(node)) return NULL;
  const char *name = node->impl->full_name + 1; /* the characters after the first slash */
  if (strchr(name, '/') == NULL) return name;
  const uintptr_t critical = tide_compat_enter();
  const char *text = find_locked(name);
  if (text == NULL) text = keep_locked(name);
  tide_compat_leave(critical);
  if (text == NULL) (void)tide_compat_result(TIDE_ERROR_CAPACITY_NAMES);
  return text;
}
