/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#ifndef TIDE_TEST_ESP_NETIF_H
#define TIDE_TEST_ESP_NETIF_H

#include "esp_err.h"
#include "esp_event.h"

typedef struct esp_netif esp_netif_t;
extern const esp_event_base_t IP_EVENT;
#define IP_EVENT_STA_GOT_IP 0
esp_err_t esp_netif_init(void);
esp_netif_t *esp_netif_create_default_wifi_sta(void);

#endif
