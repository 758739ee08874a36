// SPDX-License-Identifier: Apache-2.0
// The one thread that serves all links: events in, frames out, deadlines kept. Ends on SIGINT or SIGTERM.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/agent.h"
#include "io/link.h"

namespace tide::agent {

// Lets other threads end the wait of the loop.
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker &) = delete;
  Waker &operator=(const Waker &) = delete;
  void wake() const;
  void clear() const;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Must come before any other thread is started: the signals are blocked for all of them.
int open_signals();

class Loop {
 public:
  // on_report: SIGUSR1 came.
  Loop(Agent &agent, Poller &poller, const Waker &waker, int signals, std::function<void()> on_report);
  void add(std::unique_ptr<Link> link) { links_.push_back(std::move(link)); }
  const std::vector<std::unique_ptr<Link>> &links() const { return links_; }
  void run();

 private:
  bool pump(Time now);
  void dispatch(const Poller::Event &event, Time now);

  Agent &agent_;
  Poller &poller_;
  const Waker &waker_;
  int signals_;
  std::function<void()> on_report_;
  std::vector<std::unique_ptr<Link>> links_;  // number n is at place n
  std::vector<Endpoint> ready_;
  Time deadline_ns_ = 0;
  bool ending_ = false;
};

}  // namespace tide::agent
