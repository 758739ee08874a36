// SPDX-License-Identifier: Apache-2.0
#include "io/backlog.h"

#include <algorithm>
#include <cstring>

#include "tide/xrce.h"

namespace tide::agent {
namespace {

using Length = uint32_t;

// A sample of a best-effort stream. Everything else somebody waits for.
bool may_be_lost(Bytes message) {
  tide_xrce_header_t header;
  return tide_xrce_get_header(message.data(), message.size(), &header) >= 0 && header.stream != TIDE_XRCE_STREAM_NONE &&
         !TIDE_STREAM_IS_RELIABLE(header.stream);
}

}  // namespace

Backlog::Backlog(Deliver deliver, const BacklogLimits &limits, StandingOf standing_of, Clock clock)
    : deliver_(std::move(deliver)), limits_(limits), standing_of_(std::move(standing_of)), clock_(std::move(clock)) {}

bool Backlog::has_no_place(Endpoint endpoint, Standing standing, size_t length) const {
  const auto place = lines_.find(endpoint);
  const bool fits = total_bytes_ + length <= limits_.total_bytes;
  if (standing == Standing::kStranger) {
    const size_t messages = place == lines_.end() ? 0 : place->second.messages;
    const bool is_one_too_many =
        place == lines_.end() && class_of(Standing::kStranger).turns.size() >= limits_.strangers;
    return !fits || is_one_too_many || messages >= limits_.stranger_messages;
  }
  return place == lines_.end() && (!fits || lines_.size() >= limits_.endpoints);
}

void Backlog::push(Endpoint endpoint, Bytes message) {
  const size_t length = sizeof(Length) + message.size();
  const Standing standing = standing_of(endpoint);
  if (has_no_place(endpoint, standing, length)) {
    if (standing == Standing::kStranger || may_be_lost(message)) {
      dropped_++;
    } else {
      deliver_(endpoint, message);
    }
    return;
  }
  const auto [place, is_new] = lines_.try_emplace(endpoint);
  Line &line = place->second;
  if (is_new) begin(endpoint, line, standing);
  make_room(endpoint, line, length);
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

// The oldest messages go until there is room for one more.
void Backlog::make_room(Endpoint endpoint, Line &line, size_t length) {
  while (line.messages != 0 && (line.messages >= limits_.messages || line.used() + length > limits_.bytes ||
                                total_bytes_ + length > limits_.total_bytes)) {
    const Bytes oldest = front(line);
    if (may_be_lost(oldest)) {
      dropped_++;
    } else {
      deliver_(endpoint, oldest);
    }
    pop(line);
  }
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
