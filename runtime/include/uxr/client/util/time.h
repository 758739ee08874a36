/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UXR__CLIENT__UTIL__TIME_H_
#define UXR__CLIENT__UTIL__TIME_H_

#include <stdint.h>

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* The monotonic clock of the port in ms and ns. Any thread may call these functions. */
int64_t uxr_millis(void);
int64_t uxr_nanos(void);

TIDE_EXTERN_C_END

#endif
