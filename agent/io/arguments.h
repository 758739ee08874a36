// SPDX-License-Identifier: Apache-2.0
// Command line: rules that name clients, and hints for unknown arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tide::agent {

// Source of a message.
struct Peer {
  uint32_t address = 0;  // IPv4, host order; serial lines: 0
  std::string device;    // of a serial line
};

// A rule that names clients: PLACE, KEY or KEY@PLACE. A place is an IPv4 address, an address range (192.168.1.0/24) or
// the path of a serial device; a key is a client's, in hexadecimal digits.
class Who {
 public:
  // Throws std::runtime_error with one line about the error. option: name of the command-line option.
  static Who parse(const std::string &option, const std::string &rule);
  // No key: whether the rule names any client of the peer.
  bool names(const Peer &peer, std::optional<uint32_t> key) const;
  const std::string &device() const { return device_; }  // empty: the rule names none

 private:
  std::optional<uint32_t> key_;
  std::string device_;  // empty: any address in the range
  uint32_t network_ = 0, mask_ = 0;
  bool any_place_ = false;
};

// Which clients are admitted.
class AccessList {
 public:
  // Throws as Who::parse.
  void add(const std::string &rule) { rules_.push_back(Who::parse("--allow", rule)); }
  // Without rules all are admitted. Without a key: whether any client of the peer is admitted.
  bool allows(const Peer &peer, std::optional<uint32_t> key) const;
  const std::vector<Who> &rules() const { return rules_; }

 private:
  std::vector<Who> rules_;
};

// words: the command line without the program. The equivalent of a stock agent's command: for "udp4 --port 8888", "tide
// agent --udp 8888 --bind 0.0.0.0 --ros-network"; for canfd the reason why there is none; empty: not a command of the
// stock agent.
std::string stock_command_in_our_words(const std::vector<std::string> &words);
// The option that was probably intended by a stock agent's option or a typing error; empty: none is close. known: all
// options.
std::string option_meant(const std::string &word, const std::vector<std::string> &known);

}  // namespace tide::agent
