/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

#include <stdint.h>

int64_t esp_timer_get_time(void);
