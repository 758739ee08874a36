// SPDX-License-Identifier: Apache-2.0
// TCP over IPv4: every message preceded by its length (u16, little-endian); one endpoint for each connection. A frame
// that becomes the most urgent waits for what was chosen before it and has not left: 16 KiB and a message here, 16 KiB
// in the kernel, and what is on its way to the peer. A connection that opens no session, or does not finish a message,
// is closed after some seconds; while all are taken, the one that has waited longest without a session gives way.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/link.h"

namespace tide::agent {

struct TcpLimits {
  size_t connections = 80;  // more than clients: who is new needs one to be let in
  size_t per_address = 80;
  Time session_wait_ns = 5'000'000'000;  // after the last whole message, without a session
  Time message_wait_ns = 5'000'000'000;  // from the first octet of a message to the last
};

class TcpLink : public Link {
 public:
  TcpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
          const TcpLimits &limits = {});
  ~TcpLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint endpoint, Time now) override;
  bool flush(Time now) override;
  Time deadline() const override { return next_check_ns_; }
  Peer peer(Endpoint endpoint) const override;
  std::string name_of(Endpoint endpoint) const override;

 private:
  struct Connection {
    int descriptor = -1;
    uint32_t address = 0;
    Time heard_ns = 0;  // the last whole message, or its beginning
    Time half_ns = 0;   // since when a message is unfinished; 0: none is
    std::vector<uint8_t> in{}, out{};
    bool watches_writable = false;
  };

  void accept_connection(Time now);
  const char *reason_to_refuse(uint32_t address, Time now);
  bool make_room(std::optional<uint32_t> address, Time now);
  void check(Time now);
  void pause(Time now);
  void receive(uint64_t number, Connection &connection, Time now);
  bool put_bytes(uint64_t number, Connection &connection);
  void close_connection(uint64_t number);

  int listener_;
  std::string address_;
  uint16_t port_;
  TcpLimits limits_;
  Time next_check_ns_ = TIDE_FOREVER;
  bool paused_ = false;  // no descriptor is left: nothing is accepted until the next check
  std::map<uint64_t, Connection> connections_;
  uint64_t next_number_ = 1;
  bool sent_ = false;
};

}  // namespace tide::agent
