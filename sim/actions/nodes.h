// SPDX-License-Identifier: Apache-2.0
// The ROS 2 side: a server and a client of actions, and of services. The server executes a goal once, however often it
// comes. Of one that it knows already it says that it is accepted, as a board does; a strict one refuses it, as servers
// of rclcpp and rclpy do. The client asks again for what the agent took with it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/actions/ledger.h"
#include "sim/board/bus.h"

namespace tide::sim {

class Nodes {
 public:
  using Payload = Bus::Payload;
  using GoalId = std::array<uint8_t, 16>;

  Nodes(Engine &engine, Bus &bus, Ledger &ledger, bool strict, uint64_t seed);
  Nodes(const Nodes &) = delete;
  Nodes &operator=(const Nodes &) = delete;

  void send_goal(int32_t number);
  void ask(int32_t number);
  // Goals and results without an answer so far are asked for again; the answer to the first question may come, too.
  void ask_again();
  // Of requests that have no answer so far.
  void give_up();

 private:
  struct Known {
    int32_t number = 0;
    bool ended = false;
    std::vector<Services::Take> askers;
  };
  void serve_goals();
  void serve_requests();
  void take_goal(const Payload &request, const Services::Take &reply);
  void tell_result(const Payload &request, const Services::Take &reply);
  void end(const GoalId &id);
  void ask_goal(int32_t number);
  void ask_result(int32_t number);
  void soon(std::function<void()> action) { engine_.after(random_.between(0, kLatencyMost), std::move(action)); }
  static constexpr Time kLatencyMost = 5 * kMillisecond;

  Engine &engine_;
  Bus &bus_;
  Ledger &ledger_;
  const bool strict_;
  Random random_;
  std::map<GoalId, Known> known_;
};

}  // namespace tide::sim
