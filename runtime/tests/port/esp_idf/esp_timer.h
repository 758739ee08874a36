/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#ifndef TIDE_TEST_ESP_TIMER_H
#define TIDE_TEST_ESP_TIMER_H

#include <stdint.h>

int64_t esp_timer_get_time(void);

#endif
