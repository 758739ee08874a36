// SPDX-License-Identifier: Apache-2.0
// Who is let in: rules of the form PLACE, KEY or KEY@PLACE. A place is an IPv4 address, a range of them
// (192.168.1.0/24) or the path of a serial device; a key is that of a client, in hexadecimal digits.
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

class AccessList {
 public:
  // Throws std::runtime_error with one line that says what is wrong with the rule.
  void add(const std::string &rule);
  // Whether a rule lets it in; without rules everybody is. No key: whether any client could be there.
  bool allows(const Peer &peer, std::optional<uint32_t> key) const;
  // Paths of serial devices that rules name.
  std::vector<std::string> devices() const;

 private:
  struct Rule {
    std::optional<uint32_t> key;
    std::string device;  // empty: any address that fits
    uint32_t network = 0, mask = 0;
    bool any_place = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace tide::agent
