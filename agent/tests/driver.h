// SPDX-License-Identifier: Apache-2.0
// Runs the agent's core in virtual time and collects what it sends.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/agent.h"
#include "fake_middleware.h"
#include "recording.h"

namespace tide::agent::test {

struct Sent {
  Time t_ns;
  Endpoint endpoint;
  Octets bytes;
};

class Driver {
 public:
  explicit Driver(Options options = {}, Time start_ns = 0) : now_(start_ns), agent(middleware, std::move(options)) {}

  // Lets time pass until t_ns; timers expire at their exact times.
  void run_until(Time t_ns) {
    for (pump(); deadline_ < t_ns; pump()) now_ = std::max(now_, deadline_);
    now_ = t_ns;
    pump();
  }

  void input(Endpoint endpoint, const Octets &bytes) {
    if (forward) {
      forward(endpoint, bytes);
      return;
    }
    // The allocation has exactly the message's size, so that the sanitizer detects reads beyond its end.
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), exact.get());
    agent.input(endpoint, {exact.get(), bytes.size()}, now_);
    if (pumps) pump();
  }

  void pump() {
    for (bool more = true; more;) {
      more = false;
      deadline_ = agent.poll(now_);
      agent.take_ready(ready_);
      for (const Endpoint endpoint : ready_) {
        tide_frame_parts_t frame;
        while (agent.next(endpoint, now_, frame)) {
          Sent message{now_, endpoint, {}};
          message.bytes.insert(message.bytes.end(), frame.head, frame.head + frame.head_bytes);
          message.bytes.insert(message.bytes.end(), frame.body, frame.body + frame.body_bytes);
          message.bytes.insert(message.bytes.end(), frame.tail, frame.tail + frame.tail_bytes);
          if (keep) sent.push_back(std::move(message));
          frames++;
          agent.sent(endpoint, now_);
          more = true;
        }
      }
    }
  }

  Time now() const { return now_; }
  Time deadline() const { return deadline_; }

  std::vector<Sent> sent;
  std::function<void(Endpoint, const Octets &)> forward;  // if set, it gets the messages in place of the agent, and
                                                          // must put the answers into `sent`
  bool keep = true;
  bool pumps = true;  // false: the agent serves its clients when pump is called, not after each message
  uint64_t frames = 0;

 private:
  Time now_;
  Time deadline_ = 0;
  std::vector<Endpoint> ready_;

 public:
  FakeMiddleware middleware;
  Agent agent;
};

}  // namespace tide::agent::test
