// SPDX-License-Identifier: Apache-2.0
// A sketch as users have it for micro-ROS: one call starts the network and names the agent.
#include <micro_ros_platformio.h>
#include <rclc/rclc.h>
#include <tide/options.h>

static_assert(TIDE_HEAP && !TIDE_DESKTOP, "sketches allocate, and have a board's memory");

rclc_support_t support;
rcl_allocator_t allocator;

#if defined(MICRO_ROS_TRANSPORT_ARDUINO_ETHERNET)
void on_event(arduino_event_id_t event, void *info) {
  if (event == ARDUINO_EVENT_ETH_GOT_IP) digitalWrite(LED_BUILTIN, info != nullptr ? HIGH : LOW);
}
#endif

void setup() {
  IPAddress board(192, 168, 1, 177), agent(192, 168, 1, 113), gateway(192, 168, 1, 1), netmask(255, 255, 255, 0);
#if defined(MICRO_ROS_TRANSPORT_ARDUINO_SERIAL)
  char address[] = "192.168.1.57", ssid[] = "network", password[] = "secret";
  set_microros_wifi_transports(ssid, password, address, 8888);
#elif defined(MICRO_ROS_TRANSPORT_ARDUINO_WIFI) || defined(MICRO_ROS_TRANSPORT_ARDUINO_WIFI_NINA)
  set_microros_wifi_transports("network", "secret", agent, 8888);
#elif defined(MICRO_ROS_TRANSPORT_ARDUINO_NATIVE_ETHERNET)
  uint8_t mac[] = {0xAA, 0xBB, 0xCC, 0xEE, 0xDD, 0xFF};
  set_microros_native_ethernet_transports(mac, board, agent, 8888);
  set_microros_native_ethernet_udp_transports(mac, board, agent, 8888);
#else
  set_microros_ethernet_transports(board, gateway, netmask, agent, 8888);
  set_microros_ethernet_transports(board, gateway, netmask, agent, 8888, "board", on_event);
#endif
  (void)board;
  (void)gateway;
  (void)netmask;
  allocator = rcl_get_default_allocator();
  (void)rclc_support_init(&support, 0, NULL, &allocator);
}

void loop() {}
