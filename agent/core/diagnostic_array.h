// SPDX-License-Identifier: Apache-2.0
// A diagnostic_msgs/msg/DiagnosticArray, serialised as it is put together, in memory that is taken once. A status that
// has no room any more is left out as a whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/alarm.h"
#include "core/limits.h"
#include "core/middleware.h"
#include "tide/cdr.h"

namespace tide::agent {

class DiagnosticArray {
 public:
  // One datagram takes it.
  static constexpr size_t kBytesMaximum = 60'000;

  void begin(int64_t wall_clock_ns);
  void status(Level level, std::string_view name, std::string_view message, std::string_view hardware);
  // Of the last status.
  void value(std::string_view key, uint64_t value);
  void value(std::string_view key, std::string_view value);
  // The last status is whole. False: it had no room and is not there.
  bool end_status();
  // What is there now, until the next begin.
  Bytes end();

 private:
  void put(std::string_view text) { tide_cdr_put_string(&cdr_, text.data(), text.size()); }
  void put_count(size_t position, uint32_t count);

  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kBytesMaximum);
  tide_cdr_t cdr_{};
  size_t count_at_ = 0, status_at_ = 0, values_at_ = 0;
  uint32_t count_ = 0, values_ = 0;
};

}  // namespace tide::agent
