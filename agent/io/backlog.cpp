// SPDX-License-Identifier: Apache-2.0
#include "io/backlog.h"

#include <algorithm>
#include <cstring>

#include "tide/xrce.h"

namespace tide::agent {
namespace {

using Length = uint32_t;

// A sample of a best-effort stream. All else is sent again by who gets no answer.
bool is_lost_for_good(Bytes message) {
  tide_xrce_header_t header;
  return tide_xrce_get_header(message.data(), message.size(), &header) >= 0 && header.stream != TIDE_XRCE_STREAM_NONE &&
         !TIDE_STREAM_IS_RELIABLE(header.stream);
}

// A session is asked for, or the agent is looked for. Dear to answer, and a client asks once at a time.
bool is_outside_sessions(Bytes message) {
  tide_xrce_header_t header;
  return tide_xrce_get_header(message.data(), message.size(), &header) >= 0 && tide_xrce_is_no_session(header.session);
}

}  // namespace

Backlog::Backlog(Deliver deliver, const BacklogLimits &limits, StandingOf standing_of, Clock clock)
    : deliver_(std::move(deliver)), limits_(limits), standing_of_(std::move(standing_of)), clock_(std::move(clock)) {}

bool Backlog::has_no_place(Endpoint endpoint, Standing standing, Bytes message) const {
  const auto place = lines_.find(endpoint);
  const bool is_new = place == lines_.end();
  const size_t messages = is_new ? 0 : place->second.messages;
  const bool is_stranger = standing == Standing::kStranger;
  if (is_new && total_bytes_ + sizeof(Length) + message.size() > limits_.total_bytes) return true;
  if (is_new && lines_.size() >= limits_.endpoints) return true;
  if (is_new && is_stranger && class_of(standing).turns.size() >= limits_.strangers) return true;
  return messages >= limits_.stranger_messages && (is_stranger || is_outside_sessions(message));
}

void Backlog::push(Endpoint endpoint, Bytes message) {
  const size_t length = sizeof(Length) + message.size();
  const Standing standing = standing_of(endpoint);
  if (has_no_place(endpoint, standing, message)) {
    dropped_++;
    return;
  }
  const auto [place, is_new] = lines_.try_emplace(endpoint);
  Line &line = place->second;
  if (is_new) begin(endpoint, line, standing);
  if (!make_room(line, length)) {
    dropped_++;
    return;
  }
  const Length count = static_cast<Length>(message.size());
  const size_t end = line.bytes.size();
  line.bytes.resize(end + length);
  std::memcpy(line.bytes.data() + end, &count, sizeof count);
  if (count != 0) std::memcpy(line.bytes.data() + end + sizeof count, message.data(), count);
  line.messages++;
  total_bytes_ += length;
}

// Who comes back after a while has saved up no time.
void Backlog::begin(Endpoint endpoint, Line &line, Standing standing) {
  Class &own = class_of(standing);
  const Class &other = classes_[1 - static_cast<size_t>(standing)];
  if (own.turns.empty() && !other.turns.empty()) own.served_ns = std::max(own.served_ns, other.served_ns);
  line.standing = standing;
  own.turns.push_back(endpoint);
}

// The oldest samples go until there is room for one more message; false: the oldest message is none.
bool Backlog::make_room(Line &line, size_t length) {
  while (line.messages != 0 && (line.messages >= limits_.messages || line.used() + length > limits_.bytes ||
                                total_bytes_ + length > limits_.total_bytes)) {
    if (!is_lost_for_good(front(line))) return false;
    dropped_++;
    pop(line);
  }
  return true;
}

Backlog::Class &Backlog::next_class() {
  auto &[sessions, strangers] = classes_;
  if (sessions.turns.empty()) return strangers;
  return strangers.turns.empty() || sessions.served_ns <= strangers.served_ns ? sessions : strangers;
}

Time Backlog::turn(Endpoint endpoint, Line &line, Allowance &allowance) {
  const Time start = now();
  Time end = start;
  for (size_t left = limits_.messages_a_turn;
       left != 0 && line.messages != 0 && line.debt_ns + end - start < limits_.turn_ns && !allowance.is_over(end);
       left--) {
    const Bytes message = front(line);
    deliver_(endpoint, message);
    allowance.bytes -= std::min(allowance.bytes, message.size());
    allowance.messages--;
    pop(line);
    end = now();
  }
  return end - start;
}

void Backlog::serve(size_t messages, size_t bytes, Time time_ns) {
  const Time start = now();
  Allowance allowance = {messages, bytes, time_ns > INT64_MAX - start ? INT64_MAX : start + time_ns};
  while (!lines_.empty() && !allowance.is_over(now())) {
    Class &served = next_class();
    const Endpoint endpoint = served.turns.front();
    served.turns.pop_front();
    const auto place = lines_.find(endpoint);
    Line &line = place->second;
    const Time took = turn(endpoint, line, allowance);
    line.debt_ns = std::max(line.debt_ns + took - limits_.turn_ns, -limits_.turn_ns);
    served.served_ns += line.standing == Standing::kSession ? took : took * limits_.session_weight;
    if (line.messages == 0) {
      lines_.erase(place);
      continue;
    }
    line.standing = standing_of(endpoint);
    class_of(line.standing).turns.push_back(endpoint);
  }
}

Bytes Backlog::front(const Line &line) const {
  Length length = 0;
  std::memcpy(&length, line.bytes.data() + line.first, sizeof length);
  return {line.bytes.data() + line.first + sizeof length, length};
}

void Backlog::pop(Line &line) {
  const size_t length = sizeof(Length) + front(line).size();
  line.first += length;
  line.messages--;
  total_bytes_ -= length;
  if (line.first * 2 < line.bytes.size()) return;  // each octet is moved once at most, on average
  line.bytes.erase(line.bytes.begin(), line.bytes.begin() + static_cast<std::ptrdiff_t>(line.first));
  line.first = 0;
}

}  // namespace tide::agent
