// SPDX-License-Identifier: Apache-2.0
#include "io/arguments.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace tide::agent {

// ---- addresses ----

namespace {

constexpr unsigned kBits = 8 * sizeof(Address);

Address first_bits(Address address, unsigned bits) {
  for (unsigned octet = 0; octet < address.size(); octet++) {
    const unsigned kept = std::min(bits - std::min(bits, 8 * octet), 8u);
    address[octet] &= static_cast<uint8_t>(0xFF00u >> kept);
  }
  return address;
}

}  // namespace

Address mapped(uint32_t ipv4) {
  Address address{};
  address[10] = address[11] = 0xFF;
  for (unsigned octet = 0; octet < 4; octet++) address[12 + octet] = static_cast<uint8_t>(ipv4 >> (24 - 8 * octet));
  return address;
}

std::optional<uint32_t> ipv4_of(const Address &address) {
  uint32_t ipv4 = 0;
  for (unsigned octet = 12; octet < 16; octet++) ipv4 = ipv4 << 8 | address[octet];
  return mapped(ipv4) == address ? std::optional(ipv4) : std::nullopt;
}

std::optional<Address> parse_address(const std::string &text) {
  Address address{};
  in_addr ipv4{};
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return mapped(ntohl(ipv4.s_addr));
  return inet_pton(AF_INET6, text.c_str(), address.data()) == 1 ? std::optional(address) : std::nullopt;
}

std::string text_of(const Address &address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_ipv4 = ipv4_of(address).has_value();
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, address.data() + (is_ipv4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

// ---- rules ----

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
  } else if (rule.find_first_of("./:") == std::string::npos) {
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
  const std::string address = place.substr(0, slash);
  const std::optional<Address> network = parse_address(address);
  if (!network) fail("'" + address + "' is not an IP address");
  const unsigned most = ipv4_of(*network) ? 32 : 128;
  unsigned bits = most;
  if (slash != std::string::npos) {
    const std::string_view text = std::string_view(place).substr(slash + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
    if (error != std::errc{} || end != text.data() + text.size() || bits > most) {
      fail("after / a number of bits from 0 to " + std::to_string(most) + " is needed");
    }
  }
  result.network_ = *network;
  result.bits_ = kBits - most + bits;
  if (first_bits(*network, result.bits_) != *network) {
    fail("the address has bits beyond the first " + std::to_string(bits));
  }
  return result;
}

bool Who::names(const Peer &peer, std::optional<uint32_t> key) const {
  if (key_ && key && *key_ != *key) return false;
  if (any_place_) return true;
  if (!device_.empty() || !peer.device.empty()) return device_ == peer.device;
  return first_bits(peer.address, bits_) == network_;
}

bool AccessList::allows(const Peer &peer, std::optional<uint32_t> key) const {
  return rules_.empty() ||
         std::any_of(rules_.begin(), rules_.end(), [&](const Who &rule) { return rule.names(peer, key); });
}

// ---- hints ----

namespace {

// Options of the stock agent for which this agent has equivalents.
struct StockOptions {
  std::vector<std::string> devices;
  std::string port, baud, references, discovery;
  bool verbose = false, discovers = false;
};

bool is_option(const std::string &word) { return word.size() > 1 && word.front() == '-'; }

// A value may be attached to its option: --port=8888, -p8888, -v6.
StockOptions parse(const std::vector<std::string> &words) {
  StockOptions options;
  for (size_t number = 1; number < words.size(); number++) {
    std::string name = words[number], value;
    const size_t equals = name.find('=');
    const bool is_short = name.size() > 2 && name[1] != '-';
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (is_short) {
      value = name.substr(2);
      name.resize(2);
    } else if (number + 1 < words.size() && !is_option(words[number + 1])) {
      value = words[++number];
    }
    if (name == "--port" || name == "-p") options.port = value;
    if (name == "--baudrate" || name == "-b") options.baud = value;
    if (name == "--refs" || name == "-r") options.references = value;
    if (name == "--verbose" || name == "-v") options.verbose = value.empty() || value > "4";
    if (name == "--discovery" || name == "-d") {
      options.discovers = true;
      options.discovery = value;
    }
    if (name != "--dev" && name != "-D" && name != "--devs") continue;
    std::istringstream list(value);
    for (std::string device; list >> device;) options.devices.push_back(device);
    while (name == "--devs" && number + 1 < words.size() && !is_option(words[number + 1])) {
      options.devices.push_back(words[++number]);
    }
  }
  return options;
}

size_t distance(const std::string &one, const std::string &other) {
  std::vector<size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < one.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < other.size(); j++) {
      const size_t changed = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string stock_command_in_our_words(const std::vector<std::string> &words) {
  if (words.empty()) return {};
  const std::string &kind = words.front();
  const bool udp = kind == "udp4" || kind == "udp6", tcp = kind == "tcp4" || kind == "tcp6";
  const bool serial = kind == "serial" || kind == "multiserial" || kind == "pseudoterminal";
  if (kind == "canfd") return "nothing yet: this agent does not speak CAN FD";
  if (!udp && !tcp && !serial) return {};
  const StockOptions options = parse(words);
  std::string ours = "tide agent";
  // The stock agent listens on all network interfaces, and so does its DDS.
  if (!serial) {
    ours += (udp ? " --udp " : " --tcp ") + (options.port.empty() ? "8888" : options.port);
    ours += kind.ends_with('6') ? " --bind ::" : " --bind 0.0.0.0";
  }
  for (const std::string &device : options.devices) ours += " --serial " + device;
  if (serial && options.devices.empty()) ours += " --serial /dev/ttyUSB0";
  if (serial && !options.baud.empty()) ours += " --baud " + options.baud;
  ours += " --ros-network";
  if (options.discovers) ours += " --discovery " + (options.discovery.empty() ? "7400" : options.discovery);
  if (!options.references.empty()) ours += " --references " + options.references;
  if (options.verbose) ours += " --verbose";
  return ours;
}

std::string option_meant(const std::string &word, const std::vector<std::string> &known) {
  static const std::map<std::string, std::string> kStock = {
      {"--port", "--udp"},    {"-p", "--udp"},          {"--dev", "--serial"}, {"--devs", "--serial"},
      {"-D", "--serial"},     {"--baudrate", "--baud"}, {"-b", "--baud"},      {"--refs", "--references"},
      {"-r", "--references"}, {"-d", "--discovery"},    {"-v", "--verbose"},
  };
  const std::string name = word.substr(0, word.find('='));
  const bool is_short = name.size() >= 2 && name[0] == '-' && name[1] != '-';
  const auto stock = kStock.find(is_short ? name.substr(0, 2) : name);
  if (stock != kStock.end()) return stock->second;
  std::string best;
  size_t least = 3;  // three or more edits make it a different word
  for (const std::string &option : known) {
    const size_t letters = distance(name, option);
    if (letters >= least || letters * 2 >= name.size()) continue;
    least = letters;
    best = option;
  }
  return best;
}

}  // namespace tide::agent
