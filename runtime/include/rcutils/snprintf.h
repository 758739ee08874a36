/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCUTILS__SNPRINTF_H_
#define RCUTILS__SNPRINTF_H_

#include <stdarg.h>
#include <stddef.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* Like vsnprintf, but also returns a negative value for a null buffer of nonzero size or a null format. */
int rcutils_vsnprintf(char *buffer, size_t buffer_size, const char *format, va_list arguments);
int rcutils_snprintf(char *buffer, size_t buffer_size, const char *format, ...);

TIDE_EXTERN_C_END

#endif
