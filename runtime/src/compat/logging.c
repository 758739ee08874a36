/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
/* The log of programs. */
#include "rcutils/logging.h"

#include "internal.h"
#include "rmw_microros/time_sync.h"
#include "tide/options.h"

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
  vfprintf(stderr, format, *args); /* begun by the caller. NOLINT(clang-analyzer-valist.Uninitialized) */
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

/* Both may be set while other threads log. */
static rcutils_logging_output_handler_t handler = rcutils_logging_console_output_handler;
static rcutils_logging_output_handler_t publisher; /* null: nothing goes to /rosout */
static int least_severity = RCUTILS_LOG_SEVERITY_INFO;

void tide_compat_set_log_publisher(rcutils_logging_output_handler_t function) {
  __atomic_store_n(&publisher, function, __ATOMIC_RELEASE);
}

rcutils_ret_t rcutils_logging_initialize(void) { return RCUTILS_RET_OK; }

rcutils_ret_t rcutils_logging_shutdown(void) { return RCUTILS_RET_OK; }

rcutils_logging_output_handler_t rcutils_logging_get_output_handler(void) {
  return __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
}

void rcutils_logging_set_output_handler(rcutils_logging_output_handler_t function) {
  __atomic_store_n(&handler, function, __ATOMIC_RELEASE);
}

int rcutils_logging_get_default_logger_level(void) { return __atomic_load_n(&least_severity, __ATOMIC_RELAXED); }

void rcutils_logging_set_default_logger_level(int level) {
  const int wanted = level == RCUTILS_LOG_SEVERITY_UNSET ? RCUTILS_LOG_SEVERITY_INFO : level;
  __atomic_store_n(&least_severity, wanted, __ATOMIC_RELAXED);
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
                                                      __atomic_load_n(&publisher, __ATOMIC_ACQUIRE)};
  if (!rcutils_logging_logger_is_enabled_for(name, severity)) return;
  const rcutils_time_point_value_t timestamp = rmw_uros_epoch_nanos();
  for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
    if (outputs[i] == NULL) continue;
    va_list arguments; /* each reads its own */
    va_start(arguments, format);
    outputs[i](location, severity, name == NULL ? "" : name, timestamp, format, &arguments);
    va_end(arguments);
  }
}
