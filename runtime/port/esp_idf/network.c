/* SPDX-License-Identifier: Apache-2.0 */
/* Wi-Fi as a station: reconnects whenever the connection is lost; the session's streams repair losses. The address that
 * it waits for is of the family of CONFIG_MICRO_ROS_AGENT_IP. */
#include "sdkconfig.h"
#include "uros_network_interfaces.h"

#if CONFIG_MICRO_ROS_ESP_NETIF_WLAN
#include <string.h>

#include "esp_event.h"
#include "esp_netif.h"
#include "esp_wifi.h"
#include "freertos/FreeRTOS.h"
#include "freertos/event_groups.h"
#include "nvs_flash.h"

#define HAS_ADDRESS 1u

static EventGroupHandle_t events;
static esp_netif_t *station;

static bool agent_has_ipv6(void) { return strchr(CONFIG_MICRO_ROS_AGENT_IP, ':') != NULL; }

/* A link-local address only reaches agents that also have such an address. */
static bool reaches_agent(ip_event_got_ip6_t *event) {
  return strncmp(CONFIG_MICRO_ROS_AGENT_IP, "fe80", 4) == 0 ||
         esp_netif_ip6_get_addr_type(&event->ip6_info.ip) != ESP_IP6_ADDR_IS_LINK_LOCAL;
}

static void on_event(void *context, esp_event_base_t base, int32_t id, void *data) {
  (void)context;
  if (base == WIFI_EVENT && (id == WIFI_EVENT_STA_START || id == WIFI_EVENT_STA_DISCONNECTED)) (void)esp_wifi_connect();
  if (base == WIFI_EVENT && id == WIFI_EVENT_STA_CONNECTED && agent_has_ipv6())
    (void)esp_netif_create_ip6_linklocal(station);
  const bool has_4 = id == IP_EVENT_STA_GOT_IP && !agent_has_ipv6();
  const bool has_6 = id == IP_EVENT_GOT_IP6 && agent_has_ipv6() && base == IP_EVENT && reaches_agent(data);
  if (base == IP_EVENT && (has_4 || has_6)) (void)xEventGroupSetBits(events, HAS_ADDRESS);
}

static esp_err_t start_storage(void) {
  const esp_err_t status = nvs_flash_init();
  if (status != ESP_ERR_NVS_NO_FREE_PAGES && status != ESP_ERR_NVS_NEW_VERSION_FOUND) return status;
  const esp_err_t erased = nvs_flash_erase();
  return erased == ESP_OK ? nvs_flash_init() : erased;
}

static esp_err_t start_station(void) {
  const wifi_init_config_t defaults = WIFI_INIT_CONFIG_DEFAULT();
  wifi_config_t config;
  memset(&config, 0, sizeof config);
  strncpy((char *)config.sta.ssid, CONFIG_ESP_WIFI_SSID, sizeof config.sta.ssid);
  strncpy((char *)config.sta.password, CONFIG_ESP_WIFI_PASSWORD, sizeof config.sta.password);
  esp_err_t status = esp_wifi_init(&defaults);
  if (status == ESP_OK) status = esp_event_handler_register(WIFI_EVENT, ESP_EVENT_ANY_ID, on_event, NULL);
  if (status == ESP_OK) status = esp_event_handler_register(IP_EVENT, ESP_EVENT_ANY_ID, on_event, NULL);
  if (status == ESP_OK) status = esp_wifi_set_mode(WIFI_MODE_STA);
  if (status == ESP_OK) status = esp_wifi_set_config(WIFI_IF_STA, &config);
  return status == ESP_OK ? esp_wifi_start() : status;
}

esp_err_t uros_network_interface_initialize(void) {
  events = xEventGroupCreate();
  if (events == NULL) return ESP_ERR_NO_MEM;
  esp_err_t status = start_storage();
  if (status == ESP_OK) status = esp_netif_init();
  if (status == ESP_OK) status = esp_event_loop_create_default();
  if (status != ESP_OK) return status;
  station = esp_netif_create_default_wifi_sta();
  if (station == NULL) return ESP_FAIL;
  status = start_station();
  if (status != ESP_OK) return status;
  (void)xEventGroupWaitBits(events, HAS_ADDRESS, pdFALSE, pdTRUE, portMAX_DELAY);
  return ESP_OK;
}
#else
esp_err_t uros_network_interface_initialize(void) { return ESP_OK; }
#endif
