// SPDX-License-Identifier: Apache-2.0
#include "analysis/link/frames.h"

#include <algorithm>

namespace tide::analysis {
namespace {

constexpr std::int64_t framing_bytes = 7;  // flag, two addresses, length, checksum
constexpr std::int64_t header_bytes = 4, submessage_bytes = 4, request_bytes = 4;
constexpr std::int64_t answer_bytes = header_bytes + submessage_bytes + 5;
constexpr std::int64_t answer_escapes = 7;   // two numbers, the stream and the checksum; the rest is known
constexpr std::int64_t question_bytes = 32;  // GET_INFO and INFO, rounded up
constexpr time_ns second_ns = 1'000'000'000;

time_ns duration_ns(const Line &line, std::int64_t bytes) { return divide_up(bytes * 10 * second_ns, line.baud); }

time_ns plain_ns(const Line &line, std::int64_t message_bytes) {
  return duration_ns(line, message_bytes + framing_bytes);
}

std::int64_t padded(Direction direction, std::int64_t bytes) {
  return direction == Direction::up ? (bytes + 3) / 4 * 4 : bytes;
}

}  // namespace

std::int64_t message_limit(const Line &line, Direction direction) {
  if (direction == Direction::down) return line.mtu_bytes / 4 * 4;
  const std::int64_t quantum = line.quantum_bytes > 0 ? line.quantum_bytes : line.mtu_bytes - 4;
  return std::min(quantum, line.mtu_bytes - 4) / 4 * 4;
}

time_ns frame_ns(const Line &line, std::int64_t message_bytes) {
  const std::int64_t worst = 1 + 2 * (message_bytes + framing_bytes - 1);
  if (!line.escaped_bytes) return duration_ns(line, worst);
  return duration_ns(line, std::min(worst, message_bytes + framing_bytes + *line.escaped_bytes));
}

Message message(const Line &line, Direction direction, std::int64_t payload_bytes) {
  const std::int64_t limit = message_limit(line, direction);
  const std::int64_t length = submessage_bytes + request_bytes + payload_bytes;
  const std::int64_t shortest = header_bytes + submessage_bytes + request_bytes;
  Message result;
  if (header_bytes + length <= limit) {
    const std::int64_t bytes = header_bytes + padded(direction, length);
    result.frames = 1;
    result.total_ns = result.unit_ns = frame_ns(line, bytes);
    result.least_ns = plain_ns(line, line.exact_sizes ? bytes : shortest);
    return result;
  }
  const std::int64_t piece = limit - header_bytes - submessage_bytes;
  result.frames = divide_up(length, piece);
  const std::int64_t rest = length - (result.frames - 1) * piece;
  const std::int64_t last = header_bytes + submessage_bytes + padded(direction, rest);
  result.unit_ns = frame_ns(line, std::max(limit, last));
  result.total_ns = add(multiply(result.frames - 1, frame_ns(line, limit)), frame_ns(line, last));
  result.least_ns =
      line.exact_sizes ? (result.frames - 1) * plain_ns(line, limit) + plain_ns(line, last) : plain_ns(line, shortest);
  return result;
}

time_ns answer_frame_ns(const Line &line) {
  return duration_ns(
      line, answer_bytes + framing_bytes + std::min(line.escaped_bytes.value_or(answer_escapes), answer_escapes));
}

time_ns question_frame_ns(const Line &line) { return frame_ns(line, question_bytes); }

}  // namespace tide::analysis
