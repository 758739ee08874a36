// SPDX-License-Identifier: Apache-2.0
// Levels that do not flicker. What went wrong in one of the last ten periods is a warning; what went wrong in eight of
// them is an error, until it is four.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tide::agent {

enum class Level : uint8_t { kOk = 0, kWarning = 1, kError = 2 };  // as diagnostic_msgs/DiagnosticStatus has them

// Of a count that should stand still.
class CountAlarm {
 public:
  // total: as it is at the end of a period.
  void update(uint64_t total) {
    history_ = static_cast<uint16_t>((history_ << 1u | (total != total_ ? 1u : 0u)) & kMask);
    recent_ = recent_ - ring_[place_] + (total - total_);
    ring_[place_] = total - total_;
    place_ = (place_ + 1) % kPeriods;
    total_ = total;
    const int bad = std::popcount(history_);
    failing_ = bad >= (failing_ ? kStay : kRaise);
  }
  Level level() const {
    if (failing_) return Level::kError;
    return history_ == 0 ? Level::kOk : Level::kWarning;
  }
  uint64_t recent() const { return recent_; }  // of the last ten periods

  static constexpr size_t kPeriods = 10;

 private:
  static constexpr uint16_t kMask = (1u << kPeriods) - 1;
  static constexpr int kRaise = 8, kStay = 5;

  uint64_t total_ = 0, recent_ = 0;
  uint64_t ring_[kPeriods]{};
  size_t place_ = 0;
  uint16_t history_ = 0;
  bool failing_ = false;
};

// Of what fills up: a warning from 80 % on until it is below 60 %, an error from 95 % on until it is below 80 %.
class FillAlarm {
 public:
  void update(size_t used, size_t all) {
    const size_t percent = all == 0 ? 0 : 100 * used / all;
    const bool error = percent >= (level_ == Level::kError ? 80u : 95u);
    const bool warning = percent >= (level_ == Level::kOk ? 80u : 60u);
    level_ = error ? Level::kError : warning ? Level::kWarning : Level::kOk;
  }
  Level level() const { return level_; }

 private:
  Level level_ = Level::kOk;
};

}  // namespace tide::agent
