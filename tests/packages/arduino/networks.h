/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of those names of Arduino's network libraries that the library uses. */
#pragma once

#include <Udp.h>

enum { WL_CONNECTED = 3 };
enum { LinkOFF = 2 };
typedef enum { ARDUINO_EVENT_ETH_START, ARDUINO_EVENT_ETH_GOT_IP } arduino_event_id_t;

class NetworkUDP : public UDP {
 public:
  uint8_t begin(uint16_t port) override;
  void stop() override;
  int beginPacket(IPAddress address, uint16_t port) override;
  int endPacket() override;
  int parsePacket() override;
  int read(uint8_t *bytes, size_t count) override;
  size_t write(const uint8_t *bytes, size_t count) override;
  int available() override;
  int read() override;
};
class WiFiUDP : public NetworkUDP {};
class EthernetUDP : public NetworkUDP {};

struct WiFiNames {
  void init(Stream &serial, int reset_pin);
  int begin(const char *ssid, const char *password);
  int status();
  void onEvent(void (*hears)(arduino_event_id_t event));
};
extern WiFiNames WiFi;

struct EthernetNames {
  int begin(uint8_t *mac, IPAddress board);
  int linkStatus();
};
extern EthernetNames Ethernet;

struct EthNames {
  bool begin();
  bool config(IPAddress board, IPAddress gateway, IPAddress netmask);
  bool linkUp();
  bool setHostname(const char *name);
  IPAddress localIP();
};
extern EthNames ETH;
