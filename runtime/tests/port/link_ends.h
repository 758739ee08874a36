// SPDX-License-Identifier: Apache-2.0
// Common parts of the tests of links: messages and frames, addresses, and the far ends of serial, UDP, TCP and custom
// links.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "eventually.h"
#include "fake_daemon.h"
#include "link_datagrams.h"

inline Bytes random_message(std::mt19937_64 &random, size_t length) {
  Bytes message(length);
  for (auto &byte : message) byte = static_cast<uint8_t>(random());
  return message;
}

inline std::vector<Bytes> random_messages(uint64_t seed, size_t count, size_t most_bytes) {
  std::mt19937_64 random(seed);
  std::vector<Bytes> messages(count);
  for (auto &message : messages) message = random_message(random, 1 + random() % most_bytes);
  return messages;
}

inline Bytes frame_of(const Bytes &message, uint8_t source, uint8_t destination) {
  Bytes frame(TIDE_FRAMING_WORST_BYTES(message.size()));
  const int length = tide_framing_encode(frame.data(), frame.size(), source, destination, message.data(),
                                         message.size(), message.data(), 0);
  frame.resize(static_cast<size_t>(length));
  return frame;
}

inline Bytes frames_of(const std::vector<Bytes> &messages, uint8_t source = 1, uint8_t destination = 0) {
  Bytes all;
  for (const Bytes &message : messages) {
    const Bytes frame = frame_of(message, source, destination);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  return all;
}

inline tide_link_address_t serial(const std::string &path, uint32_t baud = 115200) {
  tide_link_address_t address{};
  address.kind = TIDE_LINK_SERIAL;
  address.device = path.c_str();
  address.baud = baud;
  return address;
}

inline tide_link_address_t internet(tide_link_kind_t kind, uint16_t port, int family = AF_INET) {
  tide_link_address_t address{};
  address.kind = kind;
  address.host = family == AF_INET6 ? "::1" : "127.0.0.1";
  address.port = port;
  return address;
}

struct Descriptor {
  explicit Descriptor(int opened = -1) : number(opened) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    close();
    number = std::exchange(other.number, -1);
    return *this;
  }
  void close() {
    if (number >= 0) ::close(number);
    number = -1;
  }
  int number;
};

inline Bytes read_some(const Descriptor &from, size_t wanted, int silence_ms = 2000) {
  Bytes bytes;
  std::array<uint8_t, 4096> part;
  pollfd wait{from.number, POLLIN, 0};
  while (bytes.size() < wanted && poll(&wait, 1, silence_ms) > 0) {
    const ssize_t count = read(from.number, part.data(), std::min(part.size(), wanted - bytes.size()));
    if (count <= 0) break;
    bytes.insert(bytes.end(), part.begin(), part.begin() + count);
  }
  return bytes;
}

// The far end of a cable that ends here.
struct PseudoTerminal {
  PseudoTerminal() : master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(grantpt(master.number), 0);
    EXPECT_EQ(unlockpt(master.number), 0);
    path = ptsname(master.number);
  }
  Descriptor master;
  std::string path;
};

struct Server {
  explicit Server(int type, uint16_t wanted = 0, int family = AF_INET)
      : socket(::socket(family, type | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    tide_socket_address_t address{};
    address.any.sa_family = static_cast<sa_family_t>(family);
    address.v6.sin6_port = htons(wanted); /* the port is at the same offset in both address families */
    if (family == AF_INET6) {
      address.v6.sin6_addr = IN6ADDR_LOOPBACK_INIT;
    } else {
      address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    EXPECT_EQ(bind(socket.number, &address.any, tide_socket_address_bytes(&address)), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(listen(socket.number, 8), 0);
    }
    socklen_t length = sizeof address;
    getsockname(socket.number, &address.any, &length);
    port = ntohs(address.v6.sin6_port);
  }
  Bytes take(tide_socket_address_t *from = nullptr) {
    Bytes message(70000);
    if (!tide::test::eventually([this] { return has_some(); })) return {};
    socklen_t length = sizeof(tide_socket_address_t);
    const ssize_t count = recvfrom(socket.number, message.data(), message.size(), 0,
                                   from == nullptr ? nullptr : &from->any, from == nullptr ? nullptr : &length);
    message.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return message;
  }
  bool has_some() const {
    pollfd wait{socket.number, POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
  }
  void give(const Bytes &message, const tide_socket_address_t &to) {
    EXPECT_EQ(sendto(socket.number, message.data(), message.size(), 0, &to.any, tide_socket_address_bytes(&to)),
              static_cast<ssize_t>(message.size()));
  }
  Descriptor socket;
  uint16_t port;
};

// A program's transport, which the test controls.
struct Transport {
  bool opens = true, is_open = false, stuck = false;
  size_t takes_at_once = SIZE_MAX;
  std::vector<Bytes> written;
  std::deque<Bytes> arriving;
  int longest_timeout_ms = 0, timeouts = 0;
  bool can_wake = false;
  std::atomic<int> wakes = 0;
  std::atomic<int> inside = 0, collisions = 0;

  tide_custom_transport_t functions(bool framed) { return {this, framed, open, close, write, read, wake}; }
  struct Guard {
    explicit Guard(Transport &owner) : transport(owner) {
      if (transport.inside++ != 0) transport.collisions++;
    }
    ~Guard() { transport.inside--; }
    Transport &transport;
  };
  static bool open(void *context) { return static_cast<Transport *>(context)->is_open = at(context).opens; }
  static bool close(void *context) {
    at(context).is_open = false;
    return true;
  }
  static size_t write(void *context, const uint8_t *bytes, size_t count, uint8_t *error) {
    const Guard guard(at(context));
    *error = at(context).stuck ? 1 : 0;
    if (at(context).stuck) return 0;
    count = std::min(count, at(context).takes_at_once);
    at(context).written.emplace_back(bytes, bytes + count);
    return count;
  }
  static size_t read(void *context, uint8_t *bytes, size_t count, int timeout_ms, uint8_t *) {
    const Guard guard(at(context));
    Transport &transport = at(context);
    transport.longest_timeout_ms = std::max(transport.longest_timeout_ms, timeout_ms);
    if (transport.arriving.empty()) {
      transport.timeouts++;
      transport.sleep(timeout_ms);
      return 0;
    }
    Bytes &first = transport.arriving.front();
    const size_t taken = std::min(count, first.size());
    std::copy_n(first.begin(), taken, bytes);
    transport.arriving.pop_front();
    return taken;
  }
  static bool wake(void *context) {
    Transport &transport = at(context);
    if (!transport.can_wake) return false;
    const std::lock_guard lock(transport.mutex);
    transport.woken = true;
    transport.wakes++;
    transport.changed.notify_all();
    return true;
  }
  void sleep(int timeout_ms) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return woken; });
    woken = false;
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;
  static Transport &at(void *context) { return *static_cast<Transport *>(context); }
  Bytes stream() const {
    Bytes all;
    for (const auto &piece : written) all.insert(all.end(), piece.begin(), piece.end());
    return all;
  }
};
