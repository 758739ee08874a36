// SPDX-License-Identifier: Apache-2.0
// UDP over IPv4: one socket, one endpoint for each source address. Frames leave in batches (see link_datagrams.h): one
// that becomes the most urgent waits for the batch under way, at most kFramesPerTurn frames for each endpoint. While
// the kernel takes no more, nothing is chosen. When more comes than one look at the socket brings, all of it is taken
// out of the kernel and waits in the agent (backlog.h).
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

#include "io/backlog.h"
#include "io/link.h"
#include "link_datagrams.h"

namespace tide::agent {

class UdpLink : public Link {
 public:
  UdpLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port);
  ~UdpLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint endpoint, Time now) override;
  bool flush(Time now) override;
  Peer peer(Endpoint endpoint) const override;
  std::string name_of(Endpoint endpoint) const override;
  Time deadline() const override { return backlog_.empty() ? TIDE_FOREVER : 0; }
  void turn(Time now) override;
  bool may_be_forged() const override { return true; }

 private:
  static void received(void *link, const uint8_t *bytes, size_t length, const sockaddr_in *from);
  Standing standing_of(Endpoint endpoint) const;
  void send();
  void go_on(Time now);

  int socket_;
  std::string address_;
  uint16_t port_;
  std::vector<uint8_t> in_storage_, out_storage_;
  tide_datagram_input_t in_{};
  tide_datagram_output_t out_{};
  Backlog backlog_;
  bool behind_ = false;                        // what comes waits behind what has come
  size_t turn_messages_ = 0, turn_bytes_ = 0;  // dealt with as they came
  std::vector<Endpoint> waiting_;              // have frames, and the kernel takes none
  Time now_ = 0;                               // of the call in progress
  bool sent_ = false;
};

}  // namespace tide::agent
