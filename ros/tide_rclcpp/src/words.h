// SPDX-License-Identifier: Apache-2.0
// Words of a text, one after the other.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tide_rclcpp {

class Words {
 public:
  explicit Words(const std::string &text);
  bool empty() const { return next_ == words_.size(); }
  bool is(const std::string &word) const { return !empty() && words_[next_] == word; }
  // The next word is taken if it is this one.
  bool take(const std::string &word);
  // std::invalid_argument: there is none, or it is not one of those: `what` says what was expected.
  std::string word(const std::string &what);
  int number(const std::string &what, int least, int most);
  std::chrono::nanoseconds duration(const std::string &what);
  [[noreturn]] void refuse(const std::string &what) const;

 private:
  std::string text_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

std::string to_string(std::chrono::nanoseconds duration);
// "10ms"; nothing when it is none.
std::optional<std::chrono::nanoseconds> duration_of(const std::string &text);

}  // namespace tide_rclcpp
