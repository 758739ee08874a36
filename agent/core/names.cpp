// SPDX-License-Identifier: Apache-2.0
#include "core/names.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tide::agent {
namespace {

constexpr size_t kNameBytesMaximum = 255;  // of DDS
constexpr size_t kQuotedMaximum = 80;

constexpr std::array<std::string_view, 6> kPrefixes = {"rt/", "rq/", "rr/", "rs/", "rp/", "ra/"};
constexpr std::array<std::string_view, 5> kReservedNames = {"ros_discovery_info", "DCPSParticipant", "DCPSTopic",
                                                            "DCPSPublication", "DCPSSubscription"};

bool is_printable(char character) { return character > ' ' && character <= '~'; }
bool is_digit(char character) { return character >= '0' && character <= '9'; }
bool is_word(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || is_digit(character) ||
         character == '_';
}

std::string length_fault(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kNameBytesMaximum) return "is longer than 255 characters";
  return {};
}

// Words with / between them.
std::string words_fault(std::string_view path) {
  for (;;) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view word = path.substr(0, end);
    if (word.empty()) return "has an empty part";
    if (is_digit(word.front())) return "has a part that starts with a digit";
    if (!std::all_of(word.begin(), word.end(), is_word)) return "has characters that are not letters, digits, _ or /";
    if (end == path.size()) return {};
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::string topic_fault(std::string_view name) {
  if (std::string fault = length_fault(name); !fault.empty()) return fault;
  if (std::find(kReservedNames.begin(), kReservedNames.end(), name) != kReservedNames.end()) return "is reserved";
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return words_fault(name.substr(prefix.size()));
  }
  return std::all_of(name.begin(), name.end(), is_printable) ? std::string{} : "has characters that are not printable";
}

std::string type_fault(std::string_view name) {
  if (std::string fault = length_fault(name); !fault.empty()) return fault;
  return std::all_of(name.begin(), name.end(), is_printable) ? std::string{} : "has characters that are not printable";
}

std::string participant_fault(std::string_view name) {
  if (name.size() > kNameBytesMaximum) return length_fault(name);
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char character) { return character == ' ' || is_printable(character); });
  return printable ? std::string{} : "has characters that are not printable";
}

bool is_node_name(std::string_view name) {
  if (name.starts_with('/')) name.remove_prefix(1);
  return name.size() <= kNameBytesMaximum && words_fault(name).empty();
}

namespace {

constexpr std::array<std::string_view, 6> kShared = {"/tf",    "/tf_static",   "/rosout",
                                                     "/clock", "/diagnostics", "/parameter_events"};

std::string name_fault(std::string_view name) {
  return name.starts_with('/') ? words_fault(name.substr(1)) : "does not begin with /";
}

}  // namespace

std::string Renaming::topic(const std::string &name) const {
  constexpr size_t kPrefixBytes = 2;  // the slash behind it is the name's first
  const bool is_ros = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                  [&name](std::string_view prefix) { return name.starts_with(prefix); });
  if (!is_ros || (space.empty() && remaps.empty())) return name;
  std::string_view suffix;
  if (name.starts_with("rq/") && name.ends_with("Request")) suffix = "Request";
  if (name.starts_with("rr/") && name.ends_with("Reply")) suffix = "Reply";
  const std::string whole = name.substr(kPrefixBytes, name.size() - kPrefixBytes - suffix.size());
  // An action is five names behind its own.
  const std::string base = whole.substr(0, std::min(whole.find("/_action/"), whole.size()));
  const auto place = remaps.find(base);
  std::string result = name.substr(0, kPrefixBytes);
  if (place != remaps.end()) {
    result += place->second + whole.substr(base.size());
  } else if (std::find(kShared.begin(), kShared.end(), whole) != kShared.end()) {
    result += whole;
  } else {
    result += space + whole;
  }
  return result.append(suffix);
}

std::string Renaming::node(const std::string &name) const {
  if (space.empty() || name.empty()) return name;
  return space + (name.front() == '/' ? "" : "/") + name;
}

std::string Renaming::add(const std::string &remap) {
  const size_t at = remap.find(":=");
  if (at == std::string::npos) return "has no :=, as in /cmd_vel:=/robot1/cmd_vel";
  const std::string from = remap.substr(0, at), to = remap.substr(at + 2);
  for (const std::string &name : {from, to}) {
    if (const std::string fault = name_fault(name); !fault.empty()) return quoted(name) + " " + fault;
  }
  return remaps.emplace(from, to).second ? "" : quoted(from) + " is remapped twice";
}

std::string Renaming::set_space(const std::string &name) {
  if (const std::string fault = name_fault(name); !fault.empty()) return quoted(name) + " " + fault;
  space = name;
  return {};
}

std::string quoted(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "'";
  for (const char character : text.substr(0, kQuotedMaximum)) {
    if (character == ' ' || (is_printable(character) && character != '\'' && character != '\\')) {
      result += character;
      continue;
    }
    const auto octet = static_cast<unsigned char>(character);
    result += {'\\', 'x', kDigits[octet >> 4], kDigits[octet & 15]};
  }
  return result + (text.size() > kQuotedMaximum ? "...'" : "'");
}

}  // namespace tide::agent
