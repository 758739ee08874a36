// SPDX-License-Identifier: Apache-2.0
// Who is let in, and whom an option is for: rules of the form PLACE, KEY or KEY@PLACE. A place is an IPv4 address, a
// range of them (192.168.1.0/24) or the path of a serial device; a key is that of a client, in hexadecimal digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tide::agent {

// Where a message comes from.
struct Peer {
  uint32_t address = 0;  // IPv4, host order; of a serial line 0
  std::string device;    // of a serial line
};

// One rule of whom it names.
class Who {
 public:
  // Throws std::runtime_error with one line that says what is wrong with the rule. option: of the command line.
  static Who parse(const std::string &option, const std::string &rule);
  // No key: whether it names any client that could be there.
  bool names(const Peer &peer, std::optional<uint32_t> key) const;
  const std::string &device() const { return device_; }  // empty: none is named

 private:
  std::optional<uint32_t> key_;
  std::string device_;  // empty: any address that fits
  uint32_t network_ = 0, mask_ = 0;
  bool any_place_ = false;
};

class AccessList {
 public:
  // As Who::parse.
  void add(const std::string &rule) { rules_.push_back(Who::parse("--allow", rule)); }
  // Whether a rule lets it in; without rules everybody is. No key: whether any client could be there.
  bool allows(const Peer &peer, std::optional<uint32_t> key) const;
  // Paths of serial devices that rules name.
  std::vector<std::string> devices() const;

 private:
  std::vector<Who> rules_;
};

}  // namespace tide::agent
