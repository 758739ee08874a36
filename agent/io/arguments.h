// SPDX-License-Identifier: Apache-2.0
// Words of the command line: rules that name clients, and hints for words that are not understood.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tide::agent {

// Where a message comes from.
struct Peer {
  uint32_t address = 0;  // IPv4, host order; serial lines: 0
  std::string device;    // of a serial line
};

// A rule that names clients: PLACE, KEY or KEY@PLACE. A place is an IPv4 address, a range of them (192.168.1.0/24) or
// the path of a serial device; a key is that of a client, in hexadecimal digits.
class Who {
 public:
  // Throws std::runtime_error with one line that says what is wrong with the rule. option: of the command line.
  static Who parse(const std::string &option, const std::string &rule);
  // No key: whether the rule names some client there.
  bool names(const Peer &peer, std::optional<uint32_t> key) const;
  const std::string &device() const { return device_; }  // empty: the rule names none

 private:
  std::optional<uint32_t> key_;
  std::string device_;  // empty: any address in the range
  uint32_t network_ = 0, mask_ = 0;
  bool any_place_ = false;
};

// Which clients are let in.
class AccessList {
 public:
  // Throws as Who::parse.
  void add(const std::string &rule) { rules_.push_back(Who::parse("--allow", rule)); }
  // Without rules everybody is let in. No key: whether some client there is.
  bool allows(const Peer &peer, std::optional<uint32_t> key) const;
  const std::vector<Who> &rules() const { return rules_; }

 private:
  std::vector<Who> rules_;
};

// words: the command line without the program. For the stock agent's "udp4 --port 8888", this agent's command "tide
// agent
// --udp 8888 --bind 0.0.0.0 --ros-network"; for canfd the reason why there is none; empty: no command of the stock
// agent.
std::string stock_command_in_our_words(const std::vector<std::string> &words);
// The option that was meant: a stock agent's, or one with a typing error; empty: none is close. known: all options.
std::string option_meant(const std::string &word, const std::vector<std::string> &known);

}  // namespace tide::agent
