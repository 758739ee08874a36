// SPDX-License-Identifier: Apache-2.0
#include "core/waiting.h"

#include <algorithm>

#include "tide/invariant.h"
#include "tide/platform.h"

namespace tide::agent {

Time WaitingMessages::next_ns() const {
  Time next = TIDE_FOREVER;
  for (const WaitingMessage &message : messages_) next = std::min(next, message.until_ns);
  return next;
}

size_t WaitingMessages::push(WaitingMessage message, const Limits &limits) {
  size_t given_up = 0;
  bytes_ += message.payload.size();
  messages_.push_back(std::move(message));
  while (messages_.size() > limits.waiting_messages || (bytes_ > limits.waiting_bytes && messages_.size() > 1)) {
    bytes_ -= messages_.front().payload.size();
    messages_.pop_front();
    given_up++;
  }
  check();
  return given_up;
}

size_t WaitingMessages::flush(Time now, const std::function<bool(const WaitingMessage &)> &hand_on) {
  size_t given_up = 0;
  std::erase_if(messages_, [&](const WaitingMessage &message) {
    const bool over = now >= message.until_ns;
    if (!over && !hand_on(message)) return false;
    if (over) given_up++;
    bytes_ -= message.payload.size();
    return true;
  });
  check();
  return given_up;
}

void WaitingMessages::check() const {
#if TIDE_INVARIANTS
  size_t bytes = 0;
  for (const WaitingMessage &message : messages_) bytes += message.payload.size();
  TIDE_INVARIANT(bytes == bytes_);
#endif
}

}  // namespace tide::agent
