// SPDX-License-Identifier: Apache-2.0
// The ROS 2 side: topics in memory, the agent's middleware on top of them, and nodes that answer.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/middleware.h"
#include "sim/board/bus_services.h"
#include "sim/engine/engine.h"
#include "sim/engine/random.h"

namespace tide::sim {

// Volatile topics: a sample reaches the subscriptions that exist when it is published.
class Bus : public agent::Middleware {
 public:
  using Payload = std::vector<uint8_t>;
  using Receive = std::function<void(const Payload &payload)>;

  std::unique_ptr<agent::Participant> create_participant(int domain, const std::string &name) override;

  // Of a node of the simulation; stays for good.
  void subscribe(const std::string &topic, Receive receive);
  // Returns how many readers of the agent got it.
  size_t publish(const std::string &topic, const Payload &payload);
  Services services;

 private:
  friend class BusParticipant;
  friend class BusReader;
  friend class BusWriter;
  std::map<std::string, std::vector<Receive>> subscriptions_;
  std::map<std::string, std::vector<class BusReader *>> readers_;
};

// An executor of ROS 2 nodes: its lanes take ready callbacks in some order, which the seed draws.
class HostExecutor {
 public:
  HostExecutor(Engine &engine, unsigned lanes, uint64_t seed);
  // body runs when the execution ends. Of one callback the oldest message is always first. alone: it does not overlap
  // itself.
  void add(const void *callback, Time execution, bool alone, std::function<void()> body);

 private:
  enum class Order { kOldest, kNewest, kAny };
  struct Ready {
    const void *callback;
    Time execution;
    bool alone;
    std::function<void()> body;
  };
  void begin();
  bool may_run(const Ready &one) const { return !one.alone || !running_.contains(one.callback); }

  Engine &engine_;
  unsigned free_lanes_;
  Random random_;
  Order order_;
  std::deque<Ready> ready_;
  std::set<const void *> running_;  // of those that do not overlap themselves
};

// A callback of a ROS 2 node: first come, first served, if it has a core of its own.
class HostCallback {
 public:
  // body runs when the execution ends. executor: it runs there; null: on a core of its own. server: that of several
  // chains of which it is a part; null: none.
  HostCallback(Engine &engine, Time execution, HostExecutor *executor, const void *server,
               std::function<void(const Bus::Payload &payload)> body)
      : engine_(engine), execution_(execution), executor_(executor), server_(server), body_(std::move(body)) {}
  void receive(const Bus::Payload &payload);

 private:
  Engine &engine_;
  Time execution_;
  HostExecutor *executor_;
  const void *server_;
  Time free_at_ = 0;
  std::function<void(const Bus::Payload &payload)> body_;
};

}  // namespace tide::sim
