/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

typedef int esp_err_t;
#define ESP_OK 0
#define ESP_FAIL -1
#define ESP_ERR_NO_MEM 0x101
