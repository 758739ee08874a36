// SPDX-License-Identifier: Apache-2.0
// TCP over IPv4: every message preceded by its length (u16, little-endian); one endpoint for each connection. A frame
// that becomes the most urgent waits for what was chosen before it and has not left: 16 KiB and a message here, 16 KiB
// in the kernel, and what is on its way to the peer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/link.h"

namespace tide::agent {

class TcpLink : public Link {
 public:
  TcpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port, size_t connections);
  ~TcpLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint endpoint, Time now) override;
  bool flush(Time now) override;

 private:
  struct Connection {
    int descriptor;
    std::vector<uint8_t> in, out;
    bool watches_writable = false;
  };

  void accept_connection();
  void receive(uint64_t number, Connection &connection, Time now);
  bool put_bytes(uint64_t number, Connection &connection);
  void close_connection(uint64_t number);

  int listener_;
  std::string address_;
  uint16_t port_;
  size_t connections_maximum_;
  std::map<uint64_t, Connection> connections_;
  uint64_t next_number_ = 1;
  bool sent_ = false;
};

}  // namespace tide::agent
