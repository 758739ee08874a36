/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#ifndef TIDE_TEST_ESP_ERR_H
#define TIDE_TEST_ESP_ERR_H

typedef int esp_err_t;
#define ESP_OK 0
#define ESP_FAIL -1
#define ESP_ERR_NO_MEM 0x101

#endif
