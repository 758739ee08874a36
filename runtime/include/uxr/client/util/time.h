/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UXR__CLIENT__UTIL__TIME_H_
#define UXR__CLIENT__UTIL__TIME_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The monotonic clock of the port in ms and ns. Any thread may call these functions. */
int64_t uxr_millis(void);
int64_t uxr_nanos(void);

#ifdef __cplusplus
}
#endif

#endif
