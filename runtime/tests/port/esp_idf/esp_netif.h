/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ESP-IDF that the component uses, as its documentation gives them. */
#pragma once

#include "esp_err.h"
#include "esp_event.h"

typedef struct esp_netif esp_netif_t;
extern const esp_event_base_t IP_EVENT;
enum { IP_EVENT_STA_GOT_IP = 0, IP_EVENT_GOT_IP6 = 3 };
typedef struct esp_ip6_addr {
  uint32_t addr[4];
  uint8_t zone;
} esp_ip6_addr_t;
typedef struct ip_event_got_ip6 {
  esp_netif_t *esp_netif;
  struct {
    esp_ip6_addr_t ip;
  } ip6_info;
  int ip_index;
} ip_event_got_ip6_t;
typedef enum { ESP_IP6_ADDR_IS_GLOBAL = 1, ESP_IP6_ADDR_IS_LINK_LOCAL = 2 } esp_ip6_addr_type_t;
esp_ip6_addr_type_t esp_netif_ip6_get_addr_type(esp_ip6_addr_t *address);
esp_err_t esp_netif_create_ip6_linklocal(esp_netif_t *interface);
esp_err_t esp_netif_init(void);
esp_netif_t *esp_netif_create_default_wifi_sta(void);
