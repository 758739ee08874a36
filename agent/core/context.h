// SPDX-License-Identifier: Apache-2.0
// What all clients of an agent share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/definition.h"
#include "core/domains.h"
#include "core/entity.h"
#include "core/limits.h"
#include "core/middleware.h"
#include "core/signals.h"
#include "core/tracer.h"

namespace tide::agent {

using Endpoint = uint64_t;  // where a client is: chosen by the side that does I/O
using Host = uint64_t;      // what it runs on, the same when it has been restarted: chosen by that side too

struct Context {
  Middleware &middleware;
  const Limits &limits;
  const Profiles &profiles;
  std::shared_ptr<SignalQueue> signals;
  std::function<int64_t()> wall_clock_ns;
  std::optional<int> domain;  // instead of what clients ask for
  int default_domain = 0;     // for those that ask for 0
  std::function<void(const std::string &)> log;
  std::function<void(uint32_t key, const std::string &, Time now)> event;  // of a client, for the user; unset: silence
  std::function<Time(Endpoint)> heartbeat_delay_ns;
  Tracer *tracer = nullptr;
  uint32_t next_epoch = 1;
  uint64_t next_entity = 1;
  Domains domains = {};
  std::map<std::pair<int, std::string>, std::weak_ptr<Release>> releases = {};  // by domain and topic of the requests
};

}  // namespace tide::agent
