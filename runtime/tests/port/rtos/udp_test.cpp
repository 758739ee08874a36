// SPDX-License-Identifier: Apache-2.0
// The datagram transports of runtime/port/zephyr and runtime/port/esp_idf, over IPv4 and IPv6, on sockets that record
// the agent's address.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "microros_transports.h"
#include "tide/port.h"
const tide_custom_transport_t *tide_rtos_transport(const tide_link_address_t *address);
}

namespace {

using Octets = std::vector<uint8_t>;
struct Socket {
  int family = 0;
  Octets agent;  // as given to connect
  bool refuses = false, open = false;
};
Socket *made;

// For each system: the numbers of the address families, and the offset of the address in a sockaddr_in and a
// sockaddr_in6.
struct System {
  const char *name;
  int ipv4, ipv6;
  size_t address4, address6;
};
const System kZephyr = {"Zephyr", 1, 2, 4, 4}, kLwip = {"lwIP", 2, 10, 4, 8};

int create(int family) {
  *made = {.family = family, .agent = {}, .refuses = made->refuses, .open = true};
  return 3;
}
int connect_to(const void *address, size_t bytes) {
  const auto *first = static_cast<const uint8_t *>(address);
  made->agent.assign(first, first + bytes);
  return made->refuses ? -1 : 0;
}
int close_it() {
  made->open = false;
  return 0;
}
int parse(bool is_6, const char *text, void *address) { return inet_pton(is_6 ? AF_INET6 : AF_INET, text, address); }

}  // namespace

// Functions of the fake systems. Addresses are compared as octets, because the structures of the systems differ.
extern "C" {
int zsock_socket(int family, int, int) { return create(family); }
int zsock_close(int) { return close_it(); }
int zsock_connect(int, const void *address, size_t bytes) { return connect_to(address, bytes); }
ssize_t zsock_send(int, const void *, size_t count, int) { return static_cast<ssize_t>(count); }
ssize_t zsock_recv(int, void *, size_t, int) { return -1; }
int zsock_poll(void *, int, int) { return 0; }
int zsock_inet_pton(int family, const char *text, void *address) {
  return parse(family == kZephyr.ipv6, text, address);
}
int32_t k_msleep(int32_t) { return 0; }

int esp_socket(int family, int, int) { return create(family); }
int esp_close(int) { return close_it(); }
int esp_connect(int, const void *address, uint32_t bytes) { return connect_to(address, bytes); }
ssize_t esp_send(int, const void *, size_t count, int) { return static_cast<ssize_t>(count); }
ssize_t esp_recv(int, void *, size_t, int) { return -1; }
struct esp_addrinfo {
  int flags, family, type, protocol;
  uint32_t bytes;
  void *address;
  char *name;
  esp_addrinfo *next;
};
int esp_getaddrinfo(const char *host, const char *, const esp_addrinfo *hints, esp_addrinfo **found) {
  static std::array<uint8_t, 28> address;
  static esp_addrinfo result;
  const bool is_6 = std::strchr(host, ':') != nullptr;
  const int family = is_6 ? kLwip.ipv6 : kLwip.ipv4;
  if (hints->family != 0 && hints->family != family) return -1;
  address = {};
  address[1] = static_cast<uint8_t>(family);
  result = {0, family, hints->type, 0, is_6 ? 28u : 16u, address.data(), nullptr, nullptr};
  *found = &result;
  return parse(is_6, host, &address[is_6 ? kLwip.address6 : kLwip.address4]) == 1 ? 0 : -1;
}
void esp_freeaddrinfo(esp_addrinfo *) {}
int64_t esp_timer_get_time() { return 0; }
void vTaskDelay(uint32_t) {}
int uart_param_config(int, const void *) { return 0; }
int uart_set_pin(int, int, int, int, int) { return 0; }
int uart_driver_install(int, int, int, int, void *, int) { return 0; }
int uart_driver_delete(int) { return 0; }
int uart_get_buffered_data_len(int, size_t *) { return 0; }
int uart_write_bytes(int, const void *, size_t) { return 0; }
int uart_read_bytes(int, void *, uint32_t, uint32_t) { return 0; }
}

namespace {

constexpr uint16_t kPort = 8888;

class Udp : public ::testing::Test {
 protected:
  Udp() { made = &socket; }
  // Compares the connected address with the host's.
  void expect_connected(const System &system, const std::string &host) const {
    const bool is_6 = host.find(':') != std::string::npos;
    Octets expected(is_6 ? 16 : 4), port = {kPort >> 8, kPort & 0xFF};
    ASSERT_EQ(parse(is_6, host.c_str(), expected.data()), 1);
    const auto first = socket.agent.begin() + static_cast<ptrdiff_t>(is_6 ? system.address6 : system.address4);
    ASSERT_GE(socket.agent.end() - first, static_cast<ptrdiff_t>(expected.size()));
    EXPECT_EQ(socket.family, is_6 ? system.ipv6 : system.ipv4);
    EXPECT_EQ(Octets(first, first + static_cast<ptrdiff_t>(expected.size())), expected) << system.name << " " << host;
    EXPECT_EQ(Octets(socket.agent.begin() + 2, socket.agent.begin() + 4), port);
  }
  static bool open_zephyr(const char *host) {
    default_params = {host, kPort};
    uxrCustomTransport transport{};
    transport.args = &default_params;
    return zephyr_transport_open(&transport);
  }
  static const tide_custom_transport_t *find_esp(const char *host) {
    tide_link_address_t address{};
    address.kind = TIDE_LINK_UDP;
    address.host = host;
    address.port = kPort;
    return tide_rtos_transport(&address);
  }
  Socket socket;
};

TEST_F(Udp, ReachesAnAgentOfEitherFamily) {
  for (const char *host : {"192.0.2.2", "2001:db8::2", "::1", "127.0.0.1"}) {
    ASSERT_TRUE(open_zephyr(host));
    expect_connected(kZephyr, host);
    const tide_custom_transport_t *transport = find_esp(host);
    ASSERT_NE(transport, nullptr);
    ASSERT_TRUE(transport->open(nullptr));
    expect_connected(kLwip, host);
  }
}

TEST_F(Udp, RefusesWhatIsNoAddressAndClosesWhatCannotConnect) {
  for (const char *host : {"192.0.2", "2001:db8::g", ""}) {
    EXPECT_FALSE(open_zephyr(host));
    EXPECT_EQ(find_esp(host), nullptr);
  }
  socket.refuses = true;
  EXPECT_FALSE(open_zephyr("2001:db8::2"));
  EXPECT_FALSE(socket.open);
  const tide_custom_transport_t *transport = find_esp("2001:db8::2");
  ASSERT_NE(transport, nullptr);
  EXPECT_FALSE(transport->open(nullptr));
  EXPECT_FALSE(socket.open);
}

}  // namespace
