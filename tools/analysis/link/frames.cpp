// SPDX-License-Identifier: Apache-2.0
#include "analysis/link/frames.h"

#include <algorithm>

namespace tide::analysis {
namespace {

constexpr int64_t kFramingBytes = 7;  // flag, two addresses, length, checksum
constexpr int64_t kHeaderBytes = 4, kSubmessageBytes = 4, kRequestBytes = 4;
constexpr int64_t kAnswerBytes = kHeaderBytes + kSubmessageBytes + 5;
constexpr int64_t kAnswerEscapes = 7;   // two numbers, the stream and the checksum; the rest is known
constexpr int64_t kQuestionBytes = 32;  // GET_INFO and INFO, rounded up
constexpr time_ns kSecondNs = 1'000'000'000;

time_ns duration_ns(const Line &line, int64_t bytes) { return divide_up(bytes * 10 * kSecondNs, line.baud); }

time_ns plain_ns(const Line &line, int64_t message_bytes) { return duration_ns(line, message_bytes + kFramingBytes); }

int64_t padded(Direction direction, int64_t bytes) { return direction == Direction::up ? (bytes + 3) / 4 * 4 : bytes; }

}  // namespace

int64_t message_limit(const Line &line, Direction direction) {
  // A client announces four bytes less than its slots have (SESSION_ANNOUNCED_LESS_BYTES).
  if (direction == Direction::down) return (line.mtu_bytes - 4) / 4 * 4;
  const int64_t quantum = line.quantum_bytes > 0 ? line.quantum_bytes : line.mtu_bytes - 4;
  return std::min(quantum, line.mtu_bytes - 4) / 4 * 4;
}

time_ns frame_ns(const Line &line, int64_t message_bytes) {
  const int64_t worst = 1 + 2 * (message_bytes + kFramingBytes - 1);
  if (!line.escaped_bytes) return duration_ns(line, worst);
  return duration_ns(line, std::min(worst, message_bytes + kFramingBytes + *line.escaped_bytes));
}

Message message(const Line &line, Direction direction, int64_t payload_bytes) {
  const int64_t limit = message_limit(line, direction);
  const int64_t length = kSubmessageBytes + kRequestBytes + payload_bytes;
  const int64_t shortest = kHeaderBytes + kSubmessageBytes + kRequestBytes;
  Message result;
  if (kHeaderBytes + length <= limit) {
    const int64_t bytes = kHeaderBytes + padded(direction, length);
    result.frames = 1;
    result.total_ns = result.unit_ns = frame_ns(line, bytes);
    result.plain_ns = plain_ns(line, bytes);
    result.least_ns = line.exact_sizes ? result.plain_ns : plain_ns(line, shortest);
    return result;
  }
  const int64_t piece = limit - kHeaderBytes - kSubmessageBytes;
  result.frames = divide_up(length, piece);
  const int64_t rest = length - (result.frames - 1) * piece;
  const int64_t last = kHeaderBytes + kSubmessageBytes + padded(direction, rest);
  result.unit_ns = frame_ns(line, std::max(direction == Direction::down ? line.mtu_bytes - 4 : limit, last));
  result.total_ns = add(multiply(result.frames - 1, frame_ns(line, limit)), frame_ns(line, last));
  result.plain_ns = (result.frames - 1) * plain_ns(line, limit) + plain_ns(line, last);
  result.least_ns = line.exact_sizes ? result.plain_ns : plain_ns(line, shortest);
  return result;
}

time_ns answer_frame_ns(const Line &line) {
  return duration_ns(
      line, kAnswerBytes + kFramingBytes + std::min(line.escaped_bytes.value_or(kAnswerEscapes), kAnswerEscapes));
}

time_ns question_frame_ns(const Line &line) { return frame_ns(line, kQuestionBytes); }

}  // namespace tide::analysis
