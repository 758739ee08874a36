// SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace tide_rclcpp {

Words::Words(const std::string &text) : text_(text) {
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words_.push_back(word);
}

bool Words::take(const std::string &word) {
  if (!is(word)) return false;
  next_++;
  return true;
}

void Words::refuse(const std::string &what) const {
  const std::string found = empty() ? "its end" : "'" + words_[next_] + "'";
  throw std::invalid_argument("'" + text_ + "': " + found + " is not " + what);
}

std::string Words::word(const std::string &what) {
  if (empty()) refuse(what);
  return words_[next_++];
}

int Words::number(const std::string &what, int least, int most) {
  if (!empty()) {
    std::istringstream stream(words_[next_]);
    int number = 0;
    if (stream >> number && stream.eof() && number >= least && number <= most) {
      next_++;
      return number;
    }
  }
  refuse(what + " (" + std::to_string(least) + " to " + std::to_string(most) + ")");
}

std::chrono::nanoseconds Words::duration(const std::string &what) {
  const auto duration = empty() ? std::nullopt : duration_of(words_[next_]);
  if (!duration.has_value()) refuse(what + ", as 10ms");
  next_++;
  return *duration;
}

// In the largest unit of which it is a whole number.
std::string to_string(std::chrono::nanoseconds duration) {
  const std::int64_t ns = duration.count();
  const std::pair<std::int64_t, const char *> units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
  for (const auto &[length_ns, unit] : units) {
    if (ns % length_ns == 0) return std::to_string(ns / length_ns) + unit;
  }
  return std::to_string(ns) + "ns";
}

std::optional<std::chrono::nanoseconds> duration_of(const std::string &text) {
  std::istringstream stream(text);
  double number = 0;
  std::string unit;
  if (!(stream >> number) || !(number > 0)) return std::nullopt;
  stream >> unit;
  const double factor = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  if (factor == 0 || number * factor > 9e18) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(number * factor));
}

}  // namespace tide_rclcpp
