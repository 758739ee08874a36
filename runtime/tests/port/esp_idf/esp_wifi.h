/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

#include <stdint.h>

#include "esp_err.h"
#include "esp_event.h"

typedef struct wifi_init_config {
  int buffers;
} wifi_init_config_t;
#define WIFI_INIT_CONFIG_DEFAULT() \
  { 10 }
typedef struct wifi_sta_config {
  uint8_t ssid[32], password[64];
} wifi_sta_config_t;
typedef union wifi_config {
  wifi_sta_config_t sta;
} wifi_config_t;
extern const esp_event_base_t WIFI_EVENT;
enum { WIFI_EVENT_STA_START = 2, WIFI_EVENT_STA_CONNECTED = 4, WIFI_EVENT_STA_DISCONNECTED = 5 };
enum { WIFI_MODE_STA = 1, WIFI_IF_STA = 0 };
esp_err_t esp_wifi_init(const wifi_init_config_t *config);
esp_err_t esp_wifi_set_mode(int mode);
esp_err_t esp_wifi_set_config(int interface, wifi_config_t *config);
esp_err_t esp_wifi_start(void);
esp_err_t esp_wifi_connect(void);
