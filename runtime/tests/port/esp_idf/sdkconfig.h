/* SPDX-License-Identifier: Apache-2.0 */
/* The default configuration from the Kconfig of the component and the system. */
#pragma once

#define CONFIG_FREERTOS_HZ 100
#define CONFIG_MICRO_ROS_ESP_XRCE_DDS_MIDDLEWARE 1
#define CONFIG_MICRO_ROS_AGENT_IP "192.168.1.100"
#define CONFIG_MICRO_ROS_AGENT_PORT "8888"
#define CONFIG_TIDE_UART_PORT 1
#define CONFIG_TIDE_UART_TXD -1
#define CONFIG_TIDE_UART_RXD -1
#define CONFIG_TIDE_LINK_PRIORITY 17
#define CONFIG_TIDE_LINK_STACK_BYTES 4096
#define CONFIG_MICRO_ROS_ESP_NETIF_WLAN 1
#define CONFIG_ESP_WIFI_SSID "myssid"
#define CONFIG_ESP_WIFI_PASSWORD ""
