/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RCLC__SLEEP_H_
#define RCLC__SLEEP_H_

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

void rclc_sleep_ms(unsigned int ms);

TIDE_EXTERN_C_END
#endif
