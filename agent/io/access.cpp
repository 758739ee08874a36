// SPDX-License-Identifier: Apache-2.0
#include "io/access.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace tide::agent {
namespace {

std::optional<uint32_t> key_of(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  uint32_t key = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key, 16);
  const bool whole = error == std::errc{} && end == text.data() + text.size() && text.size() <= 8;
  return whole && key != 0 ? std::optional(key) : std::nullopt;
}

}  // namespace

Who Who::parse(const std::string &option, const std::string &rule) {
  const auto fail = [&](const std::string &why) { throw std::runtime_error(option + " " + rule + ": " + why); };
  Who result;
  std::string place = rule;
  const size_t at = rule.find('@');
  if (at != std::string::npos) {
    result.key_ = key_of(std::string_view(rule).substr(0, at));
    if (!result.key_) fail("before @ a client's key is needed, 1 to 8 hexadecimal digits and not 0");
    place = rule.substr(at + 1);
  } else if (rule.find_first_of("./") == std::string::npos) {
    result.key_ = key_of(rule);
    if (!result.key_) fail("is neither an address (192.168.1.0/24), a device (/dev/ttyUSB0) nor a key (0A0B0C0D)");
    result.any_place_ = true;
    return result;
  }
  if (place.starts_with('/')) {
    result.device_ = place;
    return result;
  }
  const size_t slash = place.find('/');
  unsigned bits = 32;
  if (slash != std::string::npos) {
    const std::string_view text = std::string_view(place).substr(slash + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
    if (error != std::errc{} || end != text.data() + text.size() || bits > 32) {
      fail("after / a number of bits from 0 to 32 is needed");
    }
  }
  in_addr address{};
  if (inet_pton(AF_INET, place.substr(0, slash).c_str(), &address) != 1) {
    fail("'" + place.substr(0, slash) + "' is not an IPv4 address");
  }
  result.mask_ = bits == 0 ? 0 : ~uint32_t{0} << (32 - bits);
  result.network_ = ntohl(address.s_addr);
  if ((result.network_ & ~result.mask_) != 0) fail("the address has bits beyond the first " + std::to_string(bits));
  return result;
}

bool Who::names(const Peer &peer, std::optional<uint32_t> key) const {
  if (key_ && key && *key_ != *key) return false;
  if (any_place_) return true;
  if (!device_.empty() || !peer.device.empty()) return device_ == peer.device;
  return (peer.address & mask_) == network_;
}

bool AccessList::allows(const Peer &peer, std::optional<uint32_t> key) const {
  return rules_.empty() ||
         std::any_of(rules_.begin(), rules_.end(), [&](const Who &rule) { return rule.names(peer, key); });
}

std::vector<std::string> AccessList::devices() const {
  std::vector<std::string> result;
  for (const Who &rule : rules_) {
    if (!rule.device().empty()) result.push_back(rule.device());
  }
  return result;
}

}  // namespace tide::agent
