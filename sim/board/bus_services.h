// SPDX-License-Identifier: Apache-2.0
// Services in memory: who asks, agents or nodes, and who serves, with what identifies a request on its way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/middleware.h"

namespace tide::sim {

// Of each service one server: a node, or an agent for a board. Names are those of the services, without rq/ and
// Request.
class Services {
 public:
  using Payload = std::vector<uint8_t>;
  using Take = std::function<void(const Payload &payload)>;
  using Serve = std::function<void(const Payload &request, Take reply)>;
  // Calls `deliver` now or later, and keeps the order.
  using Carry = std::function<void(std::function<void()> deliver)>;

  // Of a node of the simulation; stays for good.
  void serve(const std::string &service, Serve serve) { entry(service).serve = std::move(serve); }
  void ask(const std::string &service, const Payload &request, Take reply);

  // Who sees what comes to ROS 2, at once; and how long it takes to an agent. Both stay for good.
  void watch_requests(const std::string &service, Take take) { entry(service).requests.push_back(std::move(take)); }
  void watch_replies(const std::string &service, Take take) { entry(service).replies.push_back(std::move(take)); }
  void carry_requests(const std::string &service, Carry carry) { entry(service).to_server = std::move(carry); }
  void carry_replies(const std::string &service, Carry carry) { entry(service).to_asker = std::move(carry); }

  // Replies of boards to what nobody has asked, or was answered before.
  uint64_t unasked_replies() const { return unasked_replies_; }

  std::unique_ptr<agent::Requester> create_requester(const agent::Service &service, agent::Wake wake);
  std::unique_ptr<agent::Replier> create_replier(const agent::Service &service, agent::Wake wake);

 private:
  friend class BusRequester;
  friend class BusReplier;
  struct Entry {
    Serve serve;
    class BusReplier *replier = nullptr;
    std::vector<class BusRequester *> requesters;
    std::vector<Take> requests, replies;
    Carry to_server, to_asker;
  };
  Entry &entry(const std::string &service) { return entries_[service]; }
  bool is_served(const std::string &service) { return entry(service).serve || entry(service).replier != nullptr; }
  void answer(const std::string &service, uint64_t number, const Payload &reply);

  std::map<std::string, Entry> entries_;
  std::map<uint64_t, Take> asked_;  // without a reply so far
  uint64_t last_ = 0, unasked_replies_ = 0;
};

}  // namespace tide::sim
