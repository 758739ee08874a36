// SPDX-License-Identifier: Apache-2.0
// Losses that the plan demands, and the inspection of passing messages that they need.
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

// Each use of random numbers has its own source, so that a change of one use leaves the numbers of all others
// unchanged.
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
  kNodes,
  kLoads
};
inline uint64_t seed_of(const Plan &plan, Chance chance) {
  return plan.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(chance);
}

struct Glance {
  tide_xrce_header_t header{};
  uint8_t submessage = 0xFF;  // id of the first submessage
};
Glance glance(agent::Bytes message);
// The stream of a message; for a HEARTBEAT or ACKNACK, the stream to which it refers.
uint8_t stream_of(agent::Bytes message, const Glance &seen);
// Number of the timer or event (Graph::roots) in the mark of the message's first sample; kNoRoot if there is none.
constexpr size_t kNoRoot = SIZE_MAX;
size_t root_of(agent::Bytes message, const Glance &seen);

enum class Way { kUp, kDown };

// Loses a limited number of frames of each instance: frames of reliable streams, HEARTBEATs and ACKNACKs. A frame is
// attributed to an instance by its level, so each level may have only one timer.
class InstanceLosses {
 public:
  InstanceLosses(const Plan &plan, const Graph &graph, int board);
  // Call this when the transmission of a message begins.
  void begin(Way way, agent::Bytes message);
  // Call this when the message of the last begin() was sent, with the time since the first release. True: it is lost.
  bool lost(Way way, Time since_release);
  // The same for a datagram of this level, from its level alone.
  bool lost(size_t level, Time since_release);

 private:
  struct Budget {
    int64_t instance = -1;
    uint32_t left = 0;
  };
  const Plan &plan_;
  Random random_;
  static constexpr size_t kNoLevel = TIDE_LEVEL_MAXIMUM + 1;
  std::array<const CallbackPlan *, kNoLevel + 1> levels_{};  // by level: the callback whose timer or events begin the
                                                             // instances
  std::array<Budget, kNoLevel> budgets_;                     // by level
  std::array<size_t, 2> leaving_{};                          // by direction: level of the reliable message that is
                                                             // being sent
};

// Determines which first transmissions of reliable samples succeed. The planned share of all periods succeeds exactly;
// random is only in which periods.
class FirstLosses {
 public:
  explicit FirstLosses(const Plan &plan);
  // Call this when the transmission of a message begins.
  Glance begin(agent::Bytes message);
  // Call this when the message of the last begin() was sent, with the time since the first release. True: it is lost.
  bool lost(Time since_release) const;

 private:
  const Plan &plan_;
  std::vector<std::vector<bool>> successes_;  // by chain and period
  std::vector<int64_t> sent_;                 // highest sequence number sent, by stream
  bool first_leaving_ = false;                // true if the message that is being sent is a first transmission
  size_t chain_ = 0;                          // chain of the message that is being sent
};

}  // namespace tide::sim
