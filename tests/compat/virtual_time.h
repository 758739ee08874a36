// SPDX-License-Identifier: Apache-2.0
// The world of a test: a machine in virtual time on which the test and its threads run. A seed determines everything.
// The seed of a repetition (--gtest_repeat) is the environment variable TIDE_SEED plus the number of the repetition. A
// failed test prints the command that replays it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "sim/engine/port.h"

namespace tide::compat::test {

using namespace std::chrono_literals;
using sim::Thread;
using sim::Time;

class AgentServer;

// A datagram link of the program, and the server at its other end.
struct Connection {
  Connection(sim::Machine &machine, tide_session_t &session, Time latency, uint64_t seed);
  void deliver(std::vector<uint8_t> datagram);

  sim::Random random;
  Time latency_most, last_up = 0, last_down = 0;  // times of the last datagrams, which later ones do not overtake
  AgentServer *server = nullptr;                  // null if there is none (any more)
  uint64_t endpoint = 0;
  size_t place = 0;  // index of its server in the world
  sim::Line up;
  sim::Link link;
};

class World {
 public:
  explicit World(uint64_t seed);
  static World &current();

  Time latency() { return random.between(1, latency_most_); }
  // Opens a port for a server and returns it. With the port of an earlier server, the clients of that one find the new
  // server; 0: a new port.
  uint16_t listen(AgentServer *server, uint16_t port = 0);
  void close(AgentServer *server);

  sim::Engine engine;
  sim::Random random;
  sim::Machine machine;
  uint64_t up_baud = 0;  // rate towards the agent on links that are opened later; 0: frames take no time
  Time wall_step = 0;    // step of the agent's wall clock

 private:
  sim::Link *open(tide_session_t &session, const tide_link_address_t &address);

  static constexpr uint16_t kFirstPort = 2019;
  Time latency_most_;
  std::vector<AgentServer *> servers_;  // by port
  std::vector<std::unique_ptr<Connection>> connections_;
  sim::Port port_;
};

inline Time now_ns() { return World::current().engine.now(); }
inline Time wall_ns() {
  return tide_port_platform()->wall_ns(tide_port_platform()->context) + World::current().wall_step;
}

inline void pass_time(std::chrono::nanoseconds duration) { sim::Port::current()->pause(duration.count()); }

// Waits until the condition holds; returns false if it does not hold in time.
inline bool eventually(const std::function<bool()> &condition, std::chrono::nanoseconds limit = 10s) {
  const Time end = now_ns() + limit.count();
  while (!condition()) {
    if (now_ns() > end) return false;
    pass_time(std::chrono::nanoseconds(World::current().random.between(10'000, 1'000'000)));
  }
  return true;
}

}  // namespace tide::compat::test
