// SPDX-License-Identifier: Apache-2.0
#include "core/notices.h"

#include <algorithm>

#include "tide/platform.h"

namespace tide::agent {
namespace {

constexpr Time kPeriod = 10'000'000'000;

}  // namespace

void Notices::tell(const char *cause, const std::string &who, Time now) {
  if (!sink_) return;
  const auto [place, first] = told_.try_emplace(cause);
  if (!first) {
    place->second.more++;
    return;
  }
  place->second.since_ns = now;
  sink_(who + ": " + cause);
}

Time Notices::poll(Time now) {
  Time next = TIDE_FOREVER;
  for (auto place = told_.begin(); place != told_.end();) {
    Told &told = place->second;
    if (now < told.since_ns + kPeriod) {
      next = std::min(next, told.since_ns + kPeriod);
      ++place;
    } else if (told.more == 0) {
      place = told_.erase(place);
    } else {
      sink_(std::to_string(told.more) + " times more in " + std::to_string((now - told.since_ns) / 1'000'000'000) +
            " s: " + place->first);
      told = {0, now};
      next = std::min(next, now + kPeriod);
      ++place;
    }
  }
  return next;
}

}  // namespace tide::agent
