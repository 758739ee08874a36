// SPDX-License-Identifier: Apache-2.0
// What must hold in every run, whatever the line does to frames.
//
// In each step: no callback starts while a more urgent one is ready or a more urgent frame waits to be digested; no
// frame of a message starts while one of a more urgent level could go; the wire is never idle while one could go; each
// reader has the receive slots that are reserved for it, in its use or free, whatever comes in for others; and where
// there is memory for the fragments of each reader that gets some, each has one or finds one; and the same of
// the nodes of each level that publishes. For each chain, in both
// directions (and from its timer to a callback of the same process): nothing arrives that was not sent, nothing
// reliable is lost or doubled, and nothing overtakes. At the end: every message is delivered, and all nodes, slots and
// reassemblies are free again.
//
// Where the session began anew (the agent was restarted, or a long cut made the client connect again), reliable
// messages arrive at least once: first arrivals are in order, and answers that were under way may be lost. So may
// requests that waited in an agent that died for a board that serves.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/board/client.h"

namespace tide::sim {

class Checks {
 public:
  Checks(const Plan &plan, size_t chains);

  void callback_start(const tide_executor_t &executor, const tide_callback_t &callback, Time now);
  void frame_start(Client &client, const tide_frame_parts_t &frame, Time now);
  void step_end(Client &client, Time now);
  void published(size_t chain, uint32_t index) { ways_[chain].published.push_back(index); }
  void host_received(size_t chain, uint32_t index, bool session_renewed, Time now);
  void host_answered(size_t chain, uint32_t index) { ways_[chain].answered.push_back(index); }
  void acted(size_t chain, uint32_t index, bool session_renewed, Time now);
  // Of a chain that serves: the client has handed a reply over, and it has come to ROS 2.
  void replied(size_t chain, uint32_t index) { ways_[chain].replied.push_back(index); }
  void host_replied(size_t chain, uint32_t index) { ways_[chain].replies_seen.push_back(index); }
  void stranger(const char *where, Time now);
  void broken(size_t chain, const char *what, Time now);
  // Everything that is promised has come; false while something is under way.
  bool is_complete(Client &client, bool session_renewed) const;
  void at_end(Client &client, bool session_renewed, Time now);

  // Empty: all is well. The first few only.
  const std::vector<std::string> &violations() const { return violations_; }

 private:
  struct Way {
    bool reliable = false, reply_reliable = false;
    bool asks_board = false;
    std::vector<uint32_t> published, received, answered, acted, replied, replies_seen;
    std::vector<bool> seen_by_host, seen_by_client;
    int64_t last_received = -1, last_acted = -1;
  };
  void arrived(Way &way, std::vector<bool> &seen, int64_t &last, uint32_t index, bool renewed, const char *where,
               Time now);
  static std::string missing_in_pools(Client &client);
  void slots(const tide_receiver_t &receiver, Time now);
  void reassemblies(const tide_receiver_t &receiver, Time now);
  void nodes(const tide_transmitter_t &transmitter, Time now);
  void violate(Time now, const std::string &what);

  std::vector<Way> ways_;
  size_t known_to_fragments_ = 0;   // readers
  bool late_to_fragments_ = false;  // one of them became known when another one had more than one reassembly
  static constexpr size_t kNodeClasses = 4, kLevels = 128;
  using LevelSet = std::bitset<kLevels>;
  struct Levels {
    LevelSet known;     // that have used nodes of a class
    bool late = false;  // one of them became known when another one had more than one
  };
  std::array<Levels, kNodeClasses> levels_;
  bool tide_, budgets_ = false;
  std::vector<std::string> violations_;
};

}  // namespace tide::sim
