/* SPDX-License-Identifier: Apache-2.0 */
/* What the component's Kconfig and the system's make of their defaults. */
#ifndef TIDE_TEST_ESP_SDKCONFIG_H
#define TIDE_TEST_ESP_SDKCONFIG_H

#define CONFIG_FREERTOS_HZ 100
#define CONFIG_MICRO_ROS_AGENT_IP "192.168.1.100"
#define CONFIG_MICRO_ROS_AGENT_PORT "8888"
#define CONFIG_TIDE_UART_PORT 1
#define CONFIG_TIDE_UART_TXD -1
#define CONFIG_TIDE_UART_RXD -1
#define CONFIG_TIDE_LINK_PRIORITY 17
#define CONFIG_TIDE_LINK_STACK_BYTES 4096
#define CONFIG_TIDE_NETWORK_WIFI 1
#define CONFIG_ESP_WIFI_SSID "myssid"
#define CONFIG_ESP_WIFI_PASSWORD ""

#endif
