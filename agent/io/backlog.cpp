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

void Backlog::push(Endpoint endpoint, Bytes message) {
  const size_t length = sizeof(Length) + message.size();
  const auto place = lines_.find(endpoint);
  const bool fits = total_bytes_ + length <= limits_.total_bytes;
  if (place == lines_.end() && (!fits || lines_.size() >= limits_.endpoints)) {
    if (may_be_lost(message)) {
      dropped_++;
    } else {
      deliver_(endpoint, message);
    }
    return;
  }
  Line &line = place != lines_.end() ? place->second : lines_[endpoint];
  if (place == lines_.end()) turns_.push_back(endpoint);
  make_room(endpoint, line, length);
  const Length count = static_cast<Length>(message.size());
  const size_t end = line.bytes.size();
  line.bytes.resize(end + length);
  std::memcpy(line.bytes.data() + end, &count, sizeof count);
  if (count != 0) std::memcpy(line.bytes.data() + end + sizeof count, message.data(), count);
  line.messages++;
  total_bytes_ += length;
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

void Backlog::serve(size_t messages) {
  while (messages != 0 && !turns_.empty()) {
    const Endpoint endpoint = turns_.front();
    turns_.pop_front();
    Line &line = lines_[endpoint];
    for (size_t turn = std::min(messages, limits_.messages_a_turn); turn != 0 && line.messages != 0; turn--) {
      deliver_(endpoint, front(line));
      pop(line);
      messages--;
    }
    if (line.messages == 0) {
      lines_.erase(endpoint);
    } else {
      turns_.push_back(endpoint);
    }
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
