/* SPDX-License-Identifier: Apache-2.0 */
/* RCUTILS_LOG_INFO("speed %d", speed), RCUTILS_LOG_INFO_NAMED("wheel", ...), and the same for DEBUG, WARN, ERROR and
 * FATAL. Lines below RCUTILS_LOG_MIN_SEVERITY are not compiled. */
#ifndef RCUTILS__LOGGING_MACROS_H_
#define RCUTILS__LOGGING_MACROS_H_

#include "rcutils/logging.h"

#define RCUTILS_LOG_MIN_SEVERITY_DEBUG 0
#define RCUTILS_LOG_MIN_SEVERITY_INFO 1
#define RCUTILS_LOG_MIN_SEVERITY_WARN 2
#define RCUTILS_LOG_MIN_SEVERITY_ERROR 3
#define RCUTILS_LOG_MIN_SEVERITY_FATAL 4
#define RCUTILS_LOG_MIN_SEVERITY_NONE 5
#ifndef RCUTILS_LOG_MIN_SEVERITY
#define RCUTILS_LOG_MIN_SEVERITY RCUTILS_LOG_MIN_SEVERITY_DEBUG
#endif

#define RCUTILS_LOGGING_AUTOINIT
#define TIDE_LOG_AT(severity, condition, name, ...)                                        \
  do {                                                                                     \
    if (RCUTILS_LOG_MIN_SEVERITY <= RCUTILS_LOG_MIN_SEVERITY_##severity && (condition) &&  \
        rcutils_logging_logger_is_enabled_for(name, RCUTILS_LOG_SEVERITY_##severity)) {    \
      const rcutils_log_location_t tide_log_location = {__func__, __FILE__, __LINE__};     \
      rcutils_log(&tide_log_location, RCUTILS_LOG_SEVERITY_##severity, name, __VA_ARGS__); \
    }                                                                                      \
  } while (0)
#define TIDE_LOG_ONCE(severity, name, ...)                  \
  do {                                                      \
    static bool tide_logged;                                \
    TIDE_LOG_AT(severity, !tide_logged, name, __VA_ARGS__); \
    tide_logged = true;                                     \
  } while (0)

#define RCUTILS_LOG_DEBUG(...) TIDE_LOG_AT(DEBUG, true, "", __VA_ARGS__)
#define RCUTILS_LOG_DEBUG_NAMED(name, ...) TIDE_LOG_AT(DEBUG, true, name, __VA_ARGS__)
#define RCUTILS_LOG_DEBUG_ONCE(...) TIDE_LOG_ONCE(DEBUG, "", __VA_ARGS__)
#define RCUTILS_LOG_DEBUG_ONCE_NAMED(name, ...) TIDE_LOG_ONCE(DEBUG, name, __VA_ARGS__)
#define RCUTILS_LOG_DEBUG_EXPRESSION(expression, ...) TIDE_LOG_AT(DEBUG, expression, "", __VA_ARGS__)
#define RCUTILS_LOG_DEBUG_EXPRESSION_NAMED(expression, name, ...) TIDE_LOG_AT(DEBUG, expression, name, __VA_ARGS__)

#define RCUTILS_LOG_INFO(...) TIDE_LOG_AT(INFO, true, "", __VA_ARGS__)
#define RCUTILS_LOG_INFO_NAMED(name, ...) TIDE_LOG_AT(INFO, true, name, __VA_ARGS__)
#define RCUTILS_LOG_INFO_ONCE(...) TIDE_LOG_ONCE(INFO, "", __VA_ARGS__)
#define RCUTILS_LOG_INFO_ONCE_NAMED(name, ...) TIDE_LOG_ONCE(INFO, name, __VA_ARGS__)
#define RCUTILS_LOG_INFO_EXPRESSION(expression, ...) TIDE_LOG_AT(INFO, expression, "", __VA_ARGS__)
#define RCUTILS_LOG_INFO_EXPRESSION_NAMED(expression, name, ...) TIDE_LOG_AT(INFO, expression, name, __VA_ARGS__)

#define RCUTILS_LOG_WARN(...) TIDE_LOG_AT(WARN, true, "", __VA_ARGS__)
#define RCUTILS_LOG_WARN_NAMED(name, ...) TIDE_LOG_AT(WARN, true, name, __VA_ARGS__)
#define RCUTILS_LOG_WARN_ONCE(...) TIDE_LOG_ONCE(WARN, "", __VA_ARGS__)
#define RCUTILS_LOG_WARN_ONCE_NAMED(name, ...) TIDE_LOG_ONCE(WARN, name, __VA_ARGS__)
#define RCUTILS_LOG_WARN_EXPRESSION(expression, ...) TIDE_LOG_AT(WARN, expression, "", __VA_ARGS__)
#define RCUTILS_LOG_WARN_EXPRESSION_NAMED(expression, name, ...) TIDE_LOG_AT(WARN, expression, name, __VA_ARGS__)

#define RCUTILS_LOG_ERROR(...) TIDE_LOG_AT(ERROR, true, "", __VA_ARGS__)
#define RCUTILS_LOG_ERROR_NAMED(name, ...) TIDE_LOG_AT(ERROR, true, name, __VA_ARGS__)
#define RCUTILS_LOG_ERROR_ONCE(...) TIDE_LOG_ONCE(ERROR, "", __VA_ARGS__)
#define RCUTILS_LOG_ERROR_ONCE_NAMED(name, ...) TIDE_LOG_ONCE(ERROR, name, __VA_ARGS__)
#define RCUTILS_LOG_ERROR_EXPRESSION(expression, ...) TIDE_LOG_AT(ERROR, expression, "", __VA_ARGS__)
#define RCUTILS_LOG_ERROR_EXPRESSION_NAMED(expression, name, ...) TIDE_LOG_AT(ERROR, expression, name, __VA_ARGS__)

#define RCUTILS_LOG_FATAL(...) TIDE_LOG_AT(FATAL, true, "", __VA_ARGS__)
#define RCUTILS_LOG_FATAL_NAMED(name, ...) TIDE_LOG_AT(FATAL, true, name, __VA_ARGS__)
#define RCUTILS_LOG_FATAL_ONCE(...) TIDE_LOG_ONCE(FATAL, "", __VA_ARGS__)
#define RCUTILS_LOG_FATAL_ONCE_NAMED(name, ...) TIDE_LOG_ONCE(FATAL, name, __VA_ARGS__)
#define RCUTILS_LOG_FATAL_EXPRESSION(expression, ...) TIDE_LOG_AT(FATAL, expression, "", __VA_ARGS__)
#define RCUTILS_LOG_FATAL_EXPRESSION_NAMED(expression, name, ...) TIDE_LOG_AT(FATAL, expression, name, __VA_ARGS__)

#endif
