// SPDX-License-Identifier: Apache-2.0
#include "core/diagnostic_array.h"

#include <array>
#include <charconv>

#include "tide/status.h"

namespace tide::agent {
namespace {}  // namespace

void DiagnosticArray::put_count(size_t position, uint32_t count) {
  for (unsigned octet = 0; octet < 4; octet++) bytes_[position + octet] = static_cast<uint8_t>(count >> 8 * octet);
}

void DiagnosticArray::begin(int64_t wall_clock_ns) {
  tide_cdr_writer(&cdr_, bytes_.data(), bytes_.size());
  tide_cdr_put_u32(&cdr_, static_cast<uint32_t>(wall_clock_ns / kSecond));
  tide_cdr_put_u32(&cdr_, static_cast<uint32_t>(wall_clock_ns % kSecond));
  put("");  // frame_id
  tide_cdr_align(&cdr_, sizeof(uint32_t));
  count_at_ = cdr_.position;
  tide_cdr_put_u32(&cdr_, 0);
  count_ = 0;
}

void DiagnosticArray::status(Level level, std::string_view name, std::string_view message, std::string_view hardware) {
  status_at_ = cdr_.position;
  tide_cdr_put_u8(&cdr_, static_cast<uint8_t>(level));
  put(name);
  put(message);
  put(hardware);
  tide_cdr_align(&cdr_, sizeof(uint32_t));
  values_at_ = cdr_.position;
  tide_cdr_put_u32(&cdr_, 0);
  values_ = 0;
}

void DiagnosticArray::value(std::string_view key, uint64_t value) {
  std::array<char, 24> text;
  const char *end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  this->value(key, std::string_view(text.data(), static_cast<size_t>(end - text.data())));
}

void DiagnosticArray::value(std::string_view key, std::string_view value) {
  put(key);
  put(value);
  values_++;
}

bool DiagnosticArray::end_status() {
  if (cdr_.status != TIDE_OK) {
    cdr_.status = TIDE_OK;
    cdr_.position = status_at_;
    return false;
  }
  put_count(values_at_, values_);
  count_++;
  return true;
}

Bytes DiagnosticArray::end() {
  put_count(count_at_, count_);
  return {bytes_.data(), cdr_.position};
}

}  // namespace tide::agent
