// SPDX-License-Identifier: Apache-2.0
// Tells boards that ask the whole network where the agent is. No client is served here.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string>

#include "io/access.h"
#include "io/link.h"

namespace tide::agent {

// The address that a question is answered with, which came to `received_at` (0.0.0.0: not known); unset: none.
std::optional<in_addr> address_told(const in_addr &received_at, const sockaddr_in &from);

class DiscoveryLink : public Link {
 public:
  // address: of the interface on which questions are heard, 0.0.0.0 for all; port: of the group, 0: any; served: the
  // UDP port that answers name. Who may not come in gets no answer.
  DiscoveryLink(uint8_t number, Agent &agent, Poller &poller, const std::string &address, uint16_t port,
                uint16_t served, const AccessList &access);
  ~DiscoveryLink() override;

  uint16_t port() const { return port_; }
  std::string describe() const override;
  void event(const Poller::Event &event, Time now) override;
  void write(Endpoint, Time) override {}
  bool flush(Time) override { return false; }
  Peer peer(Endpoint) const override { return {}; }
  std::string name_of(Endpoint) const override { return describe(); }

 private:
  bool answer_next();
  void answer(const sockaddr_in &from, const in_addr &interface, uint16_t request);

  const AccessList &access_;
  int socket_;
  uint16_t port_, served_;
};

}  // namespace tide::agent
