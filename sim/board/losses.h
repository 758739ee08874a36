// SPDX-License-Identifier: Apache-2.0
// The simulated world's view of a passing message, and the first transmissions that are lost by plan.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/agent.h"
#include "sim/board/plan.h"
#include "sim/engine/random.h"
#include "tide/priority.h"
#include "tide/xrce.h"

namespace tide::sim {

// Each kind of loss draws from a random source of its own, so that a change of one kind leaves the others unchanged.
enum class Chance : uint64_t {
  kUp = 1,
  kDown,
  kLatency,
  kDraw,
  kIncidents,
  kInstances,
  kHosts,
  kReturn,
  kReleases,
  kSections,
  kNodes
};
inline uint64_t seed_of(const Plan &plan, Chance chance) {
  return plan.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(chance);
}

struct Glance {
  tide_xrce_header_t header{};
  uint8_t submessage = 0xFF;  // id of the first submessage
};
Glance glance(agent::Bytes message);
// The stream of a message, or the stream to which a HEARTBEAT or ACKNACK refers.
uint8_t stream_of(agent::Bytes message, const Glance &seen);
// The timer of the first sample in a message, if its payload identifies it.
constexpr size_t kNoRoot = SIZE_MAX;
size_t root_of(agent::Bytes message, const Glance &seen);

enum class Way { kUp, kDown };

// Loses a limited number of frames of each instance: frames of reliable streams, and their HEARTBEATs and ACKNACKs. The
// timers of a board are told apart by their levels.
class InstanceLosses {
 public:
  InstanceLosses(const Plan &plan, const Graph &graph, int board);
  // Call this when a message begins to be sent.
  void begin(Way way, agent::Bytes message);
  // Call this when the message begun last was sent, with the time since the first release; returns true if it is lost.
  bool lost(Way way, Time since_release);

 private:
  struct Budget {
    int64_t instance = -1;
    uint32_t left = 0;
  };
  const Plan &plan_;
  Random random_;
  static constexpr size_t kNoLevel = TIDE_LEVEL_MAXIMUM + 1;
  std::array<const CallbackPlan *, kNoLevel + 1> levels_{};  // the callbacks that release the instances, by level
  std::array<Budget, kNoLevel> budgets_;                     // by level
  std::array<size_t, 2> leaving_{};                          // level of the reliable message on the line, by direction
};

// Selects which first transmissions of reliable samples succeed: exactly the planned share of all periods, in random
// order.
class FirstLosses {
 public:
  explicit FirstLosses(const Plan &plan);
  // Call this when a message begins to be sent.
  Glance begin(agent::Bytes message);
  // Call this when the message begun last was sent, with the time since the first release; returns true if it is lost.
  bool lost(Time since_release) const;

 private:
  const Plan &plan_;
  std::vector<std::vector<bool>> successes_;  // by chain and period
  std::vector<int64_t> sent_;                 // highest sequence number sent, by stream
  bool first_leaving_ = false;                // true if the message on the line is sent for the first time
  size_t chain_ = 0;                          // its chain
};

}  // namespace tide::sim
