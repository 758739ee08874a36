/* SPDX-License-Identifier: Apache-2.0 */
/* The calls by which programs for micro-ROS bring up Wi-Fi or Ethernet and name the agent, on the boards on which
 * micro-ROS has them. These calls wait until the network is up. For other boards, or another way to bring the network
 * up, use set_microros_udp_transport. */
#ifndef TIDE_ARDUINO_NETWORKS_H
#define TIDE_ARDUINO_NETWORKS_H

/* ---- Wi-Fi ---- */

#if defined(MICRO_ROS_TRANSPORT_ARDUINO_WIFI_NINA) || defined(ARDUINO_NANO_RP2040_CONNECT)
#include <SPI.h>
#include <WiFiNINA.h>
#define TIDE_ARDUINO_WIFI 1
#elif defined(ARDUINO_WIO_TERMINAL)
#include <WiFiUdp.h>
#include <rpcWiFi.h>
#define TIDE_ARDUINO_WIFI 1
#elif defined(BOARD_WITH_ESP_AT)
#include <WiFiEspAT.h>
#define TIDE_ARDUINO_WIFI 1
#elif defined(MICRO_ROS_TRANSPORT_ARDUINO_WIFI) || defined(ESP32) || defined(TARGET_PORTENTA_H7_M7)
#include <WiFi.h>
#include <WiFiUdp.h>
#define TIDE_ARDUINO_WIFI 1
#endif

#if TIDE_ARDUINO_WIFI
static inline void set_microros_wifi_transports(const char *ssid, const char *password, IPAddress agent,
                                                uint16_t agent_port) {
  static WiFiUDP udp;
#if defined(BOARD_WITH_ESP_AT)
  ESP_AT_SERIAL_PORT.begin(ESP_AT_BAUDRATE);
  WiFi.init(ESP_AT_SERIAL_PORT, ESP_AT_RESET_PIN);
#endif
  WiFi.begin(ssid, password);
  while (WiFi.status() != WL_CONNECTED) delay(100);
  set_microros_udp_transport(udp, agent, agent_port);
}

/* The agent's address as a text: "192.168.1.57". */
static inline void set_microros_wifi_transports(const char *ssid, const char *password, const char *agent,
                                                uint16_t agent_port) {
  IPAddress address;
  (void)address.fromString(agent);
  set_microros_wifi_transports(ssid, password, address, agent_port);
}
#endif

/* ---- Ethernet of the board, with Arduino's Ethernet ---- */

#if defined(MICRO_ROS_TRANSPORT_ARDUINO_NATIVE_ETHERNET) || defined(ARDUINO_TEENSY41)
#include <NativeEthernet.h>
#define TIDE_ARDUINO_ETHERNET 1
#elif defined(TARGET_STM32F4)
#include <EthernetUdp.h>
#include <LwIP.h>
#include <STM32Ethernet.h>
#define TIDE_ARDUINO_ETHERNET 1
#elif defined(TARGET_PORTENTA_H7_M7)
#include <EthernetUdp.h>
#include <PortentaEthernet.h>
#define TIDE_ARDUINO_ETHERNET 1
#endif

#if TIDE_ARDUINO_ETHERNET
static inline void set_microros_native_ethernet_udp_transports(uint8_t mac[], IPAddress board, IPAddress agent,
                                                               uint16_t agent_port) {
  static EthernetUDP udp;
  Ethernet.begin(mac, board);
  while (Ethernet.linkStatus() == LinkOFF) delay(100);
  set_microros_udp_transport(udp, agent, agent_port);
}

/* The name of set_microros_native_ethernet_udp_transports in micro_ros_platformio. */
static inline void set_microros_native_ethernet_transports(uint8_t mac[], IPAddress board, IPAddress agent,
                                                           uint16_t agent_port) {
  set_microros_native_ethernet_udp_transports(mac, board, agent, agent_port);
}
#endif

/* ---- Ethernet of an ESP32 ---- */

#if defined(MICRO_ROS_TRANSPORT_ARDUINO_ETHERNET)
#include <ETH.h>
#include <WiFi.h>
#include <WiFiUdp.h>

typedef void (*ethernet_event_callback_t)(arduino_event_id_t event, void *event_info);

/* on_event receives network events; with ARDUINO_EVENT_ETH_GOT_IP event_info is the board's IPAddress. */
static inline void set_microros_ethernet_transports(IPAddress board, IPAddress gateway, IPAddress netmask,
                                                    IPAddress agent, uint16_t agent_port,
                                                    const char *hostname = nullptr,
                                                    ethernet_event_callback_t on_event = nullptr) {
  static WiFiUDP udp;
  static const char *name;
  static ethernet_event_callback_t hears;
  name = hostname;
  hears = on_event;
  WiFi.onEvent([](arduino_event_id_t event) {
    IPAddress own = ETH.localIP();
    if (event == ARDUINO_EVENT_ETH_START && name != nullptr) ETH.setHostname(name);
    if (hears != nullptr) hears(event, event == ARDUINO_EVENT_ETH_GOT_IP ? &own : nullptr);
  });
  ETH.begin();
  ETH.config(board, gateway, netmask);
  while (!ETH.linkUp()) delay(100);
  set_microros_udp_transport(udp, agent, agent_port);
}
#endif

#endif
