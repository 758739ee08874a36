// SPDX-License-Identifier: Apache-2.0
// What the user of the agent has to hear of: one line when a cause comes up, and while it goes on one line for each
// ten seconds with the count, however often it happens. Clients that come, leave or are refused something have a line
// each, up to kEventLines different ones in ten seconds.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/limits.h"

namespace tide::agent {

class Notices {
 public:
  using Sink = std::function<void(const std::string &)>;
  explicit Notices(Sink sink) : sink_(std::move(sink)) {}

  // cause: a constant text, which also says what to do. who: of this occurrence.
  void tell(const char *cause, const std::string &who, Time now);
  // A line of its own, at most once in ten seconds.
  void event(const std::string &line, Time now);
  static constexpr size_t kEventLines = 64;
  // Tells what has been counted. Returns when to call again.
  Time poll(Time now);

 private:
  struct Told {
    uint64_t more = 0;  // since the last line
    Time since_ns = 0;
  };
  Sink sink_;
  std::map<std::string, Told> told_;
  std::set<std::string> lines_;  // of events since lines_since_ns_
  Time lines_since_ns_ = 0;
  uint64_t more_lines_ = 0;
};

}  // namespace tide::agent
