// SPDX-License-Identifier: Apache-2.0
// The host: the real core of the agent at the far end of the line, with the latency of its serial adapter and system.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/agent.h"
#include "sim/board/bus.h"
#include "sim/board/plan.h"
#include "sim/engine/line.h"
#include "sim/engine/random.h"
#include "tide/framing.h"

namespace tide::sim {

class AgentHost {
 public:
  struct Manner {
    Time least = 0, most = 0;  // from the last byte on the line to the agent, uniform; frames keep their order
    Acknowledges acknowledges = Acknowledges::kAlways;
    Time heartbeat_delay = agent::kLineHeartbeatDelay;
  };

  AgentHost(Engine &engine, Bus &bus, Line &down, const Manner &manner, uint64_t seed);
  AgentHost(const AgentHost &) = delete;
  AgentHost &operator=(const AgentHost &) = delete;

  // A frame came over the line.
  void receive(const Line::Bytes &frame);
  // It dies, and a new one that knows nothing takes its place after `outage`.
  void restart(Time outage);

  // Called before the agent sees a message, and when it begins to send one.
  std::function<void(agent::Bytes message)> on_input, on_output;
  unsigned restarts() const { return restarts_; }

 private:
  void begin();
  Random &latencies_of(const Line::Bytes &frame);
  void input(const Line::Bytes &frame);
  void schedule(Time time);
  void pump();
  void send();
  bool next(std::vector<uint8_t> &message);
  void note_heartbeat(agent::Bytes message);
  bool is_unasked(agent::Bytes message);

  Engine &engine_;
  Bus &bus_;
  Line &down_;
  Manner manner_;
  const uint64_t seed_;
  // Each chain has its own latencies, which are the same whoever else sends. 0: what belongs to none.
  std::map<size_t, Random> latencies_;
  std::array<size_t, 256> senders_{};  // by stream: 1 + the chain whose sample it had last
  std::unique_ptr<agent::Agent> agent_;
  unsigned life_ = 0, restarts_ = 0;
  bool sending_ = false, pump_due_ = false;
  Time last_input_ = 0, next_poll_ = kForever;
  tide_framing_reader_t reader_{};
  std::vector<uint8_t> buffer_;
  std::vector<agent::Endpoint> ready_;
  std::array<bool, 256> asked_{};  // streams whose HEARTBEAT is to be answered
};

}  // namespace tide::sim
