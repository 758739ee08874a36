/* SPDX-License-Identifier: Apache-2.0 */
/* Logging. Lines go to one handler: by default stderr on a system with a console, none on a board. All loggers share
 * one level. For output to /rosout see tide/rclc_rosout.h. */
#ifndef RCUTILS__LOGGING_H_
#define RCUTILS__LOGGING_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "rcutils/ret.h"
#include "rcutils/time.h"

TIDE_EXTERN_C_BEGIN

typedef struct rcutils_log_location_t {
  const char *function_name;
  const char *file_name;
  size_t line_number;
} rcutils_log_location_t;

enum RCUTILS_LOG_SEVERITY {
  RCUTILS_LOG_SEVERITY_UNSET = 0,
  RCUTILS_LOG_SEVERITY_DEBUG = 10,
  RCUTILS_LOG_SEVERITY_INFO = 20,
  RCUTILS_LOG_SEVERITY_WARN = 30,
  RCUTILS_LOG_SEVERITY_ERROR = 40,
  RCUTILS_LOG_SEVERITY_FATAL = 50
};

/* name: "" for the default logger. timestamp: ns of the agent's clock, 0 before it is known. Called in the context that
 * logs.
 */
typedef void (*rcutils_logging_output_handler_t)(const rcutils_log_location_t *location, int severity, const char *name,
                                                 rcutils_time_point_value_t timestamp, const char *format,
                                                 va_list *args);

rcutils_ret_t rcutils_logging_initialize(void);
rcutils_ret_t rcutils_logging_shutdown(void);
rcutils_logging_output_handler_t rcutils_logging_get_output_handler(void);
/* Null: nothing is output. */
void rcutils_logging_set_output_handler(rcutils_logging_output_handler_t function);
/* Writes to stderr, as "[INFO] [seconds.nanoseconds] [name]: text"; does nothing on a board. */
void rcutils_logging_console_output_handler(const rcutils_log_location_t *location, int severity, const char *name,
                                            rcutils_time_point_value_t timestamp, const char *format, va_list *args);
/* Lines below this level are dropped; initially INFO. */
int rcutils_logging_get_default_logger_level(void);
void rcutils_logging_set_default_logger_level(int level);
/* Sets the level of every logger. */
rcutils_ret_t rcutils_logging_set_logger_level(const char *name, int level);
int rcutils_logging_get_logger_level(const char *name);
bool rcutils_logging_logger_is_enabled_for(const char *name, int severity);

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void rcutils_log(const rcutils_log_location_t *location, int severity, const char *name, const char *format, ...);

TIDE_EXTERN_C_END
#endif
