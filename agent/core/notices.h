// SPDX-License-Identifier: Apache-2.0
// What the user of the agent has to hear of: one line when a cause comes up, and while it goes on one line for each
// ten seconds with the count, however often it happens.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/limits.h"

namespace tide::agent {

class Notices {
 public:
  using Sink = std::function<void(const std::string &)>;
  explicit Notices(Sink sink) : sink_(std::move(sink)) {}

  // cause: a constant text, which also says what to do. who: of this occurrence.
  void tell(const char *cause, const std::string &who, Time now);
  // Tells what has been counted. Returns when to call again.
  Time poll(Time now);

 private:
  struct Told {
    uint64_t more = 0;  // since the last line
    Time since_ns = 0;
  };
  Sink sink_;
  std::map<std::string, Told> told_;
};

}  // namespace tide::agent
