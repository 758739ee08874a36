// SPDX-License-Identifier: Apache-2.0
// The command line: rules that select clients, and hints for unknown arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tide::agent {

using Address = std::array<uint8_t, 16>;  // an IPv6 address; an IPv4 address is stored as ::ffff:192.168.1.1

Address mapped(uint32_t ipv4);                            // host order
std::optional<uint32_t> ipv4_of(const Address &address);  // host order
std::optional<Address> parse_address(const std::string &text);
std::string text_of(const Address &address);

// Source of a message.
struct Peer {
  Address address{};   // all zeroes for a serial line
  std::string device;  // path of a serial line
};

// A rule that selects clients: PLACE, KEY or KEY@PLACE. PLACE is an IP address, an address range (192.168.1.0/24,
// fd00::/8) or the path of a serial device. KEY is the key of a client, in hexadecimal digits.
class Who {
 public:
  // Throws std::runtime_error with a one-line error message, which begins with the command-line option `option`.
  static Who parse(const std::string &option, const std::string &rule);
  // True if the rule selects the client with this key at the peer; without a key, true if it selects some client of the
  // peer.
  bool names(const Peer &peer, std::optional<uint32_t> key) const;
  const std::string &device() const { return device_; }  // empty if the rule names no device

 private:
  std::optional<uint32_t> key_;
  std::string device_;  // empty: the rule is about the addresses in network_
  Address network_{};
  unsigned bits_ = 0;  // length of the prefix network_
  bool any_place_ = false;
};

// The clients that are admitted.
class AccessList {
 public:
  // Throws like Who::parse.
  void add(const std::string &rule) { rules_.push_back(Who::parse("--allow", rule)); }
  // True if the client with this key at the peer is admitted; without a key, true if some client of the peer is. If
  // there are no rules, all clients are admitted.
  bool allows(const Peer &peer, std::optional<uint32_t> key) const;
  const std::vector<Who> &rules() const { return rules_; }

 private:
  std::vector<Who> rules_;
};

// Translates a command of the stock agent; `words` is the command line without the program. For "udp4 --port 8888" the
// result is "tide agent --udp 8888 --bind 0.0.0.0 --ros-network"; for canfd, the reason why there is no equivalent. The
// result is empty if `words` is no command of the stock agent.
std::string stock_command_in_our_words(const std::vector<std::string> &words);
// The option that was probably meant if `word` is an option of the stock agent or misspelt; empty if none is close.
// `known` lists all options of this agent.
std::string option_meant(const std::string &word, const std::vector<std::string> &known);

}  // namespace tide::agent
