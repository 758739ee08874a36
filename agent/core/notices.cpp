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

void Notices::event(const std::string &line, Time now) {
  if (!sink_) return;
  if (lines_.empty()) lines_since_ns_ = now;
  if (lines_.contains(line)) return;
  if (lines_.size() >= kEventLines) {
    more_lines_++;
    return;
  }
  lines_.insert(line);
  sink_(line);
}

Time Notices::poll(Time now) {
  Time next = TIDE_FOREVER;
  if (!lines_.empty() && now >= lines_since_ns_ + kPeriod) {
    if (more_lines_ != 0) {
      sink_(std::to_string(more_lines_) + " lines more in " + std::to_string((now - lines_since_ns_) / 1'000'000'000) +
            " s of clients that came, left or were refused something");
    }
    lines_.clear();
    more_lines_ = 0;
  }
  if (!lines_.empty()) next = lines_since_ns_ + kPeriod;
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
