// SPDX-License-Identifier: Apache-2.0
// What the simulated world sees in a message that passes, and the first transmissions that it loses by plan.
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

// A run without loss by plan draws nothing; these keep the sources of chance apart.
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
  kSections
};
inline uint64_t seed_of(const Plan &plan, Chance chance) {
  return plan.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(chance);
}

struct Glance {
  tide_xrce_header_t header{};
  uint8_t submessage = 0xFF;  // the first one's id
};
Glance glance(agent::Bytes message);
// The stream of a message, or the one that a HEARTBEAT or ACKNACK is about.
uint8_t stream_of(agent::Bytes message, const Glance &seen);
// The timer whose instance the sample is that a message begins with, as far as its payload says so.
constexpr size_t kNoRoot = SIZE_MAX;
size_t root_of(agent::Bytes message, const Glance &seen);

enum class Way { kUp, kDown };

// Frames of reliable streams, their HEARTBEATs and ACKNACKs, of which each instance loses a limited number. Levels tell
// the timers of a board apart.
class InstanceLosses {
 public:
  InstanceLosses(const Plan &plan, const Graph &graph, int board);
  // A message begins to leave.
  void begin(Way way, agent::Bytes message);
  // The message that began last has left, so long after the first release: it does not arrive.
  bool lost(Way way, Time since_release);

 private:
  struct Budget {
    int64_t instance = -1;
    uint32_t left = 0;
  };
  const Plan &plan_;
  Random random_;
  static constexpr size_t kNoLevel = TIDE_LEVEL_MAXIMUM + 1;
  std::array<const CallbackPlan *, kNoLevel + 1> levels_{};  // what releases the instances of each level
  std::array<Budget, kNoLevel> budgets_;                     // by level
  std::array<size_t, 2> leaving_{};                          // level of the reliable message on the line, by way
};

// Which first transmissions of reliable samples get through: exactly the planned share of all periods, in random order.
class FirstLosses {
 public:
  explicit FirstLosses(const Plan &plan);
  // A message begins to leave.
  Glance begin(agent::Bytes message);
  // The message that began last has left, so long after the first release: it does not arrive.
  bool lost(Time since_release) const;

 private:
  const Plan &plan_;
  std::vector<std::vector<bool>> successes_;  // by chain and period
  std::vector<int64_t> sent_;                 // highest sequence number that left, by stream
  bool first_leaving_ = false;                // the message on the line goes for the first time
  size_t chain_ = 0;                          // it belongs to
};

}  // namespace tide::sim
