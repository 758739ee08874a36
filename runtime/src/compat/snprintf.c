/* SPDX-License-Identifier: Apache-2.0 */
#include "rcutils/snprintf.h"

#include <stdio.h>

int rcutils_vsnprintf(char *buffer, size_t buffer_size, const char *format, va_list arguments) {
  if (format == NULL || (buffer == NULL && buffer_size > 0)) return -1;
  /* Started by the caller. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
  return vsnprintf(buffer, buffer_size, format, arguments);
}

int rcutils_snprintf(char *buffer, size_t buffer_size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = rcutils_vsnprintf(buffer, buffer_size, format, arguments);
  va_end(arguments);
  return length;
}
