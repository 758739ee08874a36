// SPDX-License-Identifier: Apache-2.0
// Recorded traffic, reduced to messages: framing of serial lines and lengths of TCP are taken off.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/middleware.h"
#include "tide/framing.h"

namespace tide::agent::test {

using Octets = std::vector<uint8_t>;

inline Octets from_hex(std::string_view hex) {
  Octets bytes;
  for (size_t place = 0; place + 1 < hex.size(); place += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(std::string(hex.substr(place, 2)), nullptr, 16)));
  }
  return bytes;
}

inline std::string to_hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t octet : bytes) {
    hex += kDigits[octet >> 4];
    hex += kDigits[octet & 15];
  }
  return hex;
}

struct Message {
  int64_t t_ns = 0;
  bool from_client = false;
  bool dropped = false;
  Octets bytes;
  Octets frame;  // for serial: as on the line
};

class Recording {
 public:
  explicit Recording(const std::filesystem::path &path) : serial_(path.stem().string().starts_with("serial_")) {
    for (auto &side : sides_) {
      side.buffer.resize(65536);
      tide_framing_reader_init(&side.reader, static_cast<uint8_t>(&side - sides_.data()));
      tide_framing_reader_set_buffer(&side.reader, side.buffer.data(), side.buffer.size());
    }
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) add(line);
  }

  std::vector<Message> messages;
  bool is_serial() const { return serial_; }

 private:
  struct Side {
    tide_framing_reader_t reader;
    Octets buffer;
  };

  static std::string value(const std::string &line, const std::string &key) {
    const std::string mark = "\"" + key + "\": ";
    size_t start = line.find(mark);
    if (start == std::string::npos) return {};
    start += mark.size();
    if (line[start] == '"') start++;
    return line.substr(start, line.find_first_of("\",}", start) - start);
  }

  void add(const std::string &line) {
    Message message;
    message.t_ns = std::stoll(value(line, "t_ns"));
    message.from_client = value(line, "dir") == "client_to_agent";
    message.dropped = value(line, "dropped") == "true";
    // Messages of the agent count as sent even if the line damaged them; messages of the client count as received.
    const std::string original = value(line, "original_hex");
    const Octets bytes = from_hex(!message.from_client && !original.empty() ? original : value(line, "hex"));
    if (value(line, "transport") == "tcp") {
      message.bytes.assign(bytes.begin() + 2, bytes.end());
      messages.push_back(message);
    } else if (value(line, "transport") == "serial") {
      unframe(message, bytes);
    } else {
      message.bytes = bytes;
      messages.push_back(message);
    }
  }

  void unframe(Message message, const Octets &bytes) {
    Side &side = sides_[message.from_client ? 0 : 1];
    for (size_t used = 0; used < bytes.size();) {
      int complete = 0;
      const size_t count = tide_framing_reader_input(&side.reader, bytes.data() + used, bytes.size() - used, &complete);
      message.frame.insert(message.frame.end(), bytes.begin() + static_cast<std::ptrdiff_t>(used),
                           bytes.begin() + static_cast<std::ptrdiff_t>(used + count));
      used += count;
      if (complete == 0) continue;
      message.bytes.assign(side.buffer.begin(), side.buffer.begin() + side.reader.length);
      if (tide_crc16(0, message.bytes.data(), message.bytes.size()) == side.reader.crc) messages.push_back(message);
      message.frame.clear();
      tide_framing_reader_set_buffer(&side.reader, side.buffer.data(), side.buffer.size());
    }
  }

  bool serial_;
  std::array<Side, 2> sides_;  // of the agent (address 0) and of the client (address 1)
};

inline std::vector<std::filesystem::path> recorded_files() {
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(std::filesystem::path(TIDE_TEST_DATA) / "xrce")) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tide::agent::test
