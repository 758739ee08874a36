// SPDX-License-Identifier: Apache-2.0
// What has come faster than it can be dealt with. A link takes everything out of the kernel, whose one queue for all
// clients would let seconds pass and then drop anything, and keeps it here: a line for each endpoint, served in turns,
// so that a client waits behind nobody's flood. What a line has no room for is lost by the one who floods: of the
// messages of best-effort streams the oldest, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "core/agent.h"

namespace tide::agent {

struct BacklogLimits {
  size_t messages = 16384;         // of an endpoint: what the agent deals with in about 30 ms
  size_t bytes = size_t{2} << 20;  // the same
  size_t total_bytes = size_t{32} << 20;
  size_t endpoints = 1024;
  size_t messages_a_turn = 64;  // of an endpoint
};

class Backlog {
 public:
  using Deliver = std::function<void(Endpoint endpoint, Bytes message)>;

  // deliver: in the order of arrival for each endpoint. Must not call this.
  explicit Backlog(Deliver deliver, const BacklogLimits &limits = {}) : deliver_(std::move(deliver)), limits_(limits) {}

  bool empty() const { return turns_.empty(); }
  // Keeps a copy. What may not be lost is delivered at once when there is no room, with what is before it.
  void push(Endpoint endpoint, Bytes message);
  // Delivers about so many messages.
  void serve(size_t messages);
  // How many were lost.
  uint64_t dropped() const { return dropped_; }

 private:
  struct Line {
    std::vector<uint8_t> bytes;  // messages, each after its length
    size_t first = 0, messages = 0;
    size_t used() const { return bytes.size() - first; }
  };

  Bytes front(const Line &line) const;
  void pop(Line &line);
  void make_room(Endpoint endpoint, Line &line, size_t length);

  Deliver deliver_;
  BacklogLimits limits_;
  std::unordered_map<Endpoint, Line> lines_;
  std::deque<Endpoint> turns_;  // those who have a line
  size_t total_bytes_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace tide::agent
