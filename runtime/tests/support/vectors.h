// SPDX-License-Identifier: Apache-2.0
// Recorded wire traffic for tests. The files are regular (one flat JSON object in each line, see
// runtime/tests/data/xrce/README.md), so fields are cut out by name; anything unexpected throws.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tide/framing.h"

struct Record {
  int64_t t_ns = 0;
  bool client_to_agent = false;
  std::string transport;       // "udp", "tcp", "serial"
  std::vector<uint8_t> bytes;  // as received
  bool dropped = false, duplicate = false, reordered = false, corrupted = false;
  std::vector<uint8_t> original;  // the bytes sent, if the line corrupted them; otherwise equal to bytes
};

inline std::vector<uint8_t> bytes_from_hex(std::string_view hex) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw std::runtime_error("not a hexadecimal digit");
  };
  std::string digits;  // blanks between octets only help the reader
  for (char c : hex)
    if (c != ' ') digits += c;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(digit(digits.at(i)) * 16 + digit(digits.at(i + 1))));
  return bytes;
}

inline std::string hex_from_bytes(const std::vector<uint8_t> &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string hex;
  for (uint8_t byte : bytes) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

// The text that follows "name" up to the end of the value, without quotes; empty if there is no such field.
inline std::string vector_field(const std::string &line, const std::string &name) {
  const size_t key = line.find("\"" + name + "\":");
  if (key == std::string::npos) return {};
  size_t begin = line.find_first_not_of(' ', key + name.size() + 3);
  const bool quoted = line.at(begin) == '"';
  if (quoted) ++begin;
  return line.substr(begin, line.find_first_of(quoted ? "\"" : ",}", begin) - begin);
}

inline std::vector<Record> load_vectors(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<Record> records;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    Record record;
    const std::string direction = vector_field(line, "dir");
    if (direction != "client_to_agent" && direction != "agent_to_client")
      throw std::runtime_error("direction: " + line);
    record.t_ns = std::stoll(vector_field(line, "t_ns"));
    record.client_to_agent = direction == "client_to_agent";
    record.transport = vector_field(line, "transport");
    record.bytes = bytes_from_hex(vector_field(line, "hex"));
    record.dropped = vector_field(line, "dropped") == "true";
    record.duplicate = vector_field(line, "duplicate") == "true";
    record.reordered = vector_field(line, "reordered") == "true";
    record.corrupted = vector_field(line, "corrupted") == "true";
    record.original = record.corrupted ? bytes_from_hex(vector_field(line, "original_hex")) : record.bytes;
    records.push_back(std::move(record));
  }
  if (records.empty()) throw std::runtime_error("no record in " + path);
  return records;
}

// Full paths of all recordings, sorted. TIDE_TEST_DATA is defined for every test program.
inline std::vector<std::string> all_vector_files() {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(TIDE_TEST_DATA "/xrce"))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw std::runtime_error("no recordings in " TIDE_TEST_DATA "/xrce");
  return files;
}

inline std::string vector_file(const std::string &name) { return TIDE_TEST_DATA "/xrce/" + name; }

// Takes the framing of a serial line off. A frame may end in a later piece of the line than it began in.
struct Unframer {
  struct Frame {
    std::vector<uint8_t> message, line;
    bool crc_valid;
  };

  explicit Unframer(uint8_t address) {
    tide_framing_reader_init(&reader, address);
    tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
  }
  Unframer(const Unframer &) = delete;
  Unframer &operator=(const Unframer &) = delete;

  std::vector<Frame> take(const std::vector<uint8_t> &bytes) {
    std::vector<Frame> frames;
    for (size_t used = 0; used < bytes.size();) {
      int complete = 0;
      const size_t count = tide_framing_reader_input(&reader, bytes.data() + used, bytes.size() - used, &complete);
      line.insert(line.end(), bytes.data() + used, bytes.data() + used + count);
      used += count;
      if (complete == 0) continue;
      frames.push_back({{buffer.begin(), buffer.begin() + reader.length}, std::exchange(line, {}), true});
      frames.back().crc_valid = tide_crc16(buffer.data(), reader.length) == reader.crc;
      tide_framing_reader_set_buffer(&reader, buffer.data(), buffer.size());
    }
    return frames;
  }

  std::vector<uint8_t> buffer = std::vector<uint8_t>(65535), line;
  tide_framing_reader_t reader{};
};
